"""For thin lines: of each frame only what changed on the terminal is sent."""
