"""Conversations on disk: stored as they are written, found again, and carried in and out."""
