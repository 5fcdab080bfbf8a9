"""An answer as it grows: who makes it, what each event adds, how a cut one is gone on with."""

from dataclasses import replace
from typing import TYPE_CHECKING

from app.core.chat.tree import Origin, Turn
from app.core.i18n import _
from engine_bridge.chat.events import (
    ChatRequest,
    Event,
    Finished,
    Message,
    Progress,
    Reasoning,
    Text,
    Timings,
)

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus

GO_ON = "Go on exactly where your last message stops. Do not repeat anything of it."


def going_on(request: ChatRequest, answer: Turn, *, can: bool) -> ChatRequest:
    """The request for the rest of an answer. It is not thought about again: servers take no
    beginning of an answer whose thought is still to come."""
    if can:
        return replace(request, continues=True, thinking=False)
    answer.note = _(
        "This server cannot continue a reply, so it was asked to go on: words may be repeated."
    )
    return replace(request, messages=(*request.messages, Message("user", GO_ON)))


def origin_of(status: "EngineStatus", flavour: str, model: str) -> Origin:
    """Where an answer comes from that begins now."""
    backend = status.spec.backend if status.spec else ""
    verdicts = {each.id: each.verdict.value for each in status.optimisations}
    if backend in ("", "attach"):
        return Origin(flavour, model, verdicts, url=status.base_url)
    asked = status.spec.model if status.spec else ""
    return Origin(backend, model, verdicts, asked=asked)


def grow(answer: Turn, event: Event, before: Timings | None) -> None:
    """Let an answer take an event. `before` are its figures of earlier parts, if it was cut."""
    match event:
        case Text(text):
            answer.text += text
        case Reasoning(text):
            answer.reasoning += text
        case Progress(timings):
            answer.timings = _together(before, timings)
        case Finished(finish_reason, timings):
            answer.finish_reason, answer.timings = finish_reason, _together(before, timings)


def _together(before: Timings | None, now: Timings) -> Timings:
    """The figures of an answer that was gone on with: its tokens are those of all parts, and what
    was thought was thought before the first."""
    if before is None:
        return now
    if now.thought_s is None:
        now = replace(now, thought_s=before.thought_s, thought_tokens=before.thought_tokens)
    if before.completion_tokens is None or now.completion_tokens is None:
        return now
    return replace(now, completion_tokens=before.completion_tokens + now.completion_tokens)
