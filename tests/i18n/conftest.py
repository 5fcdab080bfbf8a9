"""Makes this folder's own helpers importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
