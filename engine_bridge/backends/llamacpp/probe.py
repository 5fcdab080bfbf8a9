"""Finds the fastest form of a model's weights on this machine, by trying and not by table.

Engines with short copies of the model run side by side and take turns; what counts is the CPU
seconds of each, which other programs on the machine hardly disturb. From the time of
a few layers and of the output head follows the time of the whole model.
"""

import math
import secrets
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine_bridge.backends.base import Phase, Report
from engine_bridge.backends.llamacpp import convert, effects, trial
from engine_bridge.backends.llamacpp.trial import Runner, Short
from engine_bridge.contract import Effect
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors
from engine_bridge.models.tensors import Gguf
from engine_bridge.paths import derived_dir

TOKENS_IN, TOKENS_OUT = 2048, 128
"""The mix that decides: a document of a few pages and a short answer, this app's usual turn."""
LOSS = 0.95
"""Below this ratio in decoding a choice is told as mixed."""
READ = 1024
"""Tokens of a prefill run: several batches of the engine."""
WORTH = 1.05
"""How many times as fast as shipped a form must be; less is within the noise."""
PREFILL_WEIGHTS, DECODE_BYTES = 20_000_000, 48_000_000
"""Least weights a prefill copy holds, so that its layers outweigh the rest, and least bytes of
layers in a decode copy, so that they do not all fit the last cache of a laptop."""
MAKE = 32
"""Tokens made in a decode run."""
ROUNDS, ROUND_S, BUDGET_S = 5, 6.0, 10.0
"""Rounds at most, seconds wanted for one, seconds after which no third or later one starts."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to store and run the weights. None leaves a part as shipped."""

    title: str
    layers: str | None = None
    head: str | None = None
    no_extra_bufts: bool = False

    @property
    def recipe(self) -> convert.Recipe:
        return convert.Recipe(self.layers, self.head)


@dataclass(frozen=True, slots=True)
class Finding:
    form: Form
    effect: Effect
    note: str = ""
    trial: dict[str, Any] = field(default_factory=dict)
    """CPU seconds of the whole model by form, for 2,048 tokens `in` and 128 `out`."""


SHIPPED = Form("as shipped")
LAYOUTS = (
    SHIPPED,
    Form("as shipped, not repacked", no_extra_bufts=True),
    Form("Q8_0", layers="Q8_0"),
)
"""Q4_0 layers are faster still and lose quality, so they are never chosen here."""
HEADS = (SHIPPED, Form("head Q8_0", head="Q8_0"), Form("head Q4_0", head="Q4_0"))


def layout(model: Path, threads: int, report: Report, cancel: threading.Event) -> Finding:
    """The fastest layout of the layers for this model and machine; remembered.

    About 20 s where it is not known yet. Raises convert.StoppedError, or BridgeError when the
    short copies cannot be made or run.
    """
    return _remembered("layout", model, threads, lambda: _layout(model, threads, report, cancel))


def head(model: Path, threads: int, report: Report, cancel: threading.Event) -> Finding:
    """The fastest output head, like `layout`."""
    return _remembered("head", model, threads, lambda: _head(model, threads, report, cancel))


def _remembered(what: str, model: Path, threads: int, find: Callable[[], Finding]) -> Finding:
    """Thread counts share a finding by powers of two: the number of free cores varies from
    start to start, and 5 threads meet the same bottleneck as 7."""
    key = (what, f"{threads.bit_length()}", tensors.identity(model), f"{LAYOUTS}{HEADS}")
    known = effects.recall(*key)
    if isinstance(known, dict):
        try:
            form, effect = Form(**known.pop("form")), Effect(**known.pop("effect"))
            return Finding(form, effect, **known)
        except (TypeError, KeyError, ValueError):
            pass  # written by another version
    finding = find()
    effects.remember(asdict(finding) | {"effect": finding.effect.model_dump()}, *key)
    return finding


@dataclass(frozen=True, slots=True)
class _Run:
    """One thing to time: a form on a short copy, reading or making tokens."""

    form: Form
    short: Short
    reads: int = 0
    makes: int = 0

    @property
    def basis(self) -> "_Run":
        """The same as shipped; must be among the runs."""
        return replace(self, form=SHIPPED)


def _layout(model: Path, threads: int, report: Report, cancel: threading.Event) -> Finding:
    gguf = tensors.read(model)
    depth, per_layer = _depth(gguf), _layer(gguf)
    few = Short(_enough(PREFILL_WEIGHTS, per_layer[0], gguf))
    more = Short(_enough(DECODE_BYTES, per_layer[1], gguf))
    whole = Short(more.layers, None)
    reads = [_Run(form, few, reads=READ) for form in LAYOUTS]
    makes = [_Run(form, more, makes=MAKE) for form in LAYOUTS]
    cost = _measure(
        model, gguf, [*reads, *makes, _Run(SHIPPED, whole, makes=MAKE)], threads, report, cancel
    )
    head_cost = max(0.0, cost[_Run(SHIPPED, whole, makes=MAKE)] - cost[makes[0]])
    seconds = {
        read.form: (
            TOKENS_IN * cost[read] * depth / few.layers,
            TOKENS_OUT * (cost[make] * depth / more.layers + head_cost),
        )
        for read, make in zip(reads, makes, strict=True)
    }
    return _best(seconds, f"{few.layers}- and {more.layers}-layer copies")


def _head(model: Path, threads: int, report: Report, cancel: threading.Event) -> Finding:
    gguf = tensors.read(model)
    layers = _enough(DECODE_BYTES, _layer(gguf)[1], gguf)
    bare = _Run(SHIPPED, Short(layers), makes=MAKE)
    forms = [f for f in HEADS if f is SHIPPED or not convert.unsupported(gguf, f.recipe)]
    runs = {form: _Run(form, Short(layers, None), makes=MAKE) for form in forms}
    cost = _measure(model, gguf, [bare, *runs.values()], threads, report, cancel)
    rest = cost[bare] * (_depth(gguf) / layers - 1)
    seconds = {form: (0.0, TOKENS_OUT * (cost[run] + rest)) for form, run in runs.items()}
    return _best(seconds, f"{layers}-layer copies with the whole head")


def _best(seconds: dict[Form, tuple[float, float]], how: str) -> Finding:
    """The fastest form, or as shipped where nothing is clearly faster."""
    shipped = seconds[SHIPPED]
    fastest = min(seconds, key=lambda form: sum(seconds[form]))
    ratio = sum(shipped) / sum(seconds[fastest])
    form, note = fastest, ""
    if fastest is SHIPPED or ratio < WORTH:
        form, note = SHIPPED, "as shipped is best here"
    mine = seconds[form]
    if mine[1] * LOSS > shipped[1]:
        note = "reads faster, writes slower: for long prompts"
    effect = Effect(
        prefill_ratio=round(shipped[0] / mine[0], 2) if mine[0] else None,
        decode_ratio=round(shipped[1] / mine[1], 2),
        how=f"CPU seconds of {how}, {TOKENS_IN:,} tokens in, {TOKENS_OUT} out",
        measured_at=time.time(),
    )
    figures = {f.title: {"in": round(s[0], 3), "out": round(s[1], 3)} for f, s in seconds.items()}
    return Finding(form, effect, note, figures)


def _measure(
    model: Path,
    gguf: Gguf,
    runs: list[_Run],
    threads: int,
    report: Report,
    cancel: threading.Event,
) -> dict[_Run, float]:
    """CPU seconds per token of each run over a few rounds.

    Prompts are shorter where one round would take too long.
    """
    report(Phase("trying the weights' forms: making short copies"))
    with convert.alone(report, cancel), _copies(model, gguf, runs, cancel) as paths:
        orders = [
            {
                "model": str(paths[run.form.recipe, run.short]),
                "n_ctx": READ + 128,
                "n_threads": threads,
                "no_extra_bufts": run.form.no_extra_bufts,
            }
            for run in runs
        ]
        report(Phase("trying the weights' forms: starting engines"))
        with trial.runners(orders, cancel) as engines:
            pairs = dict(zip(runs, engines, strict=True))
            pace = _warm_up(pairs) / threads
            reads = max((n for n in (READ, 512, 256) if n * pace <= ROUND_S), default=128)
            return _rounds(pairs, reads, report, cancel)


def _warm_up(pairs: dict[_Run, Runner]) -> float:
    """Touch all weights once; CPU seconds that a token of prompt takes over all runs together."""
    for engine in pairs.values():
        engine.cpu_seconds(32, 2)
    return sum(engine.cpu_seconds(64, 1) / 64 for run, engine in pairs.items() if run.reads)


def _rounds(
    pairs: dict[_Run, Runner], reads: int, report: Report, cancel: threading.Event
) -> dict[_Run, float]:
    spent: dict[_Run, list[float]] = {run: [] for run in pairs}
    started, done = time.monotonic(), 0
    for round_ in range(ROUNDS):
        if round_ > 1 and time.monotonic() - started > BUDGET_S:
            break
        for run, engine in pairs.items():
            if cancel.is_set():
                raise convert.StoppedError
            tokens = reads if run.reads else run.makes
            cpu = engine.cpu_seconds(reads, 1) if run.reads else engine.cpu_seconds(8, run.makes)
            spent[run].append(cpu / tokens)
            done += 1
            pace = (time.monotonic() - started) / done
            turns = min(ROUNDS, max(2, math.ceil(BUDGET_S / (pace * len(pairs)))))
            total = max(turns * len(pairs), done)
            report(Phase("trying the weights' forms", done / total, pace * (total - done)))
    return {run: _typical(values, spent[run.basis]) for run, values in spent.items()}


def _typical(values: list[float], basis: list[float]) -> float:
    """The median of the ratios to as shipped round by round, times as shipped's median.

    On a busy machine whole rounds are slower, so this varies least: over windows of 3 rounds
    of 12, the ratio's standard deviation was 0.06, that of medians' ratio 0.07, of minima's 0.10.
    """
    ratio = statistics.median(mine / theirs for mine, theirs in zip(values, basis, strict=True))
    return ratio * statistics.median(basis)


@contextmanager
def _copies(
    model: Path, gguf: Gguf, runs: list[_Run], cancel: threading.Event
) -> Iterator[dict[tuple[convert.Recipe, Short], Path]]:
    """The short copies these runs need, by form and extent; gone when the block is left."""
    for stale in derived_dir().glob("trial-*"):
        shutil.rmtree(stale, ignore_errors=True)
    paths: dict[tuple[convert.Recipe, Short], Path] = {}
    folder = derived_dir() / f"trial-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
        for run in runs:
            key = (run.form.recipe, run.short)
            if key not in paths:
                paths[key] = folder / f"{len(paths)}.gguf"
                trial.write_short(paths[key], model, gguf, run.short, run.form.recipe, cancel)
        yield paths
    except OSError as error:
        raise BridgeError(
            f"The weights' forms could not be compared ({error.strerror or error}).",
            f"Free some space in {derived_dir()}, or move the models with LING_CHAT_MODELS.",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _depth(gguf: Gguf) -> int:
    return max(1, (gguf.arch("block_count") or 1) - (gguf.arch("nextn_predict_layers") or 0))


def _layer(gguf: Gguf) -> tuple[float, float]:
    """(weights, bytes) of a layer's matrices, the mean over the model."""
    matrices = [t for t in gguf.tensors if t.role == "layers"]
    return (
        sum(t.rows * t.shape[0] for t in matrices) / _depth(gguf),
        sum(t.nbytes for t in matrices) / _depth(gguf),
    )


def _enough(wanted: int, per_layer: float, gguf: Gguf) -> int:
    """How many layers hold `wanted`; at least one after those of another build at the start."""
    first = (gguf.arch("leading_dense_block_count") or 0) + 1
    return min(_depth(gguf), max(first, math.ceil(wanted / max(1.0, per_layer))))
