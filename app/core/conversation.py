"""A conversation without a face: the app and `ask` both drive this."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from app.core.documents import Document
from app.core.prompt import documents_prompt
from engine_bridge.chat.events import (
    ChatRequest,
    Event,
    Finished,
    Message,
    Progress,
    Reasoning,
    Role,
    Text,
    Timings,
)
from engine_bridge.engine import Engine
from engine_bridge.errors import BridgeError, UnavailableError, UsageError

STOPPED = "stopped"


@dataclass(slots=True)
class Turn:
    """One message. An answer grows while it streams; until it ends `finish_reason` is empty."""

    role: Role
    text: str = ""
    reasoning: str = ""
    timings: Timings | None = None
    finish_reason: str = ""
    """stop, length, stopped (by the user), or what the server said."""
    broken: str = ""
    """Why the answer is not complete, as one sentence; empty where it is."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is asked of the engine with each message. None leaves a setting to the engine."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    thinking: bool | None = None


@dataclass(slots=True)
class Conversation:
    """Turns, documents and settings: plain data, so that it can be stored as it is."""

    turns: list[Turn] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    system: str = ""
    model: str = ""
    """The name to send; empty takes the engine's own."""
    parameters: Parameters = Parameters()

    def attach(self, document: Document) -> bool:
        """Add a document after those already there, so that their cached prefix stays valid.

        False where the same text is attached already.
        """
        if any(document.sha256 == known.sha256 for known in self.documents):
            return False
        self.documents.append(document)
        return True

    def messages(self) -> tuple[Message, ...]:
        """The prompt: system text, then the documents at the head of the first question.

        The documents always come first and in the order they were attached, so the engine's
        prefix cache serves every later question. They share the first question's message
        because many chat templates allow only alternating roles; for the same reason a question
        that got no answer is left out, unless it is the last.
        """
        kept: list[Turn] = []
        for turn in self.turns:
            if kept and turn.role == kept[-1].role == "user":
                kept.pop()
            if turn.role == "user" or turn.text.strip():
                kept.append(turn)
        prompt = [Message(turn.role, turn.text) for turn in kept]
        shelf = documents_prompt(self.documents)
        if shelf and prompt:
            prompt[0] = Message("user", shelf + prompt[0].content)
        elif shelf:
            prompt = [Message("user", shelf)]
        if self.system.strip():
            prompt.insert(0, Message("system", self.system))
        return tuple(prompt)

    def request(self) -> ChatRequest:
        p = self.parameters
        return ChatRequest(
            self.messages(),
            p.max_tokens,
            p.temperature,
            p.top_p,
            p.top_k,
            p.seed,
            p.stop,
            p.thinking,
        )

    async def ask(self, text: str, engine: Engine) -> AsyncGenerator[Event, None]:
        """Append the question and its answer, and yield the answer's events as it grows.

        Waits for the engine to be ready. Closing this generator stops the engine's work and
        keeps what arrived, with `finish_reason` "stopped". Raises UsageError for an empty
        question (nothing is appended), else what `engine_bridge.chat.client.stream` raises;
        the answer then carries the reason in `broken`.
        """
        if not text.strip():
            raise UsageError("There is no question.", "Type one, or give it as the prompt.")
        self.turns.append(Turn("user", _storable(text)))
        async with aclosing(self._answer(engine)) as events:
            async for event in events:
                yield event

    async def regenerate(self, engine: Engine) -> AsyncGenerator[Event, None]:
        """Ask the last question again; its answer is replaced. Otherwise as `ask`."""
        if self.turns and self.turns[-1].role == "assistant":
            self.turns.pop()
        if not self.turns:
            raise UsageError("There is no answer to make again.", "Ask something first.")
        async with aclosing(self._answer(engine)) as events:
            async for event in events:
                yield event

    async def _answer(self, engine: Engine) -> AsyncGenerator[Event, None]:
        from engine_bridge.chat.client import stream
        from engine_bridge.chat.flavour import flavour_of
        from engine_bridge.engine import wait_until_ready

        request = self.request()
        answer = Turn("assistant")
        self.turns.append(answer)
        asked = False
        try:
            status = await wait_until_ready(engine)
            if (endpoint := engine.endpoint) is None:
                raise BridgeError("The engine left before it was asked.", "Ask again.")
            model = self.model or status.model_name
            drafts = "draft_rounds" in status.load.counters
            answering = stream(endpoint, request, flavour_of(status), model, drafts=drafts)
            asked = True
            async with aclosing(answering) as events:
                async for event in events:
                    _grow(answer, event)
                    yield event
        except BridgeError as error:
            if asked and isinstance(error, UnavailableError) and _is_ours(engine):
                # The address and tunnel of a server are nothing the user has to do with here.
                error = UnavailableError(
                    "The engine does not answer any more.", "Start it again, then ask again."
                )
            answer.broken = error.reason
            raise error
        finally:
            if not answer.finish_reason and not answer.broken:
                answer.finish_reason = STOPPED


def _is_ours(engine: Engine) -> bool:
    return engine.status.spec is None or engine.status.spec.backend != "attach"


def _grow(answer: Turn, event: Event) -> None:
    match event:
        case Text(text):
            answer.text += text
        case Reasoning(text):
            answer.reasoning += text
        case Progress(timings):
            answer.timings = timings
        case Finished(finish_reason, timings):
            answer.finish_reason, answer.timings = finish_reason, timings


def _storable(text: str) -> str:
    """The text without lone surrogates, which come from bytes on a command line that are no
    UTF-8, and which can be neither sent nor stored."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
