"""What the engine does, in figures, and its switches."""
