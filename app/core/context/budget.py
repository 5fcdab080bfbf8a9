"""The context budget: how many tokens the next prompt has, and whether it fits.

The conversation so far is counted whole, as the template writes it, once after each change; a
question then costs one count of its own text. What a sum of the two may be off is a few tokens:
only so near the limit is the whole prompt counted again, so that an exact figure always decides.
A server that cannot count gets an estimate, which is told. Nothing is ever cut silently.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from app.core.chat.prompt import document_prompt
from app.core.documents import Document
from app.core.shelf.counting import Counter, estimated_tokens
from engine_bridge.errors import UsageError

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from app.core.context.fitting import Choice
    from engine_bridge.chat.events import Message
    from engine_bridge.engine import Engine

RESERVE_TOKENS = 1024
"""Kept free for the answer, unless the conversation's own `max_tokens` says how long it may be."""
SLACK_TOKENS = 64
"""What the sum of separate counts may be off, template of one message included."""
MESSAGE_TOKENS = 12
"""What a chat template adds to a question and the start of its answer, about."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one document takes of the context."""

    sha256: str
    title: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Budget:
    """Token counts of the next prompt. `context_tokens` is None where the server does not tell."""

    prompt_tokens: int
    how: Literal["exact", "sum", "estimate"]
    """Exact: the whole prompt counted by the engine. Sum: the counted conversation and the
    counted question, at most `SLACK_TOKENS` off. Estimate: by characters."""
    context_tokens: int | None
    reserve_tokens: int
    documents: tuple[Share, ...] = ()
    turns_tokens: int = 0
    """Questions and answers so far."""
    system_tokens: int = 0
    choices: "tuple[Choice, ...]" = ()
    """What would make it fit; empty where it does."""

    @property
    def over_tokens(self) -> int:
        """How many tokens too many, the reserve included; 0 where it fits."""
        if self.context_tokens is None:
            return 0
        return max(0, self.prompt_tokens + self.reserve_tokens - self.context_tokens)

    @property
    def fits(self) -> bool:
        return self.over_tokens == 0


class TooLongError(UsageError):
    """The prompt does not fit; `budget` has the figures and the choices."""

    def __init__(self, budget: Budget) -> None:
        from app.core.context.fitting import sentences

        super().__init__(*sentences(budget))
        self.budget = budget


async def check(
    conversation: "Conversation", engine: "Engine", counter: Counter, question: str = ""
) -> Budget:
    """For the moment of sending: the budget without its parts, and as quick as can be.

    Raises TooLongError, whose budget has all parts, where the prompt does not fit.
    """
    conversation = _with_question(conversation, question)
    budget = await _whole(conversation, engine, counter)
    if not budget.fits:
        raise TooLongError(await _with_parts(budget, conversation, engine, counter))
    return budget


async def plan(
    conversation: "Conversation", engine: "Engine", counter: Counter, question: str = ""
) -> Budget:
    """The budget of the conversation with `question` as its next turn (empty: as it is now).

    The engine should be ready: without it, everything is an estimate.
    """
    conversation = _with_question(conversation, question)
    budget = await _whole(conversation, engine, counter)
    return await _with_parts(budget, conversation, engine, counter)


async def _whole(conversation: "Conversation", engine: "Engine", counter: Counter) -> Budget:
    context = engine.status.context_tokens
    reserve = _reserve(conversation.parameters.max_tokens, context)
    tokens, how = await _prompt_tokens(conversation, engine, counter)
    if how == "sum" and context and abs(context - reserve - tokens) <= SLACK_TOKENS:
        thinking = conversation.thinking
        whole = await counter.prompt(conversation.messages(), engine, thinking)
        tokens, how = (tokens, how) if whole is None else (whole, "exact")
    return Budget(tokens, how, context, reserve)


async def _with_parts(
    budget: Budget, conversation: "Conversation", engine: "Engine", counter: Counter
) -> Budget:
    from app.core.context.fitting import choices

    turns = conversation.turns[conversation.unsent_turns :]
    budget = replace(
        budget,
        documents=await _shares(conversation.documents, engine, counter),
        system_tokens=await _piece(conversation.system, engine, counter),
        turns_tokens=sum([await _piece(turn.text, engine, counter) for turn in turns]),
    )
    if budget.fits:
        return budget
    return replace(budget, choices=await choices(budget, conversation, engine, counter))


def _reserve(max_tokens: int | None, context: int | None) -> int:
    reserve = max_tokens or RESERVE_TOKENS
    return min(reserve, context // 4) if context else reserve


def _with_question(conversation: "Conversation", question: str) -> "Conversation":
    from app.core.chat.conversation import Turn

    if not question:
        return conversation
    return replace(conversation, turns=[*conversation.turns, Turn("user", question)])


async def _prompt_tokens(
    conversation: "Conversation", engine: "Engine", counter: Counter
) -> tuple[int, Literal["exact", "sum", "estimate"]]:
    thinking, messages = conversation.thinking, conversation.messages()
    if not messages:
        return 0, "exact"
    before, question = split(conversation)
    known = counter.known_prompt(before.messages(), engine, thinking) if question else None
    if known is not None and (added := await counter.text(question, engine)) is not None:
        return known + added + MESSAGE_TOKENS, "sum"
    whole = await counter.prompt(messages, engine, thinking)
    return (_estimate(messages), "estimate") if whole is None else (whole, "exact")


def split(conversation: "Conversation") -> "tuple[Conversation, str]":
    """The conversation without its last question, and that; no question where the last turn
    is an answer."""
    turns = list(conversation.turns)
    while turns and turns[-1].role == "assistant" and not turns[-1].text.strip():
        turns.pop()
    if not turns or turns[-1].role != "user":
        return conversation, ""
    question = turns.pop().text
    return replace(conversation, turns=turns), question


def _estimate(messages: "Sequence[Message]") -> int:
    return sum(estimated_tokens(m.content) + MESSAGE_TOKENS // 2 for m in messages)


async def _shares(
    documents: Sequence[Document], engine: "Engine", counter: Counter
) -> tuple[Share, ...]:
    return tuple(
        [
            Share(
                each.sha256,
                each.title,
                await counter.document(each, engine) or estimated_tokens(document_prompt(each)),
            )
            for each in documents
        ]
    )


async def _piece(text: str, engine: "Engine", counter: Counter) -> int:
    if not text:
        return 0
    found = await counter.text(text, engine)
    return estimated_tokens(text) if found is None else found
