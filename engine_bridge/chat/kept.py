"""What the embedded engine has read of documents, kept on disk, so that it survives a restart.

llama.cpp writes a slot's KV cache to a file and reads it back in milliseconds where computing it
takes minutes (measured: 1,530 tokens of a 0.5B model are 19 MB, 34 s to compute, 6 ms to read).
A file is keyed by the model file's content, the engine's version and what was read; which tokens
it holds stands in itself, and the engine compares them with the next prompt, so that a wrong file
can cost time but never truth. As a damaged file would end the engine, each is checked by its
SHA-256 before it is handed over.

Only for an engine of ours on this machine: every function does nothing for others.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from engine_bridge import files, paths
from engine_bridge.backends.base import Endpoint
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus

LIMIT_BYTES = 4_000_000_000
LEAST_FREE_BYTES = 2_000_000_000
"""Of the disk; with less, nothing is kept."""
LEAST_TOKENS = 256
"""Fewer are read again in seconds."""
ENDING, NOTE = ".kv", ".json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A file and what it holds. `documents` are SHA-256 in hex, `used_at` Unix seconds."""

    name: str
    tokens: int
    bytes: int
    sha256: str
    documents: tuple[str, ...]
    used_at: float


def name_for(status: "EngineStatus", head: str, documents: Sequence[str]) -> str | None:
    """The file's name for these documents after this head (system text and the like), with the
    model that runs. None where nothing can be kept. Reads samples of the model file."""
    from engine_bridge.backends.llamacpp.serve import FLASH_ATTENTION
    from engine_bridge.models import tensors

    if status.spec is None or status.spec.backend != "llamacpp" or not documents:
        return None
    try:
        model = tensors.identity(Path(status.model_path))
    except (BridgeError, OSError):
        return None
    # Values lie in the cache in another order with flash attention than without.
    parts = (model, version("xllamacpp"), f"{FLASH_ATTENTION}", head, *documents)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def entries() -> list[Kept]:
    """All files, what was used last first."""
    found = []
    for note in paths.kv_dir().glob(f"*{NOTE}"):
        with contextlib.suppress(TypeError):
            kept = Kept(**files.read_object(note))
            found.append(replace(kept, documents=tuple(kept.documents)))
    return sorted(found, key=lambda each: -each.used_at)


def total_bytes() -> int:
    """What all files take on the disk."""
    return sum(each.bytes for each in entries())


def forget(document: str | None = None) -> int:
    """Delete what holds a document, by its SHA-256, or everything. Returns how many files."""
    gone = [each for each in entries() if document is None or document in each.documents]
    for each in gone:
        _delete(each.name)
    return len(gone)


async def restore(endpoint: Endpoint, names: Iterable[str | None], http: httpx.AsyncClient) -> int:
    """Read the first file of `names` that there is into the engine, unless it has other things
    in its cache that are as long. Returns how many tokens it has now; 0 where nothing was done.
    """
    for name in names:
        kept = await asyncio.to_thread(_noted, name) if name else None
        if kept is None:
            continue
        if not await _has_room(endpoint, kept.tokens, http):
            return 0
        if not await asyncio.to_thread(_is_whole, kept):
            continue
        answer = await _act(endpoint, "restore", kept.name + ENDING, http)
        if answer is None:  # it does not fit a context that is shorter now
            return 0
        await asyncio.to_thread(_write_note, replace(kept, used_at=time.time()))
        return int(answer.get("n_restored") or 0)
    return 0


async def save(
    endpoint: Endpoint,
    name: str | None,
    documents: Sequence[str],
    http: httpx.AsyncClient,
    *,
    at_least: int = 0,
    limit_bytes: int = LIMIT_BYTES,
) -> Kept | None:
    """Keep what the engine has in its cache now, unless a file of that name is there.

    The oldest files make room. None where nothing was kept: fewer tokens than `at_least`, which
    then are not the ones that were meant, too few to be worth it, or a full disk.
    """
    folder = paths.kv_dir()
    if name is None or (folder / (name + NOTE)).exists():
        return None
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        return None
    draft = f"new-{secrets.token_hex(8)}{ENDING}"
    try:
        answer = await _act(endpoint, "save", draft, http)
        tokens = int(answer.get("n_saved") or 0) if answer else 0
        if tokens < max(LEAST_TOKENS, at_least):
            return None
        return await asyncio.to_thread(_take_in, draft, name, tokens, tuple(documents), limit_bytes)
    finally:
        (folder / draft).unlink(missing_ok=True)


def _take_in(
    draft: str, name: str, tokens: int, documents: tuple[str, ...], limit_bytes: int
) -> Kept | None:
    folder = paths.kv_dir()
    try:
        size = (folder / draft).stat().st_size
        if size > limit_bytes:
            return None
        kept = Kept(name, tokens, size, _sha256(folder / draft), documents, time.time())
        (folder / draft).chmod(0o600)
        os.replace(folder / draft, folder / (name + ENDING))
        _write_note(kept)
    except OSError:
        _delete(name)
        return None
    _make_room(limit_bytes)
    return kept


def _make_room(limit_bytes: int) -> None:
    total = 0
    for each in entries():
        total += each.bytes
        if total > limit_bytes:
            _delete(each.name)


def _noted(name: str) -> Kept | None:
    """The entry of a file; what is no entry is deleted."""
    note = paths.kv_dir() / (name + NOTE)
    try:
        return Kept(**files.read_object(note))
    except TypeError:
        _delete(name)
        return None


def _is_whole(kept: Kept) -> bool:
    """Whether the file is as it was written; another one is deleted. Reads all of it."""
    with contextlib.suppress(OSError):
        if _sha256(paths.kv_dir() / (kept.name + ENDING)) == kept.sha256:
            return True
    _delete(kept.name)
    return False


def _write_note(kept: Kept) -> None:
    with contextlib.suppress(OSError):
        files.replace(paths.kv_dir() / (kept.name + NOTE), json.dumps(asdict(kept)))


def _delete(name: str) -> None:
    for ending in (NOTE, ENDING):
        with contextlib.suppress(OSError):
            (paths.kv_dir() / (name + ending)).unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _has_room(endpoint: Endpoint, tokens: int, http: httpx.AsyncClient) -> bool:
    """Whether the slot rests and holds little: what it holds is lost by a restore."""
    try:
        answer = await http.get(f"{endpoint.base_url}/slots", headers=endpoint.headers, timeout=5.0)
        slot = answer.raise_for_status().json()[0]
        return not slot["is_processing"] and 2 * int(slot.get("n_prompt_tokens") or 0) < tokens
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return False


async def _act(
    endpoint: Endpoint, action: str, name: str, http: httpx.AsyncClient
) -> dict[str, int] | None:
    url = f"{endpoint.base_url}/slots/0?action={action}"
    try:
        answer = await http.post(
            url, json={"filename": name}, headers=endpoint.headers, timeout=60.0
        )
        found = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return None
    return found if isinstance(found, dict) else None
