"""A session read back into a conversation, past whatever in it is damaged."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Turn, branch_to
from app.core.documents import Document
from app.core.i18n import _, ngettext
from app.core.sessions import records

Shelf = Callable[[str], Document | None]
"""Gives a document by its sha256; None where its text is gone."""


@dataclass(slots=True)
class Loaded:
    conversation: Conversation
    missing: tuple[tuple[str, str], ...]
    """(sha256, title) of documents that the shelf does not have."""
    notices: list[str]
    """What the user must know of it, a sentence each."""


def load(db: sqlite3.Connection, key: str, shelf: Shelf | None) -> Loaded:
    """The session with exactly this key, which must exist."""
    row, system, preset, model, parameters, leaf, unsent = db.execute(
        "SELECT id, system, preset, model, parameters, leaf, unsent_turns FROM session"
        " WHERE key = ?",
        (key,),
    ).fetchone()
    turns, lost = _turns(db, row)
    path, others = branch_to(turns, leaf)
    talk = Conversation(
        path,
        system=system,
        model=model,
        parameters=records.parameters_of(parameters),
        preset=preset,
        others=others,
        unsent_turns=unsent,
    )
    missing = []
    for sha256, title in db.execute(
        "SELECT sha256, title FROM attached WHERE session = ? ORDER BY position", (row,)
    ).fetchall():
        document = shelf(sha256) if shelf else None
        if document is None:
            missing.append((sha256, title))
        else:
            talk.documents.append(document)
    return Loaded(talk, tuple(missing), _notices(lost, missing if shelf else []))


def _turns(db: sqlite3.Connection, session: int) -> tuple[list[Turn], int]:
    """The turns of a session in the order they were stored, and how many rows make none."""
    turns, lost = [], 0
    rows = db.execute(
        f"SELECT {records.TURN_COLUMNS}, writer, id FROM message"  # noqa: S608
        " WHERE session = ? ORDER BY id",
        (session,),
    ).fetchall()
    for *values, writer, message in rows:
        try:
            turn = records.turn_of(tuple(values))
        except (TypeError, ValueError):
            lost += 1
            continue
        if writer is not None:  # another window writes it now
            for is_thought, text in db.execute(
                "SELECT is_thought, text FROM piece WHERE message = ? ORDER BY id", (message,)
            ):
                turn.reasoning += text if is_thought else ""
                turn.text += "" if is_thought else text
        turns.append(turn)
    return turns, lost


def _notices(lost: int, missing: list[tuple[str, str]]) -> list[str]:
    notices = []
    if lost:
        notices.append(
            ngettext(
                "{n} damaged message was left out.", "{n} damaged messages were left out.", lost
            ).format(n=lost)
        )
    if missing:
        titles = ", ".join(title for _sha256, title in missing)
        notices.append(_("No longer on the shelf; attach again: {titles}.").format(titles=titles))
    return notices
