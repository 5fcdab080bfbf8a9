"""What the command line and the TUI share. Never imports textual."""
