"""A home of its own for a measurement; the models stay where they are."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from engine_bridge import paths


@contextmanager
def own_home() -> Iterator[str]:
    """The folder; it is gone afterwards."""
    os.environ.setdefault("LING_CHAT_MODELS", str(paths.models_dir()))
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            os.environ[f"XDG_{kind}_HOME"] = f"{home}/{kind.lower()}"
        yield home
