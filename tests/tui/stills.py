"""What every picture of the app shows of an engine that is not there."""

from engine_bridge.chat.events import Timings
from engine_bridge.contract import Effect, EngineState, EngineStatus, Load, Optimisation, Verdict

STATUS = EngineStatus(
    state=EngineState.READY,
    model_name="Qwen2.5-Coder-0.5B-Instruct",
    context_tokens=32_768,
    threads=2,
    load=Load(memory_bytes=747_000_000),
    optimisations=(
        Optimisation(
            id="layout",
            title="Weights in this CPU's layout",
            summary="Requantises the weights once into types whose kernels are fast here.",
            requested=True,
            resolved="Q8_0, micro-batch 1024",
            verdict=Verdict.VERIFIED,
            effect=Effect(prefill_ratio=1.72, decode_ratio=1.17),
        ),
        Optimisation(
            id="head", title="Light output head", summary="Q4_0 head.", verdict=Verdict.OFF
        ),
        Optimisation(
            id="ngram",
            title="N-gram speculation",
            summary="Drafts from the prompt.",
            requested=True,
            verdict=Verdict.UNPROVEN,
            note="nothing to draft here",
        ),
    ),
)
TIMINGS = Timings(
    prompt_tokens=1832,
    cached_tokens=1795,
    completion_tokens=214,
    ttft_s=0.77,
    decode_tokens_per_s=15.4,
    accept_length=2.68,
    by_engine=True,
)
