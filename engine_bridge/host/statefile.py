"""The file by which the TUI and every command find the engine host.

Only the user can read it: it holds the keys of the host and of the engine.
"""

import os
from pathlib import Path

from pydantic import BaseModel, ValidationError

from engine_bridge import paths

PROTOCOL = 1
"""Raised when an older client could not talk to this host."""


class HostState(BaseModel):
    """What a client needs to reach the host, and what a person needs to find the engine."""

    protocol: int = PROTOCOL
    pid: int
    port: int
    key: str
    started_at: float
    engine_pid: int | None = None
    engine_command: list[str] = []
    engine_url: str = ""
    engine_key: str = ""


def path() -> Path:
    return paths.state_dir() / "engine-host.json"


def lock_path() -> Path:
    """Held by the host as long as it lives, so a stale state file fools nobody."""
    return paths.state_dir() / "engine-host.lock"


def write(state: HostState) -> None:
    """Replace the state file in one step."""
    new = path().with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(state.model_dump_json())
    new.replace(path())


def read() -> HostState | None:
    """The last host's state; None if there is none or it cannot be read."""
    try:
        return HostState.model_validate_json(path().read_bytes())
    except (OSError, ValidationError):
        return None


def remove() -> None:
    path().unlink(missing_ok=True)
