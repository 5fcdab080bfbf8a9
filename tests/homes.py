"""A home folder for tests."""

from pathlib import Path

import pytest


def live_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Let nothing of the user's be found or touched."""
    patch.setenv("HOME", str(home))
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    patch.setenv("LING_CHAT_MODELS", str(home / "models"))
    # Else a desktop would keep the tests' keys in the person's own keyring.
    patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
