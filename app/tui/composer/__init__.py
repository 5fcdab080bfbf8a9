"""Where the user types, and what they attach."""
