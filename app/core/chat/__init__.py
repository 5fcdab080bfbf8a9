"""Conversations: their turns and branches, what is asked for them, and the answers."""
