"""A comparison as it is printed and kept: ratio, interval, verdict, and the sentence for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.bench import ab
from app.bench.effect import CONFIDENCE, Outcome
from app.bench.engines import FindBackend, pair_for
from app.bench.figures import figures
from app.bench.ledger import Ledger
from app.bench.lossless import may_change
from app.bench.measure import Sample
from app.bench.progress import Watch, starting
from app.bench.setup import setup_of
from app.bench.tasks import Question
from app.core.i18n import _
from engine_bridge.backends import backend_named
from engine_bridge.contract import EngineSpec

KIND = "ab"


async def run(
    spec: EngineSpec,
    toggle: str,
    task: str,
    questions: Sequence[Question],
    settings: ab.Settings,
    ledger: Ledger | None = None,
    watch: Watch | None = None,
    *,
    against: str | None = None,
    find: FindBackend = backend_named,
) -> dict[str, Any]:
    """Start what is needed, compare, keep and return the result. Leaves no engine behind that
    was not there before.

    Raises UsageError for an unknown switch, BridgeError where an engine fails.
    """
    pair = await pair_for(spec, toggle, against=against, find=find, told=starting(watch))
    try:
        comparison = await ab.compare(pair, toggle, task, questions, settings, watch)
        setup = await asyncio.to_thread(setup_of, (await pair.arm(True)).status)
    finally:
        await pair.close()
    result = result_of(comparison) | {"setup": setup.as_dict(), "together": pair.together}
    if ledger is not None:
        kept = asdict(settings) | {"toggle": toggle, "task": task}
        record = ledger.begin(KIND, kept, setup)
        for prompt, answers in enumerate(comparison.answers):
            for side, samples in (("off", answers.off), ("on", answers.on)):
                for round_, sample in enumerate(samples):
                    ledger.keep(record, f"{prompt}/{side}/{round_}", sample.as_dict())
        ledger.finish(record, result)
    return result


def result_of(comparison: ab.Comparison) -> dict[str, Any]:
    """`toggle`, `ratio`, `interval`, `verdict`, and all that stands behind them."""
    effect = comparison.effect
    found = effect.ratio()
    assert found is not None
    ratio, interval = found
    grades = comparison.grades()
    first = [(each.off[0], each.on[0]) for each in comparison.answers]
    result = {
        "kind": KIND,
        "toggle": comparison.toggle,
        "ratio": ratio,
        "interval": [interval.low, interval.high],
        "verdict": effect.outcome().value,
        "details": {
            "task": comparison.task,
            "what": f"decode tokens per engine {comparison.unit} second, on over off",
            "confidence": CONFIDENCE,
            "between_processes": effect.between,
            "starts": comparison.starts,
            "prompts": len(comparison.questions),
            "turns": comparison.turns,
            "off_tokens_per_engine_s": comparison.total_rate(on=False),
            "on_tokens_per_engine_s": comparison.total_rate(on=True),
            "other_ratios": _others(comparison),
            "same_answers": sum(off.text == on.text for off, on in first),
            "answers": len(first),
            "may_change_answers": may_change(comparison.toggle),
            "accuracy": None if grades is None else asdict(grades),
            "off": figures([off for off, _ in first]),
            "on": figures([on for _, on in first]),
        },
    }
    result["sentence"] = sentence(result)
    return result


def public(result: dict[str, Any]) -> dict[str, Any]:
    """The result as `--json` prints it: four fields that scripts rely on, all else in `details`."""
    names = ("toggle", "ratio", "interval", "verdict")
    rest = {name: value for name, value in result.items() if name not in (*names, "details")}
    return {name: result[name] for name in names} | {"details": result["details"] | rest}


def _others(comparison: ab.Comparison) -> dict[str, Any]:
    """Ratios of what a user feels. Latency alone misleads where answers differ in length, so it
    also stands per output token."""
    asked = {
        "tpot": lambda sample: sample.tpot_s,
        "ttft": lambda sample: sample.ttft_s,
        "latency": lambda sample: sample.e2e_s,
        "latency_per_output_token": _latency_per_token,
        "output_tokens": lambda sample: float(sample.completion_tokens),
    }
    found = {}
    for name, figure in asked.items():
        if told := comparison.first_ratio(figure):
            ratio, interval = told
            found[name] = {"ratio": ratio, "interval": [interval.low, interval.high]}
    return found


def _latency_per_token(sample: Sample) -> float | None:
    return sample.e2e_s / sample.completion_tokens if sample.completion_tokens else None


def sentence(result: dict[str, Any]) -> str:
    """What the figures mean, and what they do not show."""
    toggle, details = result["toggle"], result["details"]
    low, high = result["interval"]
    span = _("{share:.0%} interval {low:.2f} to {high:.2f}").format(
        share=details["confidence"], low=low, high=high
    )
    over = _("{n} prompts of the task {task!r}").format(n=details["prompts"], task=details["task"])
    if result["verdict"] == Outcome.NOTHING:
        told = _(
            "No difference seen for {switch}: on over off is {ratio:.2f} ({span}) over"
            " {over}; a smaller effect than the interval's ends is not excluded."
        )
    else:
        told = _(
            "With {switch} on, this engine makes {ratio:.2f} times as many tokens for the same"
            " effort ({span}) over {over}; other prompts may fare otherwise."
        )
    return told.format(switch=toggle, ratio=result["ratio"], span=span, over=over)
