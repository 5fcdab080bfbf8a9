"""What is told of a session, and how a turn and settings become rows and come back."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from app.core.chat.tree import Origin, Turn
from app.core.sessions.words import Snippet, clean
from engine_bridge.chat.events import Parameters, Timings

TURN_COLUMNS = (
    "key, parent, role, text, reasoning, finish_reason, broken, note, thinking, origin, timings,"
    " created"
)
TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A line of the list. Times are Unix seconds; `deleted` is None unless it is in the trash."""

    key: str
    title: str
    created: float
    changed: float
    deleted: float | None
    messages: int
    """All turns, of all branches."""
    model: str
    """The one that answered last; empty where none did."""
    titled_by: str = "words"
    """user, model, or words: the first ones of the first question."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A session in which all words were found: in its title, or in the turn `turn`."""

    session: SessionInfo
    snippet: Snippet
    turn: str = ""


def turn_values(turn: Turn) -> tuple[Any, ...]:
    """The values for TURN_COLUMNS."""
    return (
        turn.id,
        turn.parent,
        turn.role,
        clean(turn.text),
        clean(turn.reasoning),
        turn.finish_reason,
        clean(turn.broken),
        turn.note,
        turn.thinking,
        to_json(turn.origin),
        to_json(turn.timings),
        turn.created,
    )


def turn_of(row: sqlite3.Row | tuple[Any, ...]) -> Turn:
    """The turn of a row with TURN_COLUMNS. Raises ValueError for a row that makes none."""
    key, parent, role, text, reasoning, finish, broken, note, thinking, origin, timings, at = row
    if role not in ("user", "assistant"):
        raise ValueError(f"no role: {role!r}")
    return Turn(
        role,
        str(text),
        str(reasoning),
        Timings(**known(Timings, from_json(timings))) if timings else None,
        str(finish),
        str(broken),
        str(note),
        None if thinking is None else bool(thinking),
        Origin(**known(Origin, from_json(origin))) if origin else None,
        float(at),
        str(key),
        str(parent),
    )


def to_json(found: Any) -> str | None:
    """A dataclass as JSON without what is None."""
    if found is None:
        return None
    return json.dumps({k: v for k, v in asdict(found).items() if v is not None})


def from_json(text: object) -> dict[str, Any]:
    """The object in a text; an empty one where it is damaged."""
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those values that `kind`, a dataclass, has fields for; lists as tuples."""
    names = {field.name for field in fields(kind)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in names}


def parameters_of(text: object) -> Parameters:
    return Parameters(**known(Parameters, from_json(text)))


def first_words(text: str) -> str:
    """A title from the beginning of a question."""
    flat = " ".join(clean(text[:1000]).split())
    if len(flat) <= TITLE_CHARACTERS:
        return flat
    cut = flat[:TITLE_CHARACTERS]
    return (cut.rpartition(" ")[0] or cut) + "…"
