"""Carries messages to the engine one after the other, and replies back to the transcript."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from textual.worker import Worker, WorkerError, WorkType

from app.core import figures
from app.core.chat.tree import Turn
from app.core.context.budget import TooLongError
from app.core.i18n import _, shown
from app.tui import keymap
from app.tui.panel.words import is_down
from app.tui.transcript.entries import Entry, Reply, UserEntry
from app.tui.transcript.turns import ending, entries_of, what_helps
from engine_bridge.chat.events import Event, Prefill, Progress, Reasoning, Text, Waiting
from engine_bridge.contract import EngineState
from engine_bridge.errors import BridgeError, UsageError, brief

if TYPE_CHECKING:
    from app.tui.app import LingChat
    from app.tui.screens.chat import ChatScreen

SETTLE_S = 10.0


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
        self.editing: Turn | None = None
        """A question that is being put in other words."""
        self.thinking: bool | None = None
        """Whether the answer to the next message is thought about; None takes the session's."""

    @property
    def _app(self) -> "LingChat":
        return self._screen.app

    @property
    def is_running(self) -> bool:
        return self._reply is not None

    @property
    def can_stop(self) -> bool:
        """Whether there is a reply to stop, a message to take back or an edit to give up."""
        return self.is_running or bool(self._queue) or self.editing is not None

    def say(self, text: str) -> None:
        """Send a message as soon as it can be sent; in place of the one that is being edited."""
        titles = () if self._app.conversation.turns or self._queue else self._titles()
        entry = UserEntry(text, titles)
        entry.replaces, entry.thinking = self.editing, self.thinking
        self.editing = self.thinking = None
        if entry.replaces is not None:
            self._take_away_from(entry.replaces)
        self._queue.append(entry)
        self._screen.transcript.append(entry)
        self.pump()

    def _take_away_from(self, turn: Turn) -> None:
        """Show the conversation up to before this turn."""
        transcript = self._screen.transcript
        there = transcript.entries
        place = next((n for n, entry in enumerate(there) if entry.node is turn), len(there))
        transcript.load([*there[:place], *self._queue])

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
            self._begin(entry, self._asking(entry))
        if self.is_running:
            waits = _("sent after this reply")
        elif self._screen.desk.is_reading:
            waits = _("sent when its documents are read")
        elif is_down(self._app.status):
            waits = _("kept until the engine runs again: {key} starts it").format(
                key=keymap.key("app.start_engine")
            )
        else:
            waits = _("sent when the engine is ready")
        for entry in self._queue:
            entry.set_waits(waits)
        self._screen.transcript.touch()
        self._tell()

    def _asking(self, entry: UserEntry) -> Callable[[], AsyncIterator[Event]]:
        talk, engine = self._app.conversation, self._app.engine
        if (old := entry.replaces) is None:
            return lambda: talk.ask(entry.text, engine, thinking=entry.thinking)
        count = len(talk.siblings(old)) + 1
        entry.version = (count, count)
        return lambda: talk.edit(old, entry.text, engine, thinking=entry.thinking)

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

    def regenerate(self, turn: Turn | None = None) -> None:
        """Answer the last question again, or that of the answer `turn`; the old answer stays as
        another version. Raises UsageError when there is none or one is running."""
        self._must_be_free()
        talk, engine = self._app.conversation, self._app.engine
        if not talk.turns:
            raise UsageError(_("There is no answer to make again."), _("Ask something first."))
        if turn is None and talk.turns[-1].role == "assistant":
            turn = talk.turns[-1]
        count = 1
        if turn is not None:
            said = bool(turn.text.strip() or turn.reasoning.strip())
            count = len(talk.siblings(turn)) + said
            self._take_away_from(turn)
        asked = [e for e in self._screen.transcript.entries if self._is_asked(e)]
        self._begin(asked[-1], lambda: talk.regenerate(engine, turn)).version = (count, count)

    def go_on(self) -> None:
        """Let the last answer, which was cut, grow on. Raises UsageError when it is not."""
        self._must_be_free()
        talk, engine = self._app.conversation, self._app.engine
        turn = talk.turns[-1] if talk.turns else None
        if turn is None or not turn.is_cut:
            raise UsageError(_("The last answer is complete."), _("Ask something."))
        old = self._screen.transcript.last_reply
        self._take_away_from(turn)
        asked = [e for e in self._screen.transcript.entries if self._is_asked(e)]
        reply = self._begin(asked[-1], lambda: talk.go_on(engine), turn)
        reply.version = old.version if old is not None else (1, 1)

    @property
    def can_go_on(self) -> bool:
        """Whether the last answer was cut and nothing runs."""
        turns = self._app.conversation.turns
        return bool(turns) and turns[-1].is_cut and not self.is_running and not self._queue

    def switch(self, turn: Turn, step: int) -> None:
        """Show the version before (`step` -1) or after (1) this one. Raises UsageError where
        there is none or a reply runs."""
        self._must_not_run()
        siblings = self._app.conversation.siblings(turn)
        place = siblings.index(turn) + step
        if place < 0:
            raise UsageError(_("This is the first version."))
        if place == len(siblings):
            raise UsageError(_("This is the last version."), _("Ask again to have another one."))
        self.show_branch(siblings[place])
        self._screen.transcript.mark(siblings[place])

    def show_branch(self, turn: Turn) -> None:
        """Make the branch of `turn` the active one. Raises UsageError while a reply runs."""
        self._must_not_run()
        self._app.conversation.switch(turn)
        self.show()

    def show(self) -> None:
        """Show the conversation as it is, after it became another one."""
        self._screen.transcript.load([*entries_of(self._app.conversation), *self._queue])
        check = cast(WorkType[None], self._screen.desk.trail.check_all)
        self._screen.run_worker(check, group="all-sources", exclusive=True, exit_on_error=False)
        self._tell()

    def _must_not_run(self) -> None:
        if self.is_running:
            key = keymap.key("chat.stop")
            raise UsageError(_("A reply is still running."), _("{key} stops it.").format(key=key))

    def _must_be_free(self) -> None:
        self._must_not_run()
        if not self._app.status.state.is_usable:
            key = keymap.key("app.start_engine")
            raise UsageError(_("The engine is not ready."), _("{key} starts it.").format(key=key))

    @staticmethod
    def _is_asked(entry: Entry) -> bool:
        return isinstance(entry, UserEntry) and not entry.waits

    async def leave(self) -> None:
        """Stop what runs and forget what waits, before the conversation becomes another one."""
        self._queue.clear()
        worker, self._worker = self._worker, None
        if worker is not None and self.is_running:
            worker.cancel()
            with contextlib.suppress(WorkerError):
                await worker.wait()
        self._reply = self._stopping = self.editing = self.thinking = None

    def tick(self) -> None:
        """Time went by: a running thought's clock moves."""
        if self._stopping is not None and time.monotonic() - self._stopping[1] > SETTLE_S:
            self._settle()
        if self._reply is not None:
            self._reply.tick()
            self._screen.transcript.touch()

    def _begin(
        self, after: Entry, ask: Callable[[], AsyncIterator[Event]], unfinished: Turn | None = None
    ) -> Reply:
        """Show a reply that grows; `unfinished` has what was said of it before."""
        reply = Reply()
        if unfinished is not None:
            reply.feed_thinking(unfinished.reasoning)
            reply.feed(unfinished.text)
            reply.thought = unfinished.timings
        reply.set_activity(_("reading the prompt"))
        self._reply = reply
        transcript = self._screen.transcript
        transcript.insert(transcript.entries.index(after) + 1, reply)
        self._app.live.begin()
        self._app.sessions.reply_begins()
        self._app.sessions.keep()
        self._worker = self._screen.run_worker(
            self._run(reply, after, ask), group="reply", exit_on_error=True
        )
        self._tell()
        return reply

    async def _run(
        self, reply: Reply, asked: Entry, ask: Callable[[], AsyncIterator[Event]]
    ) -> None:
        turns = self._app.conversation.turns
        events = self._screen.desk.asking(cast(AsyncGenerator[Event], ask()))
        try:
            async with aclosing(events):
                async for event in events:
                    if reply.node is None and len(turns) > 1:
                        asked.node, reply.node = turns[-2:]
                    self._take(event, reply)
            self._finish(reply, *ending(self._turn_of(reply, turns)))
            check = self._screen.desk.trail.check(reply)
            self._screen.run_worker(check, group="sources", exit_on_error=False)
        except asyncio.CancelledError:
            self._stopped(reply)
            raise
        except TooLongError as error:
            self._too_long(reply, asked, error)
        except BridgeError as error:
            helps = what_helps(self._turn_of(reply, turns))
            self._finish(reply, error.reason, f"{error.cure} {helps}".strip())
        except Exception as error:
            # A fault of ours must not cost the user the conversation.
            reason = _("Something went wrong that should not: {error}.").format(error=brief(error))
            self._finish(reply, reason, what_helps(None))
        finally:
            self._app.live.end()
            if self._reply is reply and self._stopping is None:
                self._end()

    @staticmethod
    def _turn_of(reply: Reply, turns: list[Turn]) -> Turn:
        if reply.node is None and turns and turns[-1].role == "assistant":
            reply.node = turns[-1]
        return reply.node if isinstance(reply.node, Turn) else Turn("assistant")

    def _finish(self, reply: Reply, reason: str, cure: str, is_bad: bool = True) -> None:
        timings = reply.node.timings if isinstance(reply.node, Turn) else None
        reply.finish(timings or self._app.live.timings, reason, cure, is_bad)

    def _too_long(self, reply: Reply, asked: Entry, error: TooLongError) -> None:
        """Neither the question nor an answer is in the conversation: what to do is the user's."""
        self._screen.transcript.take_away(reply)
        if isinstance(asked, UserEntry):
            self._screen.transcript.take_away(asked)
            fit = self._screen.desk.too_long(error.budget, asked)
            self._screen.run_worker(fit, group="fit")

    def _end(self) -> None:
        self._reply = None
        self._screen.transcript.touch()
        self._app.reply_ended()
        self.pump()
        if not self.is_running:
            self._app.sessions.reply_ended()

    def _stopped(self, reply: Reply) -> None:
        """The user stopped it. The engine ends a batch of the prompt that it has begun, so such a
        reply is over only when the engine is idle, or after SETTLE_S if others keep it busy."""
        is_reading = not reply.text and not reply.thinking
        if self._reply is reply and is_reading and self._app.status.state is EngineState.BUSY:
            self._stopping = (reply, time.monotonic())
            reply.set_activity(_("stopping…"))
            self._screen.transcript.touch()
        else:
            self._finish_stopped(reply)

    def _finish_stopped(self, reply: Reply) -> None:
        turn = self._turn_of(reply, self._app.conversation.turns)
        self._finish(reply, _("Stopped."), what_helps(turn), is_bad=False)

    def _settle(self) -> None:
        assert self._stopping is not None
        reply, _ = self._stopping
        self._stopping = None
        self._finish_stopped(reply)
        self._end()

    def _take(self, event: Event, reply: Reply) -> None:
        self._app.live.take(event)
        match event:
            case Text(text):
                reply.feed(text)
            case Reasoning(text):
                reply.feed_thinking(text)
            case Prefill():
                # The time left stands in the panel or on the status line.
                reply.set_activity(figures.prefill_line(event, self._app.glyphs.dot))
            case Waiting(reason, retry_in_s):
                again = _("trying again in {time}").format(time=figures.seconds(retry_in_s))
                reply.set_activity(f"{shown(reason).rstrip('.')}: {again}")
            case Progress(timings) if reply.thinking and not reply.text:
                reply.thinking_tokens = timings.thought_tokens
            case _:
                pass
        self._screen.transcript.touch()
