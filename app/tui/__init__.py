"""The Textual app: it draws what the engine bridge says and sends what the user types."""
