"""The conversation on the screen, drawn line by line so that a long reply costs no more."""
