"""The machine's health while an engine runs: its GPU, its memory, and what endangers them."""
