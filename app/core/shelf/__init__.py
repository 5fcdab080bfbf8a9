"""The shelf: documents that are kept, counted, read ahead, and shared between sessions."""
