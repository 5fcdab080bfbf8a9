"""What the engine's cache holds of a conversation's documents, by the engine's own word.

A document is warm when its tokens lie within what the engine reported as read, and cold again when
another engine runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from app.core.shelf.counting import Counter, place_of
from engine_bridge.chat.events import Event, Finished, Prefill, Progress, Reasoning, Text

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from app.core.chat.tree import Turn
    from app.core.documents import Document
    from engine_bridge.engine import Engine

SAME_TOKENS = 8
"""The end of one text and the start of the next may share a token or a few."""


class Warm(StrEnum):
    COLD = "cold"
    WARMING = "warming"
    WARM = "warm"


@dataclass(frozen=True, slots=True)
class Warmth:
    """One document in the engine's cache. `share` of it, 0 to 1, is there."""

    state: Warm = Warm.COLD
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Prefix:
    """What the prompt starts with, by which one warm-up is told from another."""

    system: str
    thinking: bool | None
    documents: tuple[tuple[str, str], ...]
    turns: int
    typed: str = ""
    """The next question as far as it is typed."""


class Cached:
    """How much of the prompt's head the engine has read. `conversation` gives the one in use."""

    def __init__(
        self, engine: "Engine", conversation: "Callable[[], Conversation]", counter: Counter
    ) -> None:
        self._engine, self._conversation, self._counter = engine, conversation, counter
        self._place = ""
        self.prefix: Prefix | None = None
        """What `_read` tokens of `total` in the cache belong to."""
        self._read = 0
        self.total: int | None = None
        self.is_sure = False
        """Whether the engine's word on it still holds."""

    @property
    def is_lost(self) -> bool:
        """Whether another engine runs now, so that nothing of it is in a cache."""
        return bool(self._place) and self._place != place_of(self._engine)

    @property
    def documents_tokens(self) -> int:
        """Tokens of all documents; a quarter of the characters where they are not counted yet."""
        return sum(self._tokens(each) for each in self._conversation().documents)

    def note(self, read: int, total: int | None, *, answering: bool = False) -> None:
        """The engine has read `read` tokens of the prompt as it is now, of `total`. While it is
        `answering`, what follows the answer is still to come."""
        now = self.now()
        if answering:
            now = replace(now, turns=min(now.turns, self._asked()))
        self._place, self.prefix = place_of(self._engine), now
        self._read, self.total, self.is_sure = read, total, True

    def forget(self) -> None:
        """Nothing is in the cache."""
        self._place, self.prefix, self._read, self.total = "", None, 0, None
        self.is_sure = False

    def take(self, event: Event) -> bool:
        """An event of an answer: what was read for it is in the cache. False where it tells
        nothing of that."""
        match event:
            case Prefill(processed, total):
                self.note(processed, total, answering=True)
            case Text() | Reasoning() if self._read < (self.total or 0) or self.total is None:
                self.note(self.total or self.documents_tokens, self.total, answering=True)
            case Progress(timings) | Finished(_, timings) if timings.prompt_tokens:
                self.note(timings.prompt_tokens, timings.prompt_tokens, answering=True)
            case _:
                return False
        return True

    def holds(self, now: Prefix) -> bool:
        """Whether all of it is known to be in the cache."""
        done = self.total is not None and self._read >= self.total - SAME_TOKENS
        here = self._place == place_of(self._engine)
        return done and here and self.is_sure and self._covers(now)

    def warmth(self, sha256: str, *, is_warming: bool) -> Warmth:
        """The state of an attached document; cold for any other."""
        documents = self._conversation().documents
        names = self._names(documents)
        read = self._read if self._place == place_of(self._engine) else 0
        known = self.prefix.documents if self.prefix else ()
        for index, document in enumerate(documents):
            if document.sha256 != sha256:
                continue
            if names[: index + 1] != known[: index + 1] or not self._same_head():
                return Warmth()
            begin, end = self._bounds(index)
            share = min(1.0, max(0.0, (read - begin) / max(1, end - begin)))
            if read >= end - SAME_TOKENS:
                return Warmth(Warm.WARM, 1.0)
            return Warmth(Warm.WARMING if is_warming else Warm.COLD, share)
        return Warmth()

    def now(self) -> Prefix:
        """What the next prompt starts with."""
        conversation = self._conversation()
        return Prefix(
            conversation.system,
            conversation.thinking,
            self._names(conversation.documents),
            count_answered(conversation.turns) - conversation.unsent_turns,
        )

    def _asked(self) -> int:
        """How many turns were answered before the last answer."""
        conversation = self._conversation()
        return count_answered(conversation.turns[:-1]) - conversation.unsent_turns

    def _covers(self, now: Prefix) -> bool:
        known = self.prefix
        return known is not None and (
            replace(known, turns=0) == replace(now, turns=0, typed="") and known.turns >= now.turns
        )

    def _same_head(self) -> bool:
        now, known = self.now(), self.prefix
        return known is not None and (known.system, known.thinking) == (now.system, now.thinking)

    def _names(self, documents: "list[Document]") -> tuple[tuple[str, str], ...]:
        return tuple((each.sha256, each.title) for each in documents)

    def _bounds(self, index: int) -> tuple[int, int]:
        """Between which tokens of the prompt a document lies, about: the engine's total is that
        of the documents and what stands before them."""
        tokens = [self._tokens(each) for each in self._conversation().documents]
        before, after = sum(tokens[:index]), sum(tokens[index + 1 :])
        only = self.prefix is not None and self.prefix.turns == 0
        total = self.total if only and self.total else sum(tokens)
        end = max(total - after, before + 1) if only else before + tokens[index]
        return end - tokens[index], end

    def _tokens(self, document: "Document") -> int:
        known = self._counter.known_document(document, self._engine)
        return known if known is not None else document.characters // 4


def count_answered(turns: "Sequence[Turn]") -> int:
    """How many turns there are up to the last answer."""
    count = len(turns)
    while count and (turns[count - 1].role == "user" or not turns[count - 1].text.strip()):
        count -= 1
    return count
