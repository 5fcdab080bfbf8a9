"""What answered a stored conversation, beside what runs now."""

from typing import TYPE_CHECKING

from app.core.chat.tree import Origin
from app.core.i18n import _
from engine_bridge.contract import EngineSpec, Verdict

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from engine_bridge.contract import EngineStatus

HOSTED = ("llamacpp", "sglang")
NOT_ASKED_FOR = (Verdict.OFF.value, Verdict.NOT_SUPPORTED.value)


def other(
    conversation: "Conversation", status: "EngineStatus", spec: EngineSpec
) -> tuple[Origin, EngineSpec] | None:
    """What made the last answer and how to have it again, where that is another engine or model
    than the one that runs, or that `spec` asks for while none does."""
    origin = next((turn.origin for turn in reversed(conversation.turns) if turn.origin), None)
    if origin is None or not (origin.url or origin.engine in HOSTED):
        return None
    wanted = spec_of(origin, spec)
    now = (status.spec if status.state.is_alive else None) or spec
    if wanted.backend != now.backend:
        return origin, wanted
    if wanted.backend == "attach" and wanted.url != (status.base_url or now.url):
        return origin, wanted
    model = (status.model_name if status.state.is_alive else "") or now.model
    return (origin, wanted) if model and model not in (origin.model, wanted.model) else None


def spec_of(origin: Origin, now: EngineSpec) -> EngineSpec:
    """What to start to have it again: its model with the switches it had; all else as now."""
    if origin.url:
        return EngineSpec(backend="attach", url=origin.url, model=origin.model)
    switches = {name: said not in NOT_ASKED_FOR for name, said in origin.optimisations.items()}
    return now.model_copy(
        update={
            "backend": origin.engine,
            "model": origin.asked or origin.model,
            "optimisations": {**now.optimisations, **switches},
            "url": None,
            "context_tokens": None,
        }
    )


def name(origin: Origin) -> str:
    """ "smollm2-135m (embedded engine)"."""
    engines = {"llamacpp": _("embedded engine"), "sglang": "SGLang"}
    engine = origin.url or engines.get(origin.engine, origin.engine)
    return f"{origin.model} ({engine})"


def options(origin: Origin) -> str:
    """The options of the command line that ask for it."""
    if origin.url:
        return f"--url {origin.url} --model {origin.model}"
    return f"--engine {origin.engine} --model {origin.asked or origin.model}"
