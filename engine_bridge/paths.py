"""Where ling-chat keeps things, by the platform's own rules. Nothing is created at import."""

import contextlib
import os
from pathlib import Path

import platformdirs

from engine_bridge.errors import BridgeError

APP = "ling-chat"
ELSEWHERE = "Fix its permissions, or set HOME to a folder that can be written."
"""The cure for a folder that cannot be made or written."""


def _private(path: Path, cure: str = ELSEWHERE) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = error.strerror or error
        raise BridgeError(f"The folder {path} cannot be made: {why}.", cure) from error
    return path


def expanded(name: str | Path) -> Path:
    """A path as a user writes it, with their home for `~`. A user that nobody knows stays as it is
    written, where `Path.expanduser` raises what is no OSError."""
    return Path(os.path.expanduser(name))


def config_dir() -> Path:
    """Settings and the user's own themes. It is read where it can be and not made where it cannot:
    who writes into it tells why that fails."""
    path = Path(platformdirs.user_config_dir(APP))
    with contextlib.suppress(BridgeError):
        _private(path)
    return path


def data_dir() -> Path:
    """What cannot be made again: conversations."""
    return _private(Path(platformdirs.user_data_dir(APP)))


def models_dir() -> Path:
    """Model files. `LING_CHAT_MODELS` moves them, for instance to a larger disk."""
    chosen = os.environ.get("LING_CHAT_MODELS")
    return _private(
        expanded(chosen) if chosen else data_dir() / "models",
        "Set LING_CHAT_MODELS to a folder that can be written.",
    )


def derived_dir() -> Path:
    """Model files made from others; deleting them costs only the time to make them again."""
    return _private(models_dir() / "derived")


def state_dir() -> Path:
    """The engine host's state file, its lock and what was learned about this machine."""
    return _private(Path(platformdirs.user_state_dir(APP)))


def log_dir() -> Path:
    """Engine logs, rotated."""
    return _private(Path(platformdirs.user_log_dir(APP)))


def kv_dir() -> Path:
    """What the embedded engine has read of documents (`engine_bridge.chat.kept`); deleting it
    costs only the time to read them again."""
    return _private(Path(platformdirs.user_cache_dir(APP)) / "kv")
