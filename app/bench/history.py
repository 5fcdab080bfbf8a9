"""The ledger's runs over time: figures, and falls that are more than noise."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.bench.ledger import Run
from app.bench.stats import t_quantile

CONFIDENCE = 0.99
SMALLEST = 0.03
"""Smaller falls are not called regressions, whatever the noise."""
FEWEST = 3
"""Earlier runs that are needed before a later one can be judged."""


@dataclass(frozen=True, slots=True)
class Point:
    """One finished run, with the figure that tells its speed."""

    run: Run
    value: float | None
    """Decode tokens a second; for a comparison, on over off."""
    regression: str = ""
    """A sentence where it is slower than its like have been by more than noise."""


def main_figure(run: Run) -> float | None:
    """Decode tokens a second of a load, the ratio of a comparison; None of anything else."""
    result: dict[str, Any] = run.result or {}
    if run.kind == "ab":
        return float(result["ratio"]) if result.get("ratio") else None
    told = (result.get("figures") or {}).get("decode_tokens_per_s")
    return float(told["mean"]) if told else None


def history(runs: Sequence[Run]) -> list[Point]:
    """Finished runs in their order, each judged against the earlier ones of its identity."""
    earlier: dict[str, list[float]] = {}
    points = []
    for run in runs:
        if run.finished_at is None:
            continue
        value = main_figure(run)
        if value is None or value <= 0:
            points.append(Point(run, value))
            continue
        like = earlier.setdefault(run.identity, [])
        points.append(Point(run, value, regression(like, value)))
        like.append(value)
    return points


def regression(like: Sequence[float], value: float) -> str:
    """A sentence where `value` lies below the 99% prediction interval of the figures before it
    (on a logarithmic scale, at least three of them) and at least 3% below their mean."""
    if len(like) < FEWEST:
        return ""
    logs = [math.log(each) for each in like]
    middle, spread, n = statistics.fmean(logs), statistics.stdev(logs), len(logs)
    reach = t_quantile(0.5 + CONFIDENCE / 2, n - 1) * spread * math.sqrt(1 + 1 / n)
    fall = math.log(value) - middle
    if fall >= -reach or fall > math.log1p(-SMALLEST):
        return ""
    return (
        f"{100 * -math.expm1(fall):.0f}% below the {n} runs before it, whose spread explains"
        f" {100 * -math.expm1(-reach):.0f}%."
    )
