"""The file by which the TUI and every command find the engine host.

Only the user can read it: it holds the keys of the host and of the engine.
"""

from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, ValidationError

from engine_bridge import files, paths

EXIT_LOCKED, EXIT_CANNOT_WRITE = 75, 73
"""Exit codes of a host: another one runs; its files cannot be written (as in sysexits.h)."""
PROTOCOL = 1
"""Raised when an older client could not talk to this host."""


class HostState(BaseModel):
    """What a client needs to reach the host, and what a person needs to find the engine."""

    protocol: int = PROTOCOL
    pid: int
    port: int = Field(ge=1, le=65535)
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
    """Replace the state file in one step. Raises OSError."""
    files.replace(path(), state.model_dump_json())


def read() -> HostState | None:
    """The last host's state; None if there is none or it cannot be read."""
    try:
        return HostState.model_validate_json(path().read_bytes())
    except (OSError, ValidationError):
        return None


def host_lives() -> bool:
    """Whether a host runs. One that was killed leaves its file, whose process id and port may
    be another program's by now; its lock is free at once."""
    try:
        with FileLock(lock_path(), timeout=0):
            return False
    except (Timeout, OSError):  # a lock that cannot be tried says nothing: the port will
        return True


def remove() -> None:
    path().unlink(missing_ok=True)
