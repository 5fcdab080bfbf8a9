"""Keys and tokens: in the system's keyring where one works, else in a file only the user can read.

An environment variable always wins, and is never stored.
"""

import contextlib
import functools
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from engine_bridge import files, paths
from engine_bridge.errors import BridgeError

SERVICE = paths.APP
HUB_TOKEN = "hub-token"  # noqa: S105 (a name, no secret)
SERVER_KEY_VARIABLE = "LING_CHAT_API_KEY"
KEYRING_TIMEOUT_S = 3.0
"""A keyring that waits for a locked desktop session must not hold up a chat."""

_VARIABLES = {HUB_TOKEN: "HF_TOKEN"}
_Found = TypeVar("_Found")


def server_key(base_url: str) -> str:
    """The name under which the API key of the server at this base URL is kept."""
    return f"server:{base_url.rstrip('/').removesuffix('/v1')}"


def get(name: str) -> str:
    """The secret, or an empty string. Never fails because of a keyring or a damaged file."""
    if from_environment := os.environ.get(_VARIABLES.get(name, SERVER_KEY_VARIABLE), "").strip():
        return from_environment
    if _keyring_works():
        with contextlib.suppress(_KeyringError):
            if kept := _ask_keyring(lambda keyring: keyring.get_password(SERVICE, name)):
                return str(kept).strip()
    return _read_file().get(name, "")


def source(name: str) -> str:
    """Where the secret is found, for people; empty where there is none."""
    variable = _VARIABLES.get(name, SERVER_KEY_VARIABLE)
    if os.environ.get(variable, "").strip():
        return variable
    if not get(name):
        return ""
    return str(file()) if name in _read_file() else where()


def hub_token() -> str | None:
    """The token for the model hub: ours, else the one of the hub's own login."""
    from huggingface_hub import get_token

    return get(HUB_TOKEN) or get_token()


def store(name: str, secret: str) -> str:
    """Keep a secret; returns where, as `where()`. Raises BridgeError when it cannot be kept."""
    secret = secret.strip()
    if _keyring_works():
        with contextlib.suppress(_KeyringError):
            _ask_keyring(lambda keyring: keyring.set_password(SERVICE, name, secret))
            _change_file(name, None)
            return where()
    _change_file(name, secret)
    return str(file())


def forget(name: str) -> None:
    """Delete a secret wherever it is kept; it need not exist."""
    if _keyring_works():
        with contextlib.suppress(_KeyringError):
            _ask_keyring(lambda keyring: keyring.delete_password(SERVICE, name))
    _change_file(name, None)


def where() -> str:
    """Where secrets are kept, for people: "the keyring (…)" or "the file … (why)"."""
    if _keyring_works():
        return f"the keyring ({_probe()[1]})"
    return f"the file {file()} ({_probe()[1]})"


class _KeyringError(Exception):
    """The keyring failed, crashed or did not answer in time."""


def _ask_keyring(work: "Callable[..., _Found]") -> _Found:
    """Run `work` with the keyring module in a thread that may hang without holding us up."""
    found: list[_Found] = []
    failure: list[str] = []

    def call() -> None:
        try:
            import keyring

            found.append(work(keyring))
        except BaseException as error:  # backends raise what they like, also at import
            failure.append(str(error).partition("\n")[0] or type(error).__name__)

    thread = threading.Thread(target=call, name="keyring", daemon=True)
    thread.start()
    thread.join(KEYRING_TIMEOUT_S)
    if found:
        return found[0]
    raise _KeyringError(failure[0] if failure else "it does not answer")


def _keyring_works() -> bool:
    return _probe()[0]


@functools.cache
def _probe() -> tuple[bool, str]:
    """Whether a keyring works here, and its name or what is wrong. Asked once a process."""

    def name_of_working(keyring: "object") -> str:
        backend = keyring.get_keyring()  # type: ignore[attr-defined]
        if backend.priority <= 0:  # keyring's own mark for "no backend found"
            return ""
        backend.get_password(SERVICE, "probe")
        return str(backend.name)

    try:
        name = _ask_keyring(name_of_working)
    except _KeyringError as error:
        return False, f"the keyring failed: {error}"
    return (True, name) if name else (False, "no keyring here")


def file() -> Path:
    """Where secrets are kept without a keyring."""
    return paths.config_dir() / "secrets.json"


def _read_file() -> dict[str, str]:
    return {k: v for k, v in files.read_object(file()).items() if isinstance(v, str)}


def _change_file(name: str, secret: str | None) -> None:
    """Set or drop one entry. The new file is private from its first byte, and swapped in whole."""
    from filelock import FileLock

    if secret is None and name not in _read_file():
        return
    try:
        with FileLock(file().with_suffix(".lock")):
            kept = {k: v for k, v in _read_file().items() if k != name}
            if secret is not None:
                kept[name] = secret
            files.replace(file(), json.dumps(kept))
    except OSError as error:
        raise BridgeError(
            f"The secret cannot be kept in {file()} ({error.strerror or error}).",
            "Free some space or fix the folder's permissions, or use the environment variable.",
        ) from error
