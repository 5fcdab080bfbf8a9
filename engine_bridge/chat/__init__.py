"""Talking to an engine: one request, one stream of events."""
