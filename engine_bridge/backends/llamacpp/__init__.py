"""The embedded engine: llama.cpp in a subprocess of its own."""
