"""ling-chat's own JSON: everything of a session, to keep, to move and to read back.

    {"format": "ling-chat-sessions", "version": 1, "exported": 1796112000.0, "sessions": [
        {"key", "title", "created", "changed", "system", "preset", "model", "parameters": {…},
         "documents": [{"sha256", "title"}], "leaf": id of the active branch's last turn,
         "turns": [{"id", "parent", "role", "text", "reasoning", "thinking", "finish_reason",
                    "broken", "note", "created", "origin": {…}, "timings": {…}}]}]}

Times are Unix seconds. What is empty is left out.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Origin, Turn, branch_to
from app.core.i18n import _
from app.core.sessions.records import SessionInfo, known
from app.core.sessions.store import Incoming
from engine_bridge.chat.events import Parameters, Timings
from engine_bridge.errors import UsageError, brief

FORMAT = "ling-chat-sessions"
VERSION = 1

Documents = Sequence[tuple[str, str]]
"""(sha256, title) of each document of a session."""


def to_json(sessions: Sequence[tuple[SessionInfo, Conversation, Documents]]) -> dict[str, Any]:
    """The object to write. Documents are named by hash and title; their text stays on the shelf."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported": time.time(),
        "sessions": [_session(*each) for each in sessions],
    }


def is_ours(found: Any) -> bool:
    return isinstance(found, Mapping) and found.get("format") == FORMAT


def from_json(found: Mapping[str, Any]) -> list[Incoming]:
    """The sessions of an export. Raises UsageError where it is of a newer version or damaged."""
    version = found.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise UsageError(_("This export was written by a newer ling-chat."), _("Update ling-chat."))
    try:
        return [_incoming(each) for each in found["sessions"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            _("This export is damaged: {why}.").format(why=brief(error)),
            _("Nothing was imported; export it again."),
        ) from error


def _session(info: SessionInfo, talk: Conversation, documents: Documents) -> dict[str, Any]:
    turns = sorted([*talk.turns, *talk.others], key=lambda turn: turn.created)
    return _filled(
        {
            "key": info.key,
            "title": info.title,
            "created": info.created,
            "changed": info.changed,
            "system": talk.system,
            "preset": talk.preset,
            "model": talk.model,
            "parameters": _filled(asdict(talk.parameters)),
            "unsent_turns": talk.unsent_turns,
            "documents": [{"sha256": sha256, "title": title} for sha256, title in documents],
            "leaf": talk.turns[-1].id if talk.turns else "",
        }
    ) | {"turns": [_turn(turn) for turn in turns]}


def _turn(turn: Turn) -> dict[str, Any]:
    found = asdict(turn)
    found.pop("chosen")
    found["origin"] = _filled(found["origin"] or {})
    found["timings"] = _filled(found["timings"] or {})
    return _filled(found)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without what is None or empty."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {}, ())}


def _incoming(found: Mapping[str, Any]) -> Incoming:
    turns = [_turn_of(each) for each in found["turns"]]
    path, others = branch_to(turns, str(found.get("leaf", "")))
    talk = Conversation(
        path,
        system=str(found.get("system", "")),
        model=str(found.get("model", "")),
        preset=str(found.get("preset", "")),
        parameters=Parameters(**known(Parameters, found.get("parameters", {}))),
        others=others,
        unsent_turns=int(found.get("unsent_turns", 0)),
    )
    documents = tuple(
        (str(each["sha256"]), str(each["title"])) for each in found.get("documents", [])
    )
    return Incoming(
        talk,
        str(found.get("title", "")),
        float(found.get("created", 0)),
        float(found.get("changed", 0)),
        documents,
    )


def _turn_of(found: Mapping[str, Any]) -> Turn:
    if found["role"] not in ("user", "assistant"):
        raise ValueError(found["role"])
    origin, timings, thinking = (found.get(name) for name in ("origin", "timings", "thinking"))
    turn = Turn(
        found["role"],
        timings=Timings(**known(Timings, timings)) if timings else None,
        origin=Origin(**known(Origin, origin)) if origin else None,
        thinking=thinking if isinstance(thinking, bool) else None,
        created=float(found.get("created", 0)),
        id=str(found["id"]),
    )
    for name in ("text", "reasoning", "finish_reason", "broken", "note", "parent"):
        setattr(turn, name, str(found.get(name, "")))
    return turn
