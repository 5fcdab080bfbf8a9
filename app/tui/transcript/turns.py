"""The entries that show the turns of a conversation."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from app.core.chat.conversation import STOPPED, Conversation
from app.core.chat.tree import Turn
from app.core.i18n import _
from app.tui import keymap
from app.tui.transcript.entries import Entry, Reply, UserEntry


def entries_of(conversation: Conversation) -> list[Entry]:
    """An entry for each turn of the active branch."""
    siblings: dict[str, list[Turn]] = defaultdict(list)
    for turn in (*conversation.turns, *conversation.others):
        siblings[turn.parent].append(turn)
    titles = [document.title for document in conversation.documents]
    entries: list[Entry] = []
    for number, turn in enumerate(conversation.turns):
        entry = _entry(turn, titles if number == 0 else ())
        entry.version = version_of(turn, siblings[turn.parent])
        entries.append(entry)
    return entries


def version_of(turn: Turn, siblings: Iterable[Turn]) -> tuple[int, int]:
    """Which of how many versions `turn` is, counted from 1."""
    ordered = sorted(siblings, key=lambda each: each.created)
    return ordered.index(turn) + 1, len(ordered)


def _entry(turn: Turn, titles: Sequence[str]) -> Entry:
    if turn.role != "assistant":
        asked = UserEntry(turn.text, titles)
        asked.node = turn
        return asked
    reply = Reply.stored(turn.text, turn.reasoning, turn.timings)
    reply.node = turn
    reply.reason, reply.cure, reply.is_bad = ending(turn)
    return reply


def ending(turn: Turn) -> tuple[str, str, bool]:
    """How an answer ended if not well: the reason, what helps, and whether it is a fault."""
    if turn.broken:
        return turn.broken, what_helps(turn), True
    if turn.finish_reason in (STOPPED, ""):
        return _("Stopped."), what_helps(turn), False
    if turn.finish_reason == "length":
        return _("The reply reached its length limit."), what_helps(turn), False
    if not turn.text.strip():
        return _("The model said nothing."), what_helps(turn), False
    return turn.note, "", False


def what_helps(turn: Turn | None) -> str:
    """How an answer that is not complete can be had after all."""
    again = keymap.key("chat.regenerate")
    if turn is not None and turn.is_cut:
        return _("Enter goes on with it, {key} asks again.").format(key=again)
    return _("{key} asks again.").format(key=again)
