"""A server that already runs, wherever it is."""
