"""Which model file an engine process has open at this moment."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine_bridge.models.tensors import MAGIC, Gguf, NotAModelError, read_open


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A GGUF file that a process has open or mapped."""

    path: str
    gguf: Gguf
    how: str
    """What ties it to the process: "mapped, same inode"."""


def open_gguf_of(pid: int) -> OpenFile | None:
    """The GGUF file that process `pid` has open at this moment, the largest if there are several.

    None where there is none or the system does not let us see. Takes 0.1 to 0.3 s.
    """
    candidates = _mapped_linux(pid) if sys.platform == "linux" else _mapped_elsewhere(pid)
    found: dict[str, OpenFile] = {}
    for shown, source, how in candidates:
        if shown in found:
            continue
        try:
            with open(source, "rb") as file:
                found[shown] = OpenFile(shown, read_open(file), how)
        except (OSError, NotAModelError):
            continue
    return max(found.values(), key=lambda f: f.gguf.file_bytes, default=None)


def _mapped_linux(pid: int) -> Iterator[tuple[str, str, str]]:
    """(path shown, path to open, how) of files that may be the model, surest first.

    /proc/PID/map_files leads to the mapped inode itself but needs a capability, so the path
    with the same inode number is the usual way; a path whose inode was replaced is left out.
    """
    seen: set[str] = set()
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return
    for line in lines:
        parts = line.split(maxsplit=5)
        if len(parts) < 6 or parts[4] == "0" or "x" in parts[1] or parts[5] in seen:
            continue
        shown = parts[5]
        seen.add(shown)
        link = f"/proc/{pid}/map_files/{parts[0]}"
        if os.access(link, os.R_OK):
            yield shown, link, "mapped, opened through the process"
        try:
            same = os.stat(shown).st_ino == int(parts[4])
        except OSError:
            continue
        if same:
            yield shown, shown, "mapped, same inode"
    for descriptor in descriptors:
        try:
            if descriptor.stat().st_size > len(MAGIC) and os.readlink(descriptor).startswith("/"):
                yield os.readlink(descriptor), str(descriptor), "open, opened through the process"
        except OSError:
            continue


def _mapped_elsewhere(pid: int) -> Iterator[tuple[str, str, str]]:
    import psutil

    try:
        process = psutil.Process(pid)
        for file in process.open_files():
            yield file.path, file.path, "open, by path"
        for region in getattr(process, "memory_maps", list)():
            yield region.path, region.path, "mapped, by path"
    except (psutil.Error, OSError, NotImplementedError):
        return
