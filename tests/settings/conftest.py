"""Makes this folder's own helpers, and the wire of the chat's tests, importable."""

import sys
from pathlib import Path

for folder in ("settings", "chat"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
