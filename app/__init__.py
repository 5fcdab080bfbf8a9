"""ling-chat: the terminal app and the command line."""
