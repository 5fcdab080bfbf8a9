"""Where ling-chat keeps things, by the platform's own rules. Nothing is created at import."""

import os
from pathlib import Path

import platformdirs

APP = "ling-chat"


def _private(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def config_dir() -> Path:
    """Settings and the user's own themes."""
    return _private(Path(platformdirs.user_config_dir(APP)))


def data_dir() -> Path:
    """What cannot be made again: conversations."""
    return _private(Path(platformdirs.user_data_dir(APP)))


def models_dir() -> Path:
    """Model files. `LING_CHAT_MODELS` moves them, for instance to a larger disk."""
    chosen = os.environ.get("LING_CHAT_MODELS")
    return _private(Path(chosen).expanduser() if chosen else data_dir() / "models")


def derived_dir() -> Path:
    """Model files made from others; deleting them costs only the time to make them again."""
    return _private(models_dir() / "derived")


def state_dir() -> Path:
    """The engine host's state file, its lock and what was learned about this machine."""
    return _private(Path(platformdirs.user_state_dir(APP)))


def log_dir() -> Path:
    """Engine logs, rotated."""
    return _private(Path(platformdirs.user_log_dir(APP)))
