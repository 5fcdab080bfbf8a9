"""Talking to an engine: one request, one stream of events."""

import sys

# httpx imports its own command-line client where rich is installed: 70 ms that `ask` would feel.
# A module that is None in sys.modules cannot be imported, and httpx does without it.
if "httpx" not in sys.modules:
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
