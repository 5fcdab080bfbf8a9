"""Turns and their branches: each turn knows the one before it, and one path is the active one."""

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from engine_bridge.chat.events import Role, Timings


def new_id() -> str:
    return secrets.token_hex(6)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made an answer, and with what switched on."""

    engine: str = ""
    """The backend's name: sglang, llamacpp, or the dialect of an attached server."""
    model: str = ""
    optimisations: dict[str, str] = field(default_factory=dict)
    """The verdict by optimisation id when the answer began."""
    asked: str = ""
    """What to ask for to have this model again: its name or path; empty where `model` does."""
    url: str = ""
    """Of an attached server; no password is in it."""


@dataclass(slots=True)
class Turn:
    """One message. An answer grows while it streams; until it ends `finish_reason` is empty."""

    role: Role
    text: str = ""
    reasoning: str = ""
    timings: Timings | None = None
    finish_reason: str = ""
    """stop, length, stopped (by the user), or what the server said."""
    broken: str = ""
    """Why the answer is not complete, as one sentence; empty where it is."""
    note: str = ""
    """What else the user should know of it, as one sentence."""
    thinking: bool | None = None
    """Of a question: whether its answer is to be thought about; None takes the session's."""
    origin: Origin | None = None
    created: float = field(default_factory=time.time)
    """Unix time, seconds."""
    id: str = field(default_factory=new_id)
    parent: str = ""
    """The id of the turn before it; empty for a first one."""
    chosen: str = ""
    """The id of the turn after it that was last looked at, where there are several."""

    @property
    def is_cut(self) -> bool:
        """Whether an answer has text but not its end, so that it can be gone on with."""
        unended = self.broken or self.finish_reason in ("", "length", "stopped")
        return self.role == "assistant" and bool(self.text.strip() and unended)


def chain(turns: Sequence[Turn]) -> None:
    """Let each turn follow the one before it, where it follows none yet."""
    for before, turn in pairwise(turns):
        turn.parent = turn.parent or before.id


def after(turns: Iterable[Turn], parent: str) -> list[Turn]:
    """The turns that follow the one called `parent` (the first ones for ""), oldest first."""
    return sorted((turn for turn in turns if turn.parent == parent), key=lambda each: each.created)


def branch_to(turns: Sequence[Turn], leaf: str) -> tuple[list[Turn], list[Turn]]:
    """The branch that ends with the turn called `leaf`, else that of the last turn to its end;
    and the turns of all other branches."""
    if not turns:
        return [], []
    last = next((turn for turn in turns if turn.id == leaf), turns[-1])
    path = path_through(turns, last)
    if last.id == leaf:
        path = path[: path.index(last) + 1]
    active = {turn.id for turn in path}
    return path, [turn for turn in turns if turn.id not in active]


def path_through(turns: Iterable[Turn], turn: Turn) -> list[Turn]:
    """From a first turn to `turn`, and on to the end of what was last looked at there.

    A parent that is missing begins the path, so that damage costs nothing more.
    """
    by_id = {each.id: each for each in turns}
    follows: dict[str, list[Turn]] = {}
    for each in by_id.values():
        follows.setdefault(each.parent, []).append(each)
    path, seen = [turn], {turn.id}
    while (before := by_id.get(path[-1].parent)) and before.id not in seen:
        path.append(before)
        seen.add(before.id)
    path.reverse()
    while next_ones := [each for each in follows.get(path[-1].id, ()) if each.id not in seen]:
        chosen = by_id.get(path[-1].chosen)
        newest = max(next_ones, key=lambda each: each.created)
        path.append(chosen if chosen in next_ones else newest)
        seen.add(path[-1].id)
    return path
