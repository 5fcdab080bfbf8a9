"""A conversation without a face: the app and `ask` both drive this."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from app.core.chat import sampling, tree
from app.core.chat.answering import answers
from app.core.chat.growing import going_on, grow, origin_of
from app.core.chat.prompt import documents_prompt
from app.core.chat.tree import Turn
from app.core.context import budget
from app.core.context.budget import TooLongError
from app.core.documents import Document
from app.core.i18n import _
from engine_bridge.chat.events import ChatRequest, Event, Message, Parameters
from engine_bridge.errors import BridgeError, UsageError

if TYPE_CHECKING:
    from app.core.shelf.counting import Counter
    from engine_bridge.engine import Engine

__all__ = ["Conversation", "Parameters", "Turn", "Watcher"]

STOPPED = "stopped"


class Watcher(Protocol):
    """Told of each change at once, on the thread that makes it; must not block."""

    def added(self, turn: Turn) -> None: ...
    def grew(self, turn: Turn) -> None: ...
    def ended(self, turn: Turn) -> None: ...
    def removed(self, turn: Turn) -> None: ...
    def changed(self) -> None:
        """Another branch, or other settings or documents."""


@dataclass
class Conversation:
    """Turns, documents and settings: plain data, so that it can be stored as it is."""

    turns: list[Turn] = field(default_factory=list)
    """The active branch, from the first question on. Stays the same list."""
    documents: list[Document] = field(default_factory=list)
    system: str = ""
    model: str = ""
    """The name to send; empty takes the engine's own."""
    parameters: Parameters = field(default_factory=Parameters)
    preset: str = ""
    """The name of the preset that system text and parameters came from; empty: none."""
    others: list[Turn] = field(default_factory=list)
    """The turns of all other branches."""
    unsent_turns: int = 0
    """How many of the oldest turns are not sent any more, so that the prompt fits the context."""

    def __post_init__(self) -> None:
        tree.chain(self.turns)
        self.watcher: Watcher | None = None
        self.counter: Counter | None = None
        """Remembers token counts from one question to the next."""

    def attach(self, document: Document) -> bool:
        """Add a document after those already there, so that their cached prefix stays valid.

        False where the same text is attached already.
        """
        if any(document.sha256 == known.sha256 for known in self.documents):
            return False
        self.documents.append(document)
        self.changed()
        return True

    def messages(self) -> tuple[Message, ...]:
        """The prompt: system text, then the documents at the head of the first question.

        The documents always come first and in the order they were attached, so the engine's
        prefix cache serves every later question. They share the first question's message
        because many chat templates allow only alternating roles; for the same reason a question
        that got no answer is left out, unless it is the last, and answers in a row become one.
        """
        kept: list[Turn] = []
        for turn in self.turns[self.unsent_turns :]:
            if kept and turn.role == kept[-1].role == "user":
                kept.pop()
            if turn.role == "user" or turn.text.strip():
                kept.append(turn)
        prompt = [
            Message(role, "\n\n".join(turn.text for turn in turns))
            for role, turns in groupby(kept, key=attrgetter("role"))
        ]
        shelf = documents_prompt(self.documents)
        if shelf and prompt:
            prompt[0] = Message("user", shelf + prompt[0].content)
        elif shelf:
            prompt = [Message("user", shelf)]
        if self.system.strip():
            prompt.insert(0, Message("system", _storable(self.system)))
        return tuple(prompt)

    @property
    def thinking(self) -> bool | None:
        """Whether the next request asks for thinking, which some templates write into the prompt:
        as its question says, else as the session does."""
        asked = next((turn for turn in reversed(self.turns) if turn.role == "user"), None)
        own = asked.thinking if asked is not None else None
        return self.parameters.thinking if own is None else own

    def request(self) -> ChatRequest:
        """What is sent for the active branch as it is."""
        settings = {name: getattr(self.parameters, name) for name in Parameters.__slots__}
        stop = tuple(map(_storable, self.parameters.stop))
        return ChatRequest(self.messages(), **settings | {"stop": stop, "thinking": self.thinking})

    # Branches

    def siblings(self, turn: Turn) -> list[Turn]:
        """`turn` and the others in its place, oldest first: answers to the same question, or
        versions of the same question."""
        return tree.after([*self.turns, *self.others], turn.parent)

    def switch(self, turn: Turn) -> None:
        """Make the branch of `turn` the active one, to where it was last looked at."""
        for before, following in pairwise(self.turns):
            before.chosen = following.id
        self._take(tree.path_through([*self.turns, *self.others], turn))
        self.changed()

    def clear(self) -> None:
        """Forget all turns; documents and settings stay."""
        self.turns.clear()
        self.others.clear()

    def changed(self) -> None:
        """Tell the watcher that settings, documents or the active branch are other ones now."""
        if self.watcher is not None:
            self.watcher.changed()

    # Asking

    async def ask(
        self, text: str, engine: "Engine", *, thinking: bool | None = None
    ) -> AsyncGenerator[Event, None]:
        """Append the question and its answer, and yield the answer's events as it grows.

        Waits for the engine to be ready. Closing this generator stops the engine's work and
        keeps what arrived, with `finish_reason` "stopped". Raises UsageError for an empty
        question and `app.core.context.budget.TooLongError` for a prompt that does not fit (then the
        conversation is as it was), else what `engine_bridge.chat.client.stream` raises; the
        answer then carries the reason in `broken`.
        """
        question = _question(text, thinking)
        self._append(question)
        async with aclosing(self._answer(engine, undo=partial(self._drop, question))) as events:
            async for event in events:
                yield event

    async def edit(
        self, turn: Turn, text: str, engine: "Engine", *, thinking: bool | None = None
    ) -> AsyncGenerator[Event, None]:
        """Ask `turn`, a question, in other words: a new branch beside it. Otherwise as `ask`."""
        question = _question(text, turn.thinking if thinking is None else thinking)
        self._leave(turn)
        self._append(question)

        def undo() -> None:
            self._drop(question)
            self.switch(turn)

        async with aclosing(self._answer(engine, undo=undo)) as events:
            async for event in events:
                yield event

    async def regenerate(
        self, engine: "Engine", turn: Turn | None = None
    ) -> AsyncGenerator[Event, None]:
        """Answer again, the last question or the one of the answer `turn`; the old answer stays
        as a branch beside the new one, if it said anything. Otherwise as `ask`."""
        if turn is None and self.turns and self.turns[-1].role == "assistant":
            turn = self.turns[-1]
        if turn is not None:
            self._leave(turn)
        if not self.turns:
            raise UsageError(_("There is no answer to make again."), _("Ask something first."))

        def undo() -> None:
            if turn in self.others:
                self.switch(turn)

        async with aclosing(self._answer(engine, undo=undo)) as events:
            async for event in events:
                yield event

    async def go_on(self, engine: "Engine") -> AsyncGenerator[Event, None]:
        """Let the last answer, which was cut, grow on. Otherwise as `ask`.

        The server is given the answer as the beginning of its own; one that cannot take that is
        asked to go on, which the answer's `note` says.
        """
        answer = self.turns[-1] if self.turns else None
        if answer is None or not answer.is_cut:
            raise UsageError(
                _("The last answer is complete, or has no text yet."), _("Ask again instead.")
            )
        async with aclosing(self._answer(engine, answer)) as events:
            async for event in events:
                yield event

    async def _answer(
        self,
        engine: "Engine",
        unfinished: Turn | None = None,
        undo: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[Event, None]:
        """`undo` takes back what was done for a prompt that turns out too long."""
        from app.core.shelf import kept
        from app.core.shelf.counting import Counter
        from engine_bridge.chat.flavour import flavour_of
        from engine_bridge.engine import wait_until_ready

        request = self.request()
        answer = unfinished or Turn("assistant")
        before = answer.timings
        if unfinished is None:
            self._append(answer)
        else:
            answer.finish_reason = answer.broken = ""
        try:
            status = await wait_until_ready(engine)
            await budget.check(self, engine, self.counter or Counter())
            flavour = flavour_of(status)
            model = self.model or status.model_name
            answer.origin = origin_of(status, flavour.id, model)
            best = await asyncio.to_thread(sampling.recommended, model, status.model_path)
            request = sampling.filled(request, best)
            if unfinished is not None:
                request = going_on(request, answer, can=flavour.continues is not None)
            await kept.restore(self, engine)
            async with aclosing(answers(engine, status, request, model)) as events:
                async for event in events:
                    grow(answer, event, before)
                    if self.watcher is not None:
                        self.watcher.grew(answer)
                    yield event
            if answer.timings is not None:
                await kept.save(self, engine, answer.timings.prompt_tokens)
        except TooLongError as error:
            answer.broken = error.reason
            if unfinished is None:
                self._drop(answer)
            undo()
            raise
        except BridgeError as error:
            answer.broken = error.reason
            raise
        finally:
            if not answer.finish_reason and not answer.broken:
                answer.finish_reason = STOPPED
            if self.watcher is not None and answer in self.turns:
                self.watcher.ended(answer)

    def _append(self, turn: Turn) -> None:
        turn.parent = self.turns[-1].id if self.turns else ""
        self.turns.append(turn)
        if self.watcher is not None:
            self.watcher.added(turn)

    def _drop(self, turn: Turn) -> None:
        """Take the last turn away, as if it had never been."""
        self.turns.remove(turn)
        if self.watcher is not None:
            self.watcher.removed(turn)

    def _leave(self, turn: Turn) -> None:
        """End the active branch before `turn`, which stays unless it is an answer of nothing."""
        self.switch(turn)
        place = self.turns.index(turn)
        self._take(self.turns[:place])
        if turn.role == "assistant" and not turn.text.strip() and not turn.reasoning.strip():
            self.others.remove(turn)
            if self.watcher is not None:
                self.watcher.removed(turn)

    def _take(self, path: list[Turn]) -> None:
        active = {turn.id for turn in path}
        rest = [turn for turn in (*self.turns, *self.others) if turn.id not in active]
        self.turns[:], self.others[:] = path, rest


def _question(text: str, thinking: bool | None) -> Turn:
    if not text.strip():
        raise UsageError(_("There is no question."), _("Type one, or give it as the prompt."))
    return Turn("user", _storable(text), thinking=thinking)


def _storable(text: str) -> str:
    """The text without lone surrogates, which come from bytes on a command line or in a pipe that
    are no UTF-8, and which can be neither sent nor stored."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
