"""What could be meant by what is being typed: a command, a path, a file of this folder."""

import asyncio
import os
import re
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Literal

from app.core.plain import is_plain
from app.tui.composer import slash
from engine_bridge.paths import expanded

MOST = 50
"""Offers at a time."""
STALE_S = 10.0
"""Seconds after which the files of the folder are listed again."""
MOST_FILES, PATIENCE_S = 100_000, 2.0
"""Limits of looking through a folder without git, such as a home."""
STEP = 5_000
"""Paths that are matched at a time: no other thread runs meanwhile."""
_MENTION = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"]*)|([^\s\"]*))$")
_COMMAND = re.compile(r"/([a-z]*)$")
_NO_TEXT = re.compile("[\ud800-\udfff]")
_ARGUMENT = re.compile(r"/([a-z]+) +(.*)$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is being typed, from column `start` to the cursor."""

    kind: Literal["command", "path", "mention"]
    query: str
    start: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be put in its place."""

    text: str
    hint: str = ""
    is_whole: bool = True
    """Nothing more is to be typed: Enter does it."""


def wanted(before: str, is_first_row: bool) -> Wanted | None:
    """What the text before the cursor asks for; None for plain words."""
    if is_first_row and (match := _COMMAND.fullmatch(before)):
        return Wanted("command", match[1], 0)
    if is_first_row and (match := _ARGUMENT.fullmatch(before)):
        known = {each.name: each for each in slash.commands()}
        command = known.get(match[1])
        return Wanted("path", match[2], match.start(2)) if command and command.takes_path else None
    if match := _MENTION.search(before):
        return Wanted("mention", match[1] or match[2] or "", match.start())
    return None


def mentions(text: str) -> list[str]:
    """The paths that a message names with @."""
    found = re.findall(r"(?:^|(?<=\s))@(?:\"([^\"\n]+)\"|([^\s\"]+))", text)
    return list(dict.fromkeys(quoted or bare.rstrip(".,;:!?)") for quoted, bare in found))


def mention(path: str) -> str:
    """How a message names this path."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def dropped(text: str) -> str | None:
    """The path that a terminal types when a file is dropped on it; None for other text."""
    text = text.strip().removeprefix("file://")
    if "\n" in text or not text.lstrip("'\"").startswith("/"):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return words[0] if len(words) == 1 else None


class Offers:
    """Finds what fits: of files those below the working folder."""

    def __init__(self) -> None:
        self._listed: tuple[Path, float, list[str]] | None = None
        self._listing = asyncio.Lock()

    async def find(self, asked: Wanted) -> list[Offer]:
        """What fits, the best first."""
        if asked.kind == "command":
            return [
                Offer(
                    f"/{each.name}" + (" " if each.argument else ""), each.hint, not each.argument
                )
                for each in slash.commands()
                if each.name.startswith(asked.query)
            ]
        if asked.query.startswith(("/", "~", "./", "../")):
            paths = await asyncio.to_thread(inside, asked.query)
        else:
            paths = await self._fitting(asked.query)
        wrap = mention if asked.kind == "mention" else str
        return [Offer(wrap(path), is_whole=not path.endswith("/")) for path in paths]

    async def _fitting(self, query: str) -> list[str]:
        async with self._listing:
            root, now = Path.cwd(), time.monotonic()
            if self._listed is None or self._listed[0] != root or now - self._listed[1] > STALE_S:
                self._listed = root, now, await asyncio.to_thread(below, root)
        return await asyncio.to_thread(fitting, query, self._listed[2])


def _command(command: slash.SlashCommand) -> Offer:
    has_more = bool(command.argument)
    return Offer(f"/{command.name}" + " " * has_more, command.hint, is_whole=not has_more)


def below(root: Path) -> list[str]:
    """The files below a folder that git does not ignore, and the folders they are in."""
    from app.core.documents.folder import by_git, by_walk

    files = by_git(root)
    if files is None:
        until = time.monotonic() + PATIENCE_S
        found = takewhile(lambda _path: time.monotonic() < until, by_walk(root))
        files = list(islice(found, MOST_FILES))
    files = [path for path in files if _can_be_typed(path)]
    folders = {f"{folder}/" for path in files for folder in _parents(path)}
    return [*files, *folders]


def _parents(path: str) -> Iterable[str]:
    while at := path.rfind("/") + 1:
        path = path[: at - 1]
        yield path


def _can_be_typed(name: str) -> bool:
    """Whether the box and a message keep the name as it is: a line end in it would send what stands
    before it, and bytes that are no text cannot be sent. `isprintable` would refuse more: every
    space but ASCII's, as in Chinese names and the screenshots of macOS."""
    return is_plain(name) and len(name.splitlines()) == 1 and not _NO_TEXT.search(name)


def inside(typed: str) -> list[str]:
    """What a folder holds whose name starts as typed; folders end with a slash."""
    folder, _slash, name = typed.rpartition("/")
    base = f"{folder}/" if _slash else ""
    try:
        with os.scandir(expanded(base or ".")) as entries:
            found = [
                f"{base}{entry.name}{'/' if entry.is_dir() else ''}"
                for entry in entries
                if entry.name.lower().startswith(name.lower())
                and _can_be_typed(entry.name)
                and (name.startswith(".") or not entry.name.startswith("."))
            ]
    except (OSError, ValueError):
        return []
    return sorted(found, key=lambda path: (not path.endswith("/"), path.lower()))[:MOST]


def fitting(query: str, paths: list[str]) -> list[str]:
    """The paths that hold the letters of the query in order, the likeliest first."""
    query = query.lower()
    pattern = re.compile(".*?".join(map(re.escape, query)), re.IGNORECASE)
    found: list[str] = []
    for at in range(0, len(paths), STEP):
        found += filter(pattern.search, paths[at : at + STEP])
        time.sleep(0)  # the UI first

    def rank(path: str) -> tuple[bool, bool, bool, int, str]:
        low = path.lower()
        name = low.rstrip("/").rpartition("/")[2]
        return (not name.startswith(query), query not in name, query not in low, len(path), path)

    return sorted(found, key=rank)[:MOST]
