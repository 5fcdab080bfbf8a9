"""Warming: the documents are read into the engine's cache while the user still types.

For the app: make one `Warmer` for its life, run `run()` as a worker, and

- `poke()` after anything in the conversation changed (documents, system text, another session);
- `hold()` when the user sends: the warm-up stops at once, what it computed stays in the engine's
  cache and serves the question; `take(event)` with each event of the answer; `release()` after it;
- `warmth(sha256)` for each document's state, `eta_s` for the seconds left; `on_change` is called
  when either may be another.

A state is what the engine itself said: a document is warm when its tokens lie within what the
engine reported as read, and cold again after a restart of the engine. When another program used
the engine in between, the prefix is asked for once more, and the engine's word taken again.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from app.core.budget import thinking_of
from app.core.i18n import _
from app.core.shelf import kept
from app.core.shelf.counting import Counter, place_of
from engine_bridge.chat.events import Event, Finished, Prefill, Progress, Reasoning, Text
from engine_bridge.contract import EngineState
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    import httpx

    from app.core.conversation import Conversation, Turn
    from app.core.documents import Document
    from engine_bridge.backends.base import Endpoint
    from engine_bridge.contract import EngineStatus
    from engine_bridge.engine import Engine

STATUS_LAG_S = 3.0
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
class _Prefix:
    """What the prompt starts with, by which one warm-up is told from another."""

    system: str
    thinking: bool | None
    documents: tuple[tuple[str, str], ...]
    turns: int


class Warmer:
    """See the module. `conversation` gives the one in use. Servers that we did not start are
    warmed only with `attached`: their owner may want their time for something else."""

    def __init__(
        self,
        engine: "Engine",
        conversation: "Callable[[], Conversation]",
        counter: Counter,
        *,
        on_change: Callable[[], None] = lambda: None,
        enabled: bool = True,
        attached: bool = False,
        rewarm: bool = False,
    ) -> None:
        """`rewarm`: after a restart of the engine, too, without being asked."""
        self.enabled, self.attached, self.rewarm = enabled, attached, rewarm
        self.eta_s: float | None = None
        """Seconds until the running warm-up is done; None where none runs or nobody knows."""
        self.problem = ""
        """Why the last warm-up failed, a sentence; empty where it did not."""
        self._engine, self._conversation, self._counter = engine, conversation, counter
        self._on_change = on_change
        self._wake = asyncio.Event()
        self._held = 0
        self._task: asyncio.Task[None] | None = None
        self._rested_at = 0.0
        self._place = ""
        self._prefix: _Prefix | None = None
        """What `_read` tokens of `_total` in the engine's cache belong to."""
        self._read = 0
        self._total: int | None = None
        self._sure = False
        """Whether the engine's word on it still holds."""
        self._unasked: _Prefix | None = None
        """What was lost by a restart, and is warmed again only when asked."""

    # What the app calls

    async def run(self) -> None:
        """Warm whenever there is something to warm and the engine rests. Ends when cancelled."""
        follower = asyncio.create_task(self._follow())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._may_warm() and (prefix := self._wanted()):
                    task = self._task = asyncio.create_task(self._warm(prefix))
                    await asyncio.wait([task])
                    if self._task is task:
                        self._task = None
                    if not task.cancelled() and (error := task.exception()) is not None:
                        self.problem = repr(error)  # a fault of ours, not to be tried for ever
                    self._rested_at = time.monotonic()
                    self._on_change()
        finally:
            follower.cancel()
            self._cancel()

    def poke(self) -> None:
        """The conversation or a setting changed: look again what there is to warm."""
        if self._task is not None and self._prefix != self._now():
            self._cancel()
        self.problem = ""
        self._wake.set()
        self._on_change()

    def warm_now(self) -> None:
        """Warm again what a restart of the engine lost."""
        self._unasked = None
        self.poke()

    def hold(self) -> None:
        """The user's own request comes: stop at once, and warm nothing until `release`."""
        self._held += 1
        self._cancel()

    def release(self) -> None:
        """The request is over."""
        self._held = max(0, self._held - 1)
        self._rested_at = time.monotonic()
        self._wake.set()
        self._on_change()

    def take(self, event: Event) -> None:
        """An event of an answer to this conversation: what was read for it is in the cache."""
        match event:
            case Prefill(processed, total):
                self._note(processed, total)
            case Text() | Reasoning() if self._read < (self._total or 0) or self._total is None:
                self._note(self._total or self._documents_tokens(), self._total)
            case Progress(timings) | Finished(_, timings) if timings.prompt_tokens:
                self._note(timings.prompt_tokens, timings.prompt_tokens)

    @property
    def is_warming(self) -> bool:
        return self._task is not None

    def warmth(self, sha256: str) -> Warmth:
        """The state of an attached document; cold for any other."""
        documents = self._conversation().documents
        names = self._names(documents)
        read = self._read if self._place == place_of(self._engine) else 0
        known = self._prefix.documents if self._prefix else ()
        for index, document in enumerate(documents):
            if document.sha256 != sha256:
                continue
            if names[: index + 1] != known[: index + 1] or not self._same_head():
                return Warmth()
            begin, end = self._bounds(index)
            share = min(1.0, max(0.0, (read - begin) / max(1, end - begin)))
            if read >= end - SAME_TOKENS:
                return Warmth(Warm.WARM, 1.0)
            return Warmth(Warm.WARMING if self.is_warming else Warm.COLD, share)
        return Warmth()

    # How it is decided

    def _may_warm(self) -> bool:
        status = self._engine.status
        foreign = status.spec is not None and status.spec.backend == "attach"
        return (
            self.enabled
            and not self._held
            and status.state is EngineState.READY
            and (self.attached or not foreign)
        )

    def _wanted(self) -> _Prefix | None:
        """What should be warm and is not known to be."""
        now = self._now()
        if not now.documents or self.problem:
            return None
        done = self._total is not None and self._read >= self._total - SAME_TOKENS
        here = self._place == place_of(self._engine)
        return None if done and here and self._sure and self._covers(now) else now

    def _covers(self, now: _Prefix) -> bool:
        known = self._prefix
        return known is not None and (
            replace(known, turns=0) == replace(now, turns=0) and known.turns >= now.turns
        )

    def _now(self) -> _Prefix:
        conversation = self._conversation()
        return _Prefix(
            conversation.system,
            thinking_of(conversation),
            self._names(conversation.documents),
            _count_answered(conversation.turns) - conversation.unsent_turns,
        )

    def _same_head(self) -> bool:
        now, known = self._now(), self._prefix
        return known is not None and (known.system, known.thinking) == (now.system, now.thinking)

    def _names(self, documents: "list[Document]") -> tuple[tuple[str, str], ...]:
        return tuple((each.sha256, each.title) for each in documents)

    def _bounds(self, index: int) -> tuple[int, int]:
        """Between which tokens of the prompt a document lies, about: the engine's total is that
        of the documents and what stands before them."""
        tokens = [self._tokens(each) for each in self._conversation().documents]
        before, after = sum(tokens[:index]), sum(tokens[index + 1 :])
        only = self._prefix is not None and self._prefix.turns == 0
        total = self._total if only and self._total else sum(tokens)
        end = max(total - after, before + 1) if only else before + tokens[index]
        return end - tokens[index], end

    def _tokens(self, document: "Document") -> int:
        known = self._counter.known_document(document, self._engine)
        return known if known is not None else document.characters // 4

    def _documents_tokens(self) -> int:
        return sum(self._tokens(each) for each in self._conversation().documents)

    # What happens

    async def _follow(self) -> None:
        async for status in self._engine.updates():
            self._see(status)

    def _see(self, status: "EngineStatus") -> None:
        """The engine's state is another."""
        if status.state.is_usable and self._place and self._place != place_of(self._engine):
            self._forget()
        ours = self._task is not None or self._held > 0
        others = status.load.waiting > 0 or status.load.running > 1
        if ours and others and self._task is not None:
            self._cancel()  # somebody else waits for the engine; we go on when it rests
        elif status.state is EngineState.BUSY and not ours:
            # The status is up to a second old: at first it may still be our own work.
            self._sure = self._sure and time.monotonic() - self._rested_at < STATUS_LAG_S
        if status.state is EngineState.READY and not ours:
            self._wake.set()

    def _forget(self) -> None:
        """Another engine runs now: nothing is in its cache."""
        self._unasked = None if self.rewarm else self._prefix
        self._place, self._prefix, self._read, self._total = "", None, 0, None
        self._sure = False
        self._on_change()

    def _note(self, read: int, total: int | None) -> None:
        self._place, self._prefix = place_of(self._engine), self._now()
        self._read, self._total, self._sure = read, total, True
        self._on_change()

    async def _warm(self, prefix: _Prefix) -> None:
        from engine_bridge.chat import web

        engine, conversation = self._engine, _answered(self._conversation())
        endpoint = engine.endpoint
        if endpoint is None:
            return
        try:
            for document in conversation.documents:
                await self._counter.document(document, engine)
            if not self._fits(conversation):
                self.problem = _("The documents do not fit the context.")
                return
            restored = await kept.restore(conversation, engine)
            if prefix == self._unasked and not restored:
                self.problem = _("The engine was started anew.")
                return
            async with web.new_client(endpoint.base_url) as http:
                await self._read_ahead(prefix, conversation, endpoint, http)
            await kept.save(conversation, engine, self._total)
        except BridgeError as error:
            self.problem = error.reason

    async def _read_ahead(
        self,
        prefix: _Prefix,
        conversation: "Conversation",
        endpoint: "Endpoint",
        http: "httpx.AsyncClient",
    ) -> None:
        from engine_bridge.chat import warm
        from engine_bridge.chat.flavour import flavour_of
        from engine_bridge.chat.prefill import forecast_for

        status = self._engine.status
        forecast = await asyncio.to_thread(forecast_for, status)
        events = warm.warm(
            endpoint,
            flavour_of(status),
            conversation.model or status.model_name,
            conversation.messages(),
            http,
            thinking=thinking_of(conversation),
        )
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, Prefill):
                        self.eta_s = forecast.update(event).eta_s
                        self._noted(prefix, event.processed, event.total)
                    else:
                        self._noted(prefix, event.total_tokens, event.total_tokens)
        finally:
            self.eta_s = None
            await asyncio.to_thread(forecast.finish)

    def _fits(self, conversation: "Conversation") -> bool:
        context = self._engine.status.context_tokens
        return context is None or self._documents_tokens() < context

    def _noted(self, prefix: _Prefix, read: int, total: int) -> None:
        if prefix == self._now():
            self._note(read, total)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self.eta_s = None
            self._on_change()


def _answered(conversation: "Conversation") -> "Conversation":
    """The conversation without a last question that has no answer."""
    turns = conversation.turns
    return replace(conversation, turns=turns[: _count_answered(turns)])


def _count_answered(turns: "Sequence[Turn]") -> int:
    """How many turns there are up to the last answer."""
    count = len(turns)
    while count and (turns[count - 1].role == "user" or not turns[count - 1].text.strip()):
        count -= 1
    return count
