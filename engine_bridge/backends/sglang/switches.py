"""SGLang's optimisations as data: what each is, what it needs, what it excludes."""

from collections.abc import Callable
from dataclasses import dataclass

from engine_bridge.backends.sglang.checkpoint import Checkpoint
from engine_bridge.contract import EngineSpec, Optimisation, Verdict

HUMMING, FP8_HEAD, NEXTN = "humming", "fp8-head", "nextn"
SPLIT = "split-verify"
SHARING, CLAMP, GRAPHS, DSPARK = "head-sharing", "swiglu-clamp", "cuda-graphs", "dspark"
OF_THE_PLUGIN = frozenset({HUMMING, FP8_HEAD, NEXTN, SPLIT})
"""What only runs right with our plugin inside the engine."""
OF_A_GPU = frozenset({GRAPHS, SPLIT})
SWITCHES = OF_THE_PLUGIN | OF_A_GPU

DECLARED = (
    Optimisation(
        id=HUMMING,
        title="Humming MoE",
        summary="Multiplies the 4-bit experts with Humming's kernels, which read less and"
        " convert faster than FlashInfer's.",
        requested=True,
    ),
    Optimisation(
        id=FP8_HEAD,
        title="FP8 LM head",
        summary="Keeps the output matrix in 8 bits instead of 16: each token reads half of it.",
        requested=True,
        conflicts_with=("fp32-head",),
    ),
    Optimisation(
        id=NEXTN,
        title="NEXTN speculation",
        summary="The model's own draft layer guesses three tokens ahead; one step checks all.",
        requested=True,
        conflicts_with=(DSPARK,),
    ),
    Optimisation(
        id=SPLIT,
        title="Split verification",
        summary="Checks NEXTN's guesses on the whole GPU at once, so that it pays in long contexts"
        " too.",
        requested=True,
    ),
    Optimisation(
        id=SHARING,
        title="Head shared with the draft",
        summary="Draft and target use one output matrix; with two, no guess is ever accepted.",
        switchable=False,
    ),
    Optimisation(
        id=CLAMP,
        title="SwiGLU clamp",
        summary="Puts back the limits that Ling is trained with and that Humming leaves out.",
        switchable=False,
    ),
    Optimisation(
        id=GRAPHS,
        title="CUDA graphs",
        summary="Replays a whole decode step as one recorded launch instead of hundreds.",
        requested=True,
    ),
    Optimisation(
        id=DSPARK,
        title="DSPARK speculation",
        summary="A separate draft model that guesses seven tokens ahead.",
        switchable=False,
        conflicts_with=(NEXTN, "prefix-cache"),
    ),
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two things that cannot both be on, and why, in a sentence for the user."""

    one: str
    other: str
    why: str


CONFLICTS = (
    Conflict(
        DSPARK,
        "prefix-cache",
        "DSPARK is faster for one stream, but it makes SGLang keep no intermediate states, which"
        " costs the prefix cache: a question about a document that was read already waits up to"
        " 4.7 times as long for its first token.",
    ),
    Conflict(DSPARK, NEXTN, "DSPARK and NEXTN are two ways to speculate; an engine has one."),
    Conflict(
        FP8_HEAD,
        "fp32-head",
        "--enable-fp32-lm-head computes the head in 32 bits, and SGLang ignores it without a"
        " word once the head is quantised.",
    ),
)


def explain(one: str, other: str) -> str:
    """Why two things exclude each other, or nothing if they do not."""
    pair = {one, other}
    return next((each.why for each in CONFLICTS if {each.one, each.other} == pair), "")


def declare(spec: EngineSpec, model: Checkpoint | None) -> tuple[Optimisation, ...]:
    """The list with `requested` filled in, and what this model does not have said of it."""
    asked = {
        o.id: spec.optimisations.get(o.id, o.requested) if o.switchable else o.requested
        for o in DECLARED
    }
    return tuple(_known(o, asked, model) for o in DECLARED)


def on(optimisations: tuple[Optimisation, ...]) -> frozenset[str]:
    """Ids of those that the launch must bring."""
    return frozenset(
        o.id for o in optimisations if o.requested and o.verdict is not Verdict.NOT_SUPPORTED
    )


def _known(o: Optimisation, asked: dict[str, bool], model: Checkpoint | None) -> Optimisation:
    # A proof line is asked for with its switch; what only serves a switch needs it, too.
    owner = _GOES_WITH.get(o.id)
    requested = asked[owner] and (asked[o.id] or not o.switchable) if owner else asked[o.id]
    lacking = ""
    if model is not None:
        lacking = _lacking(o.id, model) or (_lacking(owner, model) if owner else "")
    if o.id == DSPARK:
        lacking = explain(DSPARK, "prefix-cache")
    if lacking:
        update = {"requested": requested, "verdict": Verdict.NOT_SUPPORTED, "note": lacking}
        return o.model_copy(update=update)
    verdict = Verdict.UNPROVEN if requested else Verdict.OFF
    return o.model_copy(update={"requested": requested, "verdict": verdict})


_GOES_WITH = {SPLIT: NEXTN, SHARING: NEXTN, CLAMP: HUMMING}


def _lacking(id_: str, model: Checkpoint) -> str:
    """What this model lacks for an optimisation, or nothing."""
    return next((why for each, lacks, why in _NEEDS if each == id_ and lacks(model)), "")


_NEEDS: tuple[tuple[str, Callable[[Checkpoint], bool], str], ...] = (
    (
        HUMMING,
        lambda model: not (model.experts and model.mxfp4_experts),
        "This model has no MXFP4 experts.",
    ),
    (FP8_HEAD, lambda model: not model.is_ling, "Made for Ling 3.0; this model is another."),
    (
        FP8_HEAD,
        lambda model: model.tied_head,
        "This model's head is its embedding too; 8 bits would change both.",
    ),
    (
        NEXTN,
        lambda model: not (model.is_ling and model.nextn_layers),
        "This model has no NEXTN layer of Ling's to draft with.",
    ),
    (CLAMP, lambda model: not model.clamped_layers, "This model has no SwiGLU limits."),
)
