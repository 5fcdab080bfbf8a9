"""What makes a prompt fit that is too long: the choices, in words, and done."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.context.parts import part, starts_of
from app.core.documents import Document
from app.core.i18n import _, ngettext
from app.core.shelf.counting import Counter

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from app.core.context.budget import Budget
    from engine_bridge.engine import Engine

SAFETY = 0.98
"""A part's tokens follow from its share of the characters, which is not exact."""
STEP_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class DropDocument:
    """Leave a document out."""

    sha256: str
    title: str
    frees_tokens: int
    suffices: bool


@dataclass(frozen=True, slots=True)
class TakePart:
    """Take a part of a document: pages or lines `first` to `last` (from 1) of `of`.

    The part proposed is the longest beginning that fits; any other may be taken.
    """

    sha256: str
    title: str
    unit: str
    """pages or lines"""
    first: int
    last: int
    of: int
    tokens: int
    """What the part takes, about."""
    suffices: bool = True


@dataclass(frozen=True, slots=True)
class DropTurns:
    """Send the oldest questions and their answers no more. They stay in the transcript."""

    turns: int
    """How many turns, questions and answers counted each."""
    frees_tokens: int
    suffices: bool


@dataclass(frozen=True, slots=True)
class BiggerContext:
    """Restart the engine with this context, which its model allows."""

    tokens: int
    suffices: bool = True


@dataclass(frozen=True, slots=True)
class BiggerModel:
    """Start another model of the registry, whose context is long enough."""

    name: str
    title: str
    context_tokens: int
    suffices: bool = True


Choice = DropDocument | TakePart | DropTurns | BiggerContext | BiggerModel


async def choices(
    budget: "Budget", conversation: "Conversation", engine: "Engine", counter: Counter
) -> tuple[Choice, ...]:
    """What would make it fit; where nothing alone suffices, what frees most."""
    over = budget.over_tokens
    found: list[Choice] = [
        DropDocument(share.sha256, share.title, share.tokens, share.tokens >= over)
        for share in budget.documents
    ]
    for share, document in zip(budget.documents, conversation.documents, strict=True):
        if share.tokens > over and (part := _beginning(document, share.tokens, over)):
            found.append(part)
    found += [each for each in [await _turns(over, conversation, engine, counter)] if each]
    needed = budget.prompt_tokens + budget.reserve_tokens
    found += await asyncio.to_thread(_roomier, engine, needed)
    return tuple(sorted(found, key=lambda each: not each.suffices))


def apply(choice: Choice, conversation: "Conversation") -> bool:
    """Change the conversation as chosen. False for a choice that is the engine's matter."""
    match choice:
        case DropDocument():
            conversation.documents[:] = [
                each for each in conversation.documents if each.sha256 != choice.sha256
            ]
        case TakePart():
            conversation.documents[:] = [
                part(each, choice.first, choice.last) if each.sha256 == choice.sha256 else each
                for each in conversation.documents
            ]
        case DropTurns():
            conversation.unsent_turns += choice.turns
        case _:
            return False
    return True


def _beginning(document: Document, tokens: int, over: int) -> TakePart | None:
    """The longest beginning that fits, by its share of the characters."""
    starts = starts_of(document)
    room = int((tokens - over) * SAFETY / tokens * len(document.text))
    last = sum(start <= room for start in starts[1:])
    if not last or last == len(starts):
        return None
    takes = round(tokens * starts[last] / len(document.text))
    unit = "pages" if document.pages else "lines"
    return TakePart(document.sha256, document.title, unit, 1, last, len(starts), takes)


async def _turns(
    over: int, conversation: "Conversation", engine: "Engine", counter: Counter
) -> DropTurns | None:
    """As few of the oldest exchanges as suffice; the last question stays."""
    from app.core.context.budget import split

    turns = split(conversation)[0].turns[conversation.unsent_turns :]
    frees = dropped = 0
    for number, turn in enumerate(turns, start=1):
        frees += await counter.text(turn.text, engine) or 0
        if turn.role == "assistant":
            dropped = number
            if frees >= over:
                return DropTurns(dropped, frees, suffices=True)
    return DropTurns(dropped, frees, suffices=False) if dropped else None


def _roomier(engine: "Engine", needed: int) -> list[Choice]:
    """A longer context of this model, else models with one. Reads a file's header."""
    from engine_bridge import machine
    from engine_bridge.models import registry, tensors

    status = engine.status
    if status.spec is None or status.spec.backend == "attach":
        return []
    wanted = -(-needed // STEP_TOKENS) * STEP_TOKENS
    try:
        longest = tensors.read(Path(status.model_path)).arch("context_length") or 0
    except (OSError, ValueError):
        return []
    if longest >= needed:
        return [BiggerContext(min(wanted, longest))]
    free = machine.free_memory()
    return [
        BiggerModel(entry.name, entry.title, entry.context_tokens)
        for entry in registry.load_registry().values()
        if entry.context_tokens >= needed and entry.memory_bytes <= free
    ]


def words(choice: Choice) -> str:
    """A choice as an instruction: "leave out report.pdf (frees 6,120 tokens)"."""
    match choice:
        case DropDocument():
            return _("leave out {title} (frees {tokens:,} tokens)").format(
                title=choice.title, tokens=choice.frees_tokens
            )
        case TakePart() if choice.unit == "pages":
            return _("take pages {first} to {last} of {title} (--pages {first}-{last})").format(
                first=choice.first, last=choice.last, title=choice.title
            )
        case TakePart():
            return _("take lines {first} to {last} of {title} (--pages {first}-{last})").format(
                first=choice.first, last=choice.last, title=choice.title
            )
        case DropTurns():
            return ngettext(
                "drop the oldest turn (frees {tokens:,} tokens)",
                "drop the {n} oldest turns (frees {tokens:,} tokens)",
                choice.turns,
            ).format(n=choice.turns, tokens=choice.frees_tokens)
        case BiggerContext():
            return _("give the engine a longer context (--context {tokens})").format(
                tokens=choice.tokens
            )
        case BiggerModel():
            return _("take a model with a longer context (--model {name})").format(name=choice.name)


def sentences(budget: "Budget") -> tuple[str, str]:
    """Why it does not fit, with the figures, and the cures."""
    about = _("about ") if budget.how == "estimate" else ""
    reason = _(
        "The prompt has {about}{prompt:,} tokens, which with {reserve:,} for the answer is"
        " {over:,} more than the context of {context:,} holds."
    ).format(
        about=about,
        prompt=budget.prompt_tokens,
        reserve=budget.reserve_tokens,
        over=budget.over_tokens,
        context=budget.context_tokens or 0,
    )
    enough = [each for each in budget.choices if each.suffices] or list(budget.choices)
    models = [each for each in enough if isinstance(each, BiggerModel)]
    told = [words(each) for each in enough if each not in models[1:]][:4]
    if not told:
        return reason, _("Ask something shorter.")
    cure = _("; or ").join(told)
    return reason, f"{cure[0].upper()}{cure[1:]}."
