"""A folder or git repository as one document, after a look at what goes in."""

import hashlib
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.documents.decode import decode
from app.core.documents.document import Document
from app.core.documents.formats.extracted import clean
from app.core.documents.names import needs_worker
from app.core.documents.places import FILE_MARK
from app.core.documents.progress import Progress, Report, unheard
from app.core.documents.read import document_from_bytes, one_reader, read_file
from app.core.documents.reader import Reader
from engine_bridge.errors import BridgeError, UsageError
from engine_bridge.paths import expanded

if TYPE_CHECKING:
    from dulwich.ignore import IgnoreFilter

MAX_FILES = 2_000
MAX_SEEN = 50_000
"""A folder of more files, such as a home, is nobody's document."""
MAX_FILE = 16 * 1024 * 1024
MAX_TOTAL = 64 * 1024 * 1024
_HEAD = 4096
_RAW = {".html", ".htm", ".xhtml"}
"""In a repository these are sources, elsewhere pages."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file by its path below the folder, with its size in bytes."""

    path: str
    size: int
    why: str = ""
    """Why it is left out; empty where it goes in."""


@dataclass(frozen=True, slots=True)
class FolderPreview:
    """What attaching a folder would read: to be shown before it is read."""

    root: Path
    files: tuple[Entry, ...]
    left_out: tuple[Entry, ...]
    repository: bool
    """Whether git told what belongs to it; otherwise hidden files stay out."""

    @property
    def size(self) -> int:
        """Bytes of all files that go in."""
        return sum(entry.size for entry in self.files)

    @property
    def reasons(self) -> Counter[str]:
        """How many files are left out, by reason."""
        return Counter(entry.why for entry in self.left_out)


def preview_folder(root: str | Path) -> FolderPreview:
    """Look through a folder: names, sizes and first bytes only.

    What .gitignore names never appears. Raises UsageError where nothing could be read.
    """
    root = expanded(root).resolve()
    named = by_git(root)
    paths = list(islice(by_walk(root) if named is None else named, MAX_SEEN + 1))
    if len(paths) > MAX_SEEN:
        raise UsageError(
            f"{root} holds more than {MAX_SEEN:,} files.", "Name the folder that matters."
        )
    taken: list[Entry] = []
    left: list[Entry] = []
    total = 0
    for path in sorted(paths):
        if len(taken) >= MAX_FILES:
            left.append(Entry(path, 0, f"beyond {MAX_FILES:,} files"))
            continue
        entry = _look(root, path)
        if entry is None:
            continue
        if not entry.why and total + entry.size > MAX_TOTAL:
            entry = Entry(path, entry.size, f"beyond {MAX_TOTAL >> 20} MB in all")
        if entry.why:
            left.append(entry)
        else:
            taken.append(entry)
            total += entry.size
    if not taken:
        raise UsageError(f"There is nothing to read in {root}.", "Name a folder with text files.")
    return FolderPreview(root, tuple(taken), tuple(left), named is not None)


def read_folder(
    preview: FolderPreview, report: Report = unheard, reader: Reader | None = None
) -> Document:
    """One document of all files: each is a page that starts with a line naming it.

    A file that cannot be read is left out and told of in the note.
    """
    pieces: list[str] = []
    pages: list[int] = []
    failed: list[str] = []
    length, digest = 0, hashlib.sha256()
    with one_reader(reader) as parser:
        for number, entry in enumerate(preview.files, 1):
            parser.check()
            try:
                document = _read(preview, entry, parser)
            except BridgeError:
                failed.append(_shown(entry.path))
            else:
                mark = FILE_MARK.format(path=_shown(entry.path))
                piece = f"{mark}\n{document.text.rstrip()}\n\n"
                pages.append(length)
                pieces.append(piece)
                length += len(piece)
                digest.update(f"{entry.path}\0{document.sha256}\n".encode(errors="replace"))
            report(Progress("reading", number, len(preview.files), "files"))
    if not pieces:
        raise UsageError(f"No file in {preview.root} could be read.", "Attach one to see why.")
    text = "".join(pieces)
    return Document(
        title=f"{_shown(preview.root.name or str(preview.root))}/",
        text=text,
        encoding="",
        sha256=digest.hexdigest(),
        characters=length,
        kind="folder",
        pages=tuple(pages),
        note=_note(preview, failed),
    )


def _shown(path: str) -> str:
    """A path on one line. File names are bytes, which need not be text."""
    return " ".join(clean(path).split())


def _read(preview: FolderPreview, entry: Entry, reader: Reader) -> Document:
    path = preview.root / entry.path
    if preview.repository and path.suffix.lower() in _RAW:
        return document_from_bytes(path.read_bytes(), path.name + ".txt")
    return read_file(path, unheard, reader)


def _note(preview: FolderPreview, failed: list[str]) -> str:
    parts = [f"{count} {why}" for why, count in preview.reasons.most_common()]
    if failed:
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        parts.append(f"not readable: {', '.join(failed[:3])}{more}")
    return f"Left out: {', '.join(parts)}." if parts else ""


def _look(root: Path, path: str) -> Entry | None:
    """The entry of a file; None for what is no file or leads out of the folder."""
    full = root / path
    try:
        if not full.is_file() or (full.is_symlink() and not full.resolve().is_relative_to(root)):
            return None
        size = full.stat().st_size
        if not size:
            return Entry(path, 0, "empty")
        if size > MAX_FILE:
            return Entry(path, size, f"over {MAX_FILE >> 20} MB")
        with full.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return Entry(path, 0, "not readable")
    return Entry(path, size, "" if needs_worker(head, path) or _is_text(head) else "binary")


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start >= len(head) - 3:  # a letter cut by the end of the head
            return b"\0" not in head
    else:
        return b"\0" not in head
    try:
        decode(head, "")
    except UsageError:
        return False
    return True


def by_git(root: Path) -> list[str] | None:
    """What belongs to a repository: tracked files and new ones that are not ignored.

    None where there is no git or no repository, or where it ignores the folder that was named.
    """
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run(
            [
                git,
                "-C",
                str(root),
                "-c",
                "core.fsmonitor=false",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ],
            capture_output=True,
            timeout=60,
            check=False,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode or not done.stdout:
        return None
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def by_walk(root: Path) -> Iterator[str]:
    """Files that are not hidden and that no .gitignore on the way names."""
    from dulwich.ignore import IgnoreFilter

    rules: dict[str, Rules] = {}
    for folder, folders, files in os.walk(root):
        ignore = os.path.join(folder, ".gitignore")
        own = [(folder, IgnoreFilter.from_path(ignore))] if os.path.isfile(ignore) else []
        known = rules[folder] = own + rules.get(os.path.dirname(folder), [])
        seen = [name for name in folders if not name.startswith(".")]
        folders[:] = [name for name in seen if not _ignored(os.path.join(folder, name), "/", known)]
        paths = [os.path.join(folder, name) for name in files if not name.startswith(".")]
        yield from (os.path.relpath(path, root) for path in paths if not _ignored(path, "", known))


Rules = list[tuple[str, "IgnoreFilter"]]
"""What .gitignore files say, with their folders; the nearest comes first and has the last word."""


def _ignored(path: str, mark: str, rules: Rules) -> bool:
    """Whether a file, or a folder where `mark` is a slash, is ignored."""
    for base, rule in rules:
        verdict = rule.is_ignored(os.path.relpath(path, base) + mark)
        if verdict is not None:
            return verdict
    return False
