"""The three optimisations of the embedded engine: declared and resolved.

`declare` lists them; `resolve` decides what to launch, and makes it. What the running engine
really does is `proof`'s part.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine_bridge.backends.base import Report
from engine_bridge.backends.llamacpp import convert, effects, probe
from engine_bridge.backends.llamacpp.probe import Finding
from engine_bridge.contract import EngineSpec, Optimisation, Verdict
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors

CPU_LAYOUT, LIGHT_HEAD, NGRAM = "cpu-layout", "light-head", "ngram"
SPECULATION = "ngram-simple"
"""llama.cpp's name; xllamacpp's is COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE."""
DRAFT_MATCH, DRAFT_TOKENS = 6, 7
"""ngram-simple's `size_n` and `size_m`: how many tokens must match, how many are drafted then.
A draft is checked in one batch with the token before it, and CPU kernels work on four tokens at a
time: 8 and 16 in a batch cost 3.4 and 5.9 plain steps, 9 and 17 cost 3.9 and 6.9; after 5,300
tokens 8, 9 and 16 cost 4.8, 5.8 and 9.0. Decode speed against none over eight rewriting prompts
(0.5B model, two cores, the better of two runs; lowest and highest): 6/7 1.68 (1.36 to 1.86), 6/8
1.50 (1.29 to 1.68), 6/15 1.74 (1.32 to 1.99), 4/7 1.66, 8/23 1.64, llama.cpp's own 12/48 1.64 (1.05
to 2.00). A text that is repeated with changes rejects long drafts, and after a long document a
rejected 15 is nine steps lost. In free chat 4/7 came out at 0.97, the others within the noise of
3%."""

_DECLARED = (
    Optimisation(
        id=CPU_LAYOUT,
        title="Weights in this CPU's layout",
        summary="Rewrites the layers' weights once in the form that a short trial finds fastest "
        "on this CPU; answers stay practically the same.",
    ),
    Optimisation(
        id=LIGHT_HEAD,
        title="Light output head",
        summary="Rewrites the output matrix alone in a lighter form, so that each token reads "
        "less memory; a 4-bit head can change word choices.",
    ),
    Optimisation(
        id=NGRAM,
        title="N-gram speculation",
        summary="Drafts tokens from what was already said and checks several in one step: "
        "quoting and rewriting get faster; the model still decides on every token.",
        requested=True,
    ),
)
_LEAST = {CPU_LAYOUT: convert.Recipe(layers="Q8_0"), LIGHT_HEAD: convert.Recipe(head="Q4_0")}
"""What each needs the conversion to be able to do."""
_MEASURES: dict[str, Callable[..., Finding]] = {CPU_LAYOUT: probe.layout, LIGHT_HEAD: probe.head}


@dataclass(frozen=True, slots=True)
class Choice:
    """What the switches ask of one engine start."""

    model_path: Path
    optimisations: tuple[Optimisation, ...]
    no_extra_bufts: bool = False
    speculation: str = "none"
    """`none` or `ngram-simple`."""
    draft_match: int = DRAFT_MATCH
    draft_tokens: int = DRAFT_TOKENS


def declare(spec: EngineSpec, model: Path | None = None) -> tuple[Optimisation, ...]:
    """The switches with `requested` filled in and, for a model file that is here, what is
    known of it: `not supported here` with a note, effects measured before.

    Takes 0.1 s with a model (its header is read), more the first time in a process.
    """
    try:
        gguf = tensors.read(model) if model and model.is_file() else None
    except BridgeError:
        gguf = None  # the start itself will say it better
    asked = [
        o.model_copy(update={"requested": spec.optimisations.get(o.id, o.requested)})
        for o in _DECLARED
    ]
    return tuple(_known(o, model, gguf) for o in asked)


def _known(o: Optimisation, model: Path | None, gguf: tensors.Gguf | None) -> Optimisation:
    update: dict[str, Any] = {"verdict": Verdict.UNPROVEN if o.requested else Verdict.OFF}
    if model and gguf:
        update["effect"] = effects.load(o.id, model)
        if o.id in _LEAST and (why := convert.unsupported(gguf, _LEAST[o.id])):
            update |= {"verdict": Verdict.NOT_SUPPORTED, "note": why}
    return o.model_copy(update=update)


def resolve(
    spec: EngineSpec,
    model: Path,
    threads: int,
    report: Report,
    cancel: threading.Event | None = None,
) -> Choice:
    """Decide what to launch for `model`, measuring and converting what is missing.

    Blocking: up to half a minute of trial once for a machine and model, then the conversion,
    both reported. A trial or conversion that fails is no reason not to start: the original is
    launched, and the switch says `fell back` and why.
    Raises convert.StoppedError when `cancel` is set.
    """
    cancel = cancel or threading.Event()
    switches = {o.id: o for o in declare(spec, model)}
    choice, recipe = Choice(model, ()), convert.Recipe()
    for id_, measure in _MEASURES.items():
        if not _wanted(switches[id_]):
            continue
        try:
            finding = measure(model, threads, report, cancel)
        except convert.StoppedError:
            raise
        except BridgeError as error:
            switches[id_] = _fell_back(switches[id_], error)
            continue
        switches[id_] = _found(switches[id_], finding, model)
        form = finding.form
        recipe = replace(recipe, layers=form.layers or recipe.layers, head=form.head or recipe.head)
        if id_ == CPU_LAYOUT:
            choice = replace(choice, no_extra_bufts=form.no_extra_bufts)
    if recipe.changes:
        try:
            choice = replace(choice, model_path=convert.convert(model, recipe, report, cancel))
        except convert.StoppedError:
            raise
        except BridgeError as error:
            choice = Choice(model, ())
            for id_ in (i for i in _MEASURES if _wanted(switches[i])):
                switches[id_] = _fell_back(switches[id_], error)
    if switches[NGRAM].requested:
        choice = replace(choice, speculation=SPECULATION)
        resolved = f"{SPECULATION}, {DRAFT_TOKENS} tokens after {DRAFT_MATCH} that match"
        switches[NGRAM] = switches[NGRAM].model_copy(update={"resolved": resolved})
    return replace(choice, optimisations=tuple(switches.values()))


def caveat(model: Path) -> str:
    """What is wrong with a model file that no switch can mend, in a sentence; usually empty.

    Ling 3.0 was trained with clamped SwiGLU in its last layers; files converted before the
    limits were written to the metadata run without them, which shows in code and long text.
    """
    gguf = tensors.read(model)
    clamped = any(key.endswith(".swiglu_clamp_exp") for key in gguf.fields)
    if not gguf.architecture.startswith("bailingmoe3") or clamped:
        return ""
    return (
        "This Ling file lacks the SwiGLU limits (swiglu_clamp_exp), so answers can be worse, "
        "code above all; fetch a newer conversion."
    )


def _wanted(o: Optimisation) -> bool:
    return o.requested and o.verdict is Verdict.UNPROVEN


def _fell_back(o: Optimisation, error: BridgeError) -> Optimisation:
    update = {"resolved": "as shipped", "verdict": Verdict.FELL_BACK, "note": str(error)}
    return o.model_copy(update=update)


def _found(o: Optimisation, finding: Finding, model: Path) -> Optimisation:
    effects.store(o.id, model, finding.effect)
    wanted = {"layers": finding.form.layers, "head": finding.form.head}
    update = {
        "resolved": finding.form.title,
        "note": finding.note,
        "effect": finding.effect,
        "evidence": {"wanted": {k: v for k, v in wanted.items() if v}, "trial": finding.trial},
    }
    return o.model_copy(update=update)
