"""The model files on this machine: found, checked, removed."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from engine_bridge import paths
from engine_bridge.backends.base import Report
from engine_bridge.errors import BridgeError, UnavailableError, UsageError
from engine_bridge.models import hashes
from engine_bridge.models.download import partials
from engine_bridge.models.registry import Entry, find, load_registry
from engine_bridge.models.tensors import NotAModelError, read_open

GIVE_ANOTHER = "Give the path of a GGUF file, or a name that `ling-chat models list` shows."


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One model file that is there and looks whole."""

    name: str
    """Registry name, or the file's name without its ending."""
    path: Path
    size: int
    """Bytes."""
    sha256: str | None = None
    """Hexadecimal; None where the file was never hashed."""
    entry: Entry | None = field(default=None, repr=False)


def is_path(name_or_path: str) -> bool:
    """Whether this names a file rather than a model of the registry."""
    return name_or_path.lower().endswith(".gguf") or any(sep in name_or_path for sep in "/\\~")


def resolve(name_or_path: str) -> ModelFile:
    """The model file for a registry name, or for the path of any local GGUF file.

    Raises UsageError for an unknown name or a file that is no whole GGUF, UnavailableError for
    a known model that was not pulled.
    """
    registry = load_registry()
    if name_or_path not in registry and (is_path(name_or_path) or os.path.isfile(name_or_path)):
        return _local(paths.expanded(name_or_path))
    entry = find(name_or_path, registry)
    path = target(entry)
    if not path.is_file():
        raise UnavailableError(
            f"{entry.title} is not on this machine.", f"Run `ling-chat models pull {entry.name}`."
        )
    if not hashes.is_verified(path, entry):
        raise UnavailableError(
            f"{path} is not the file that {entry.title} should be.",
            f"Run `ling-chat models pull {entry.name}` to download it again.",
        )
    return ModelFile(
        entry.name, path, path.stat().st_size, entry.sha256 or hashes.known(path), entry
    )


def target(entry: Entry) -> Path:
    """Where the file of `entry` is, or will be."""
    return paths.models_dir() / entry.file


def _local(path: Path) -> ModelFile:
    check_file(path)
    path = path.resolve()
    sha256 = hashes.known(path)
    entry = next((e for e in load_registry().values() if sha256 and e.sha256 == sha256), None)
    return ModelFile(path.stem, path, path.stat().st_size, sha256, entry)


def check_file(path: Path) -> None:
    """Raises UsageError unless `path` is a readable, whole GGUF file."""
    if os.path.isdir(path):  # unlike the method, never raises
        inside = sorted(path.glob("*.gguf"))
        cure = f"Give one of the files in it, such as {inside[0]}." if inside else GIVE_ANOTHER
        raise UsageError(f"{path} is a folder.", cure)
    try:
        with path.open("rb") as file:
            read_open(file)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist.", GIVE_ANOTHER) from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    except NotAModelError as error:
        cut = "cut short" in str(error) or "empty" in str(error)
        cure = "Download or copy it again." if cut else GIVE_ANOTHER
        raise UsageError(f"{path} {error}.", cure) from error


def installed() -> list[ModelFile]:
    """The registry's models whose file is here with the right size, in the registry's order.

    Quick: nothing is hashed.
    """
    return [
        ModelFile(entry.name, path, entry.size_bytes, hashes.known(path), entry)
        for entry in load_registry().values()
        if (path := target(entry)).is_file() and path.stat().st_size == entry.size_bytes
    ]


def check(
    name_or_path: str, report: Report | None = None, cancel: Event | None = None
) -> ModelFile:
    """Hash a model file again and compare it with what it should be.

    Raises BridgeError when it is another, UnavailableError when it is not there, UsageError for
    an unknown name or a local file that is no whole GGUF.
    """
    registry = load_registry()
    if name_or_path not in registry:
        local = resolve(name_or_path)
        sha256 = hashes.digest(local.path, report, cancel)
        return ModelFile(local.name, local.path, local.size, sha256, local.entry)
    entry = registry[name_or_path]
    path = target(entry)
    if not path.is_file():
        raise UnavailableError(
            f"{entry.title} is not on this machine.", f"Run `ling-chat models pull {entry.name}`."
        )
    before = hashes.known(path)
    sha256 = hashes.digest(path, report, cancel)
    if sha256 != (entry.sha256 or before):
        if entry.sha256 is None:
            hashes.forget(path)
        raise BridgeError(
            f"{path} is damaged: its SHA-256 is not the one of {entry.title}.",
            f"Run `ling-chat models pull {entry.name}` to download it again.",
        )
    return ModelFile(entry.name, path, path.stat().st_size, sha256, entry)


def files_of(entry: Entry) -> list[Path]:
    """All that is here of a model: its file, what was made from it, and unfinished downloads."""
    derived = sorted(paths.derived_dir().glob(f"{Path(entry.file).stem}*"))
    return [path for path in (target(entry), *derived, *partials(entry)) if path.is_file()]


def remove(name: str) -> list[Path]:
    """Delete a model of the registry with all made from it; returns what was deleted.

    Raises UsageError for an unknown name or a path, UnavailableError when there is nothing to
    delete, BridgeError when a file cannot be deleted.
    """
    if is_path(name):
        raise UsageError(
            f"{name} is a file of yours, not a model of the registry.", "Delete it yourself."
        )
    entry = find(name)
    path = target(entry)
    files = files_of(entry)
    if not files:
        raise UnavailableError(f"{entry.title} is not on this machine.", "Nothing was deleted.")
    for file in files:
        try:
            file.unlink()
        except OSError as error:
            raise BridgeError(
                f"{file} cannot be deleted: {error.strerror or error}.",
                "Stop the engine that uses it, or check the folder's permissions.",
            ) from error
    hashes.forget(path)
    return files
