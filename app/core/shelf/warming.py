"""Warming: the documents are read into the engine's cache while the user still types.

A question stops it at once: what was computed stays in the engine's cache and serves the question.
After an answer its end and the beginning of the next question's message are read, too, and on the
embedded engine what is typed of that question when the user rests; so of a question that comes
after a rest nothing is left to read but its last token.
When another program used the engine in between, the prefix is asked for once more, and the
engine's word taken again.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from app.core.chat.answering import is_ours
from app.core.i18n import _
from app.core.shelf import kept, words
from app.core.shelf.cached import Cached, Prefix, Warmth, count_answered
from app.core.shelf.counting import Counter
from engine_bridge.chat.events import Event, Prefill
from engine_bridge.contract import EngineState
from engine_bridge.errors import BridgeError, brief

if TYPE_CHECKING:
    import httpx

    from app.core.chat.conversation import Conversation
    from engine_bridge.backends.base import Endpoint
    from engine_bridge.contract import EngineStatus
    from engine_bridge.engine import Engine

STATUS_LAG_S = 3.0


class Warmer:
    """One for the app's life; `run` it as a worker. `conversation` gives the one in use, and
    `on_change` is called when `warmth` or `eta_s` may be another. Servers that we did not start
    are warmed only with `attached`: their owner may want their time for something else."""

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
        with_words: bool = True,
    ) -> None:
        """`rewarm`: after a restart of the engine, too, without being asked. `with_words`: also
        what is typed of the next question."""
        self.enabled, self.attached, self.rewarm = enabled, attached, rewarm
        self.with_words = with_words
        self.eta_s: float | None = None
        """Seconds until the running warm-up is done; None where none runs or nobody knows."""
        self.problem = ""
        """Why the last warm-up failed, a sentence; empty where it did not."""
        self._engine, self._conversation, self._counter = engine, conversation, counter
        self._cached = Cached(engine, conversation, counter)
        self._on_change = on_change
        self._wake = asyncio.Event()
        self._held = 0
        self._task: asyncio.Task[None] | None = None
        self._doing: Prefix | None = None
        """What the task reads."""
        self._typed = ""
        self._read: Prefix | None = None
        """What was typed and read last."""
        self._rested_at = 0.0
        self._stopped: Prefix | None = None
        """What the user stopped last, and is warmed again only when asked."""
        self._unasked: Prefix | None = None
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
                    self._doing = prefix
                    task = self._task = asyncio.create_task(self._warm(prefix))
                    await asyncio.wait([task])
                    if self._task is task:
                        self._task = self._doing = None
                    if not task.cancelled() and (error := task.exception()) is not None:
                        self.problem = brief(error)  # a fault of ours, not to be tried for ever
                    self._rested_at = time.monotonic()
                    self._on_change()
        finally:
            follower.cancel()
            self._cancel()

    def poke(self) -> None:
        """The conversation or a setting changed: look again what there is to warm."""
        if self._doing is not None and replace(self._doing, typed="") != self._cached.now():
            self._cancel()
        self.problem = ""
        self._wake.set()
        self._on_change()

    def typed(self, text: str) -> None:
        """The user rests after typing this, the next question as it would be sent; empty while
        they type on, or where it is something else."""
        if self._doing is not None and self._doing.typed not in ("", text):
            self._cancel()
        self._typed = text
        if text:
            self._wake.set()

    def has_read(self, question: str) -> bool:
        """Whether this question, after the conversation as it is, is in the cache."""
        wanted = replace(self._cached.now(), typed=question)
        return self._task is None and wanted == self._read and self._cached.holds(wanted)

    def warm_now(self) -> None:
        """Warm again what a restart of the engine lost, or go on with what was stopped."""
        self._unasked = self._stopped = None
        self.poke()

    def stop(self) -> bool:
        """The user wants the engine to rest: the documents are read on with the next question, or
        when asked. False where nothing of them is being read."""
        if not self.is_reading_documents:
            return False
        self._stopped = self._doing
        self._cancel()
        return True

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
        if self._cached.take(event):
            self._on_change()

    @property
    def is_warming(self) -> bool:
        return self._task is not None

    @property
    def is_reading_documents(self) -> bool:
        """Whether more than what is typed is read; what is only being kept on disk was read."""
        doing = self._doing
        return doing is not None and not doing.typed and not self._cached.holds(doing)

    def warmth(self, sha256: str) -> Warmth:
        """The state of an attached document; cold for any other."""
        return self._cached.warmth(sha256, is_warming=self.is_warming)

    # How it is decided

    def _may_warm(self) -> bool:
        return (
            self.enabled
            and not self._held
            and self._engine.status.state is EngineState.READY
            and (self.attached or is_ours(self._engine))
        )

    def _wanted(self) -> Prefix | None:
        """What should be warm and is not known to be."""
        now = self._cached.now()
        if not now.documents or self.problem:
            return None
        if not self._cached.holds(now):
            return now if now != self._stopped else None
        now = replace(now, typed=self._typed)
        return now if self._typed and self.with_words and now != self._read else None

    # What happens

    async def _follow(self) -> None:
        async for status in self._engine.updates():
            self._see(status)

    def _see(self, status: "EngineStatus") -> None:
        """The engine's state is another."""
        if status.state.is_usable and self._cached.is_lost:
            self._unasked = None if self.rewarm else self._cached.prefix
            self._cached.forget()
            self._on_change()
        ours = self._task is not None or self._held > 0
        others = status.load.waiting > 0 or status.load.running > 1
        if ours and others and self._task is not None:
            self._cancel()  # somebody else waits for the engine; we go on when it rests
        elif status.state is EngineState.BUSY and not ours:
            # The status is up to a second old: at first it may still be our own work.
            lagging = time.monotonic() - self._rested_at < STATUS_LAG_S
            self._cached.is_sure = self._cached.is_sure and lagging
        if status.state is EngineState.READY and not ours:
            self._wake.set()

    async def _warm(self, prefix: Prefix) -> None:
        from engine_bridge.chat import web

        engine, conversation = self._engine, _answered(self._conversation())
        endpoint = engine.endpoint
        if endpoint is None:
            return
        if prefix.typed:
            self._read = prefix
            await words.read(prefix.typed, conversation, engine)
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
            await kept.save(conversation, engine, self._cached.total)
        except BridgeError as error:
            self.problem = error.reason

    async def _read_ahead(
        self,
        prefix: Prefix,
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
            thinking=conversation.thinking,
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
        return context is None or self._cached.documents_tokens < context

    def _noted(self, prefix: Prefix, read: int, total: int) -> None:
        if prefix == self._cached.now():
            self._cached.note(read, total)
            self._on_change()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            if self._doing is not None and self._doing.typed:
                self._read = None
            self._task = self._doing = None
            self.eta_s = None
            self._on_change()


def _answered(conversation: "Conversation") -> "Conversation":
    """The conversation without a last question that has no answer."""
    turns = conversation.turns
    return replace(conversation, turns=turns[: count_answered(turns)])
