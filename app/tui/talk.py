"""Carries messages to the engine one after the other, and replies back to the transcript."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from textual.worker import Worker

from app.core import figures
from app.core.conversation import Turn
from app.tui.panel.words import is_down
from app.tui.transcript.entries import Reply, UserEntry
from engine_bridge.chat.events import Event, Prefill, Progress, Reasoning, Text, Timings, Waiting
from engine_bridge.contract import EngineState
from engine_bridge.errors import BridgeError, UsageError

if TYPE_CHECKING:
    from app.tui.app import LingChat
    from app.tui.screens.chat import ChatScreen

SETTLE_S = 10.0
AGAIN = "Ctrl+R asks again."
FOR_ENGINE = "sent when the engine is ready"
FOR_REPLY = "sent after this reply"
FOR_DOCUMENTS = "sent when its documents are read"
FOR_CURE = "kept until the engine runs again: F5 starts it"


class Talk:
    """One reply at a time; messages typed meanwhile wait in order, visibly."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen
        self._queue: deque[UserEntry] = deque()
        self._worker: Worker[None] | None = None
        self._reply: Reply | None = None
        self._stopping: tuple[Reply, float] | None = None
        """A reply that the user stopped while the engine read its prompt, and since when."""
        self._told = (False, False)

    @property
    def _app(self) -> "LingChat":
        return self._screen.app

    @property
    def is_running(self) -> bool:
        return self._reply is not None

    @property
    def can_stop(self) -> bool:
        """Whether there is a reply to stop or a message to take back."""
        return self.is_running or bool(self._queue)

    def say(self, text: str) -> None:
        """Send a message as soon as it can be sent."""
        titles = () if self._app.conversation.turns or self._queue else self._titles()
        entry = UserEntry(text, titles)
        self._queue.append(entry)
        self._screen.transcript.append(entry)
        self.pump()

    def _titles(self) -> tuple[str, ...]:
        return tuple(document.title for document in self._app.conversation.documents)

    def pump(self) -> None:
        """Send the next message if nothing stands against it."""
        state = self._app.status.state
        if self._stopping is not None and state is not EngineState.BUSY:
            self._settle()
        is_free = not self.is_running and not self._screen.desk.is_reading
        if self._queue and is_free and state.is_usable and not self._app.wanted:
            entry = self._queue.popleft()
            entry.set_waits("")
            self._begin(entry, lambda: self._app.conversation.ask(entry.text, self._app.engine))
        if self.is_running:
            waits = FOR_REPLY
        elif self._screen.desk.is_reading:
            waits = FOR_DOCUMENTS
        elif is_down(self._app.status):
            waits = FOR_CURE
        else:
            waits = FOR_ENGINE
        for entry in self._queue:
            entry.set_waits(waits)
        self._screen.transcript.touch()
        self._tell()

    def _tell(self) -> None:
        """Let the footer show other keys, where others do something now."""
        now = (self.can_stop, self._screen.transcript.last_reply is not None)
        if now != self._told:
            self._told = now
            self._screen.refresh_bindings()

    def stop(self) -> str:
        """Stop the running reply; else take back the last message that waits and return it."""
        if self._worker is not None and self.is_running and self._stopping is None:
            self._worker.cancel()
            return ""
        if not self._queue:
            return ""
        entry = self._queue.pop()
        self._screen.transcript.take_away(entry)
        self._tell()
        return entry.text

    def regenerate(self) -> None:
        """Ask the last question again. Raises UsageError when there is none or one is running."""
        transcript, turns = self._screen.transcript, self._app.conversation.turns
        if self.is_running:
            raise UsageError("A reply is still running.", "Esc stops it.")
        if not turns:
            raise UsageError("There is no answer to make again.", "Ask something first.")
        if not self._app.status.state.is_usable:
            raise UsageError("The engine is not ready.", "F5 starts it.")
        last = transcript.last_reply
        asked = [e for e in transcript.entries if isinstance(e, UserEntry) and not e.waits]
        if last is not None and turns[-1].role == "assistant":
            transcript.take_away(last)
        self._begin(asked[-1], lambda: self._app.conversation.regenerate(self._app.engine))

    def clear(self) -> None:
        """Begin anew."""
        self._queue.clear()
        if self._worker is not None:
            self._worker.cancel()
        self._reply = self._stopping = None
        self._app.conversation.clear()
        self._screen.transcript.clear()
        self._tell()

    def tick(self) -> None:
        """Time went by: a running thought's clock moves."""
        if self._stopping is not None and time.monotonic() - self._stopping[1] > SETTLE_S:
            self._settle()
        if self._reply is not None:
            self._reply.tick()
            self._screen.transcript.touch()

    def _begin(self, after: UserEntry, ask: Callable[[], AsyncIterator[Event]]) -> None:
        reply = Reply()
        reply.set_activity("reading the prompt")
        self._reply = reply
        transcript = self._screen.transcript
        transcript.insert(transcript.entries.index(after) + 1, reply)
        self._app.live.begin()
        self._worker = self._screen.run_worker(
            self._run(reply, ask), group="reply", exit_on_error=True
        )
        self._tell()

    async def _run(self, reply: Reply, ask: Callable[[], AsyncIterator[Event]]) -> None:
        turns = self._app.conversation.turns
        events = cast(AsyncGenerator[Event], ask())
        try:
            async with aclosing(events):
                async for event in events:
                    self._take(event, reply)
            self._finish(reply, turns)
        except asyncio.CancelledError:
            self._stopped(reply)
            raise
        except BridgeError as error:
            cure = f"{error.cure} {AGAIN}".strip()
            reply.finish(self._app.live.timings, error.reason, cure)
        except Exception as error:
            # A fault of ours must not cost the user the conversation.
            reason = f"Something went wrong that should not: {error!r}."
            reply.finish(self._app.live.timings, reason, AGAIN)
        finally:
            self._app.live.end()
            if self._reply is reply and self._stopping is None:
                self._end()

    def _end(self) -> None:
        self._reply = None
        self._screen.transcript.touch()
        self._app.reply_ended()
        self.pump()

    def _stopped(self, reply: Reply) -> None:
        """The user stopped it. The engine ends a batch of the prompt that it has begun, so such a
        reply is over only when the engine is idle, or after SETTLE_S if others keep it busy."""
        is_reading = not reply.text and not reply.thinking
        if self._reply is reply and is_reading and self._app.status.state is EngineState.BUSY:
            self._stopping = (reply, time.monotonic())
            reply.set_activity("stopping…")
            self._screen.transcript.touch()
        else:
            reply.finish(self._app.live.timings, "Stopped.", AGAIN, is_bad=False)

    def _settle(self) -> None:
        assert self._stopping is not None
        reply, _ = self._stopping
        self._stopping = None
        reply.finish(self._app.live.timings, "Stopped.", AGAIN, is_bad=False)
        self._end()

    def _finish(self, reply: Reply, turns: list[Turn]) -> None:
        turn = turns[-1] if turns else Turn("assistant")
        timings: Timings = turn.timings or self._app.live.timings
        if turn.finish_reason == "length":
            reason, cure = "The reply reached its length limit.", "Ask it to go on."
            reply.finish(timings, reason, cure, is_bad=False)
        elif not turn.text.strip():
            reply.finish(timings, "The model said nothing.", AGAIN, is_bad=False)
        else:
            reply.finish(timings)

    def _take(self, event: Event, reply: Reply) -> None:
        self._app.live.take(event)
        match event:
            case Text(text):
                reply.feed(text)
            case Reasoning(text):
                reply.feed_thinking(text)
            case Prefill():
                share = self._app.live.prefill_share or 0.0
                # The time left stands in the panel or on the status line.
                reply.set_activity(f"reading the prompt: {share:.0%}")
            case Waiting(reason, retry_in_s):
                again = f"trying again in {figures.seconds(retry_in_s)}"
                reply.set_activity(f"{reason.rstrip('.')}: {again}")
            case Progress(timings) if reply.thinking and not reply.text:
                reply.thinking_tokens = timings.completion_tokens
            case _:
                pass
        self._screen.transcript.touch()
