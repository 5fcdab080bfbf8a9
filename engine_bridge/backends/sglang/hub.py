"""A model for SGLang: a folder of the user's, or one from the hub, whole and verified.

The hub's own client downloads (resumable, in parallel, in a child process that can be ended);
the disk is looked at before, and every file is held against the hub's own checksum after.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from hashlib import sha1
from pathlib import Path

from engine_bridge import paths, secrets
from engine_bridge.backends.base import Phase, Report
from engine_bridge.errors import BridgeError, UnavailableError, UsageError
from engine_bridge.models import hashes
from engine_bridge.models.progress import Progress, size_text

DEFAULT = "inclusionAI/Ling-3.0-flash-fp4"
NEEDED = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.py", "*.tiktoken")
SPARE_BYTES = 2_000_000_000
"""Left on the disk beside the model: logs, compiled kernels."""
POLL_S = 0.5
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_MANIFEST = ".ling-chat.json"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file as the hub describes it. Large files have a SHA-256, small ones git's SHA-1."""

    name: str
    size: int
    sha256: str | None
    git_sha1: str | None


def folder_of(name: str) -> Path | None:
    """The folder that holds a model: the user's own, or where the hub's is kept; None for a name
    that is neither."""
    if not name or name.lower() == DEFAULT.split("/")[1].lower():
        name = DEFAULT
    path = paths.expanded(name)
    if path.is_dir() or name.startswith(("/", "~", ".")):
        return path
    return paths.models_dir() / "hub" / name.replace("/", "--") if _NAME.fullmatch(name) else None


def ensure(name: str, report: Report) -> Path:
    """The folder of a model, downloaded when it is from the hub and not here whole. Blocking.

    Raises UsageError for a name that is none, UnavailableError when the hub cannot be reached
    or lacks the model, BridgeError when the disk is too small or a file arrives damaged.
    """
    folder = folder_of(name)
    if folder is None:
        raise UsageError(
            f"{name!r} is no folder and no name of the hub.",
            f"Give a model's folder, or a name such as {DEFAULT}.",
        )
    if folder.parent.name != "hub" or folder.parent.parent != paths.models_dir():
        return folder
    if _is_verified(folder):
        return folder
    repository = folder.name.replace("--", "/", 1)
    report(Phase(f"asking the hub for {repository}"))
    commit, files = listing(repository)
    _check_disk(folder, files)
    folder.mkdir(parents=True, exist_ok=True)
    _download(repository, commit, folder, files, report)
    verify(folder, files, report)
    manifest = {"commit": commit, "files": [asdict(each) for each in files]}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return folder


def listing(repository: str) -> tuple[str, list[RemoteFile]]:
    """The present commit and the files that are needed. Raises UnavailableError."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        hub = HfApi(token=secrets.hub_token())
        found = hub.model_info(repository, files_metadata=True, timeout=30)
    except GatedRepoError as error:
        raise UnavailableError(
            f"The hub asks for a login before it gives {repository}.",
            "Accept its terms on the hub, then run: ling-chat key hub",
        ) from error
    except RepositoryNotFoundError as error:
        raise UnavailableError(
            f"The hub has no model {repository}.", f"Check the name; for instance {DEFAULT}."
        ) from error
    except Exception as error:  # its HTTP library, and so its errors, change with releases
        raise UnavailableError(
            f"The hub cannot be reached ({type(error).__name__}).",
            "Check the network, or give the folder of a model that is here.",
        ) from error
    files = [
        RemoteFile(
            each.rfilename,
            each.size or 0,
            each.lfs.sha256 if each.lfs else None,
            None if each.lfs else each.blob_id,
        )
        for each in found.siblings or ()
        if any(fnmatch(each.rfilename, pattern) for pattern in NEEDED)
    ]
    return found.sha or "main", files


def verify(folder: Path, files: list[RemoteFile], report: Report) -> None:
    """Hold every file against the hub's checksum; a wrong one is deleted.

    About 1 GB/s, once. Raises BridgeError when a file is missing or another.
    """
    for each in files:
        path = folder / each.name
        try:
            right = path.stat().st_size == each.size and _sum_is_right(path, each, report)
        except OSError:
            right = False
        if not right:
            path.unlink(missing_ok=True)
            hashes.forget(path)
            raise BridgeError(
                f"{each.name} arrived damaged and was deleted.",
                "Start the engine again: only that file is downloaded again.",
            )


def _sum_is_right(path: Path, file: RemoteFile, report: Report) -> bool:
    if file.sha256 is not None:
        return (hashes.known(path) or hashes.digest(path, report)) == file.sha256
    data = path.read_bytes()
    return file.git_sha1 is None or (
        sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == file.git_sha1
    )


def _is_verified(folder: Path) -> bool:
    """Whether all files are here as they were verified; needs no network."""
    try:
        files = json.loads((folder / _MANIFEST).read_bytes())["files"]
        return all((folder / each["name"]).stat().st_size == each["size"] for each in files)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _check_disk(folder: Path, files: list[RemoteFile]) -> None:
    missing = sum(each.size for each in files) - _here(folder)
    place = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(place).free
    if missing + SPARE_BYTES > free:
        raise BridgeError(
            f"The model needs {size_text(missing)} more of disk, and {size_text(free)} is free.",
            "Make room, or set LING_CHAT_MODELS to a folder on a larger disk.",
        )


def _here(folder: Path) -> int:
    """Bytes that are there, unfinished files included."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".lock", ".metadata")):
                continue
            try:
                status = os.stat(os.path.join(root, name))
            except FileNotFoundError:  # just renamed
                continue
            # An unfinished file may be written with holes: what counts is what is on the disk.
            total += min(status.st_size, status.st_blocks * 512)
    return total


_CHILD = """
import os, sys, threading
from huggingface_hub import snapshot_download
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
repository, commit, folder, *patterns = sys.argv[1:]
snapshot_download(repository, revision=commit, local_dir=folder, allow_patterns=patterns)
"""


def _download(
    repository: str, commit: str, folder: Path, files: list[RemoteFile], report: Report
) -> None:
    progress = Progress(
        report, f"downloading {repository}", max(1, sum(each.size for each in files)), "hub"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, repository, commit, str(folder), *NEEDED],
        stdin=subprocess.PIPE,  # its end, when we are gone, ends the child
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # A token goes by the environment: everybody can read an argv.
        env={
            **os.environ,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            **({"HF_TOKEN": token} if (token := secrets.hub_token()) else {}),
        },
    )
    said: list[bytes] = []
    assert child.stderr is not None
    ears = threading.Thread(target=lambda: said.extend(child.stderr or ()), daemon=True)
    ears.start()
    try:
        while child.poll() is None:
            progress.at(_here(folder))
            time.sleep(POLL_S)
    finally:  # also when `report` says that nobody waits any more
        child.kill()
        child.wait()
    ears.join(1.0)
    if child.returncode:
        why = said[-1].decode("utf-8", "replace").strip()[:200] if said else "no reason given"
        raise UnavailableError(
            f"The download broke off: {why}",
            "Start the engine again: what is here already is kept.",
        )
