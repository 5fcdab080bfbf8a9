"""The context: how much of it the next prompt takes, and what to do where it is too much."""
