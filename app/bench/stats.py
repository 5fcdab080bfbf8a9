"""The statistics of the benchmarks: means, percentiles, intervals and paired tests."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, median and 95th percentile of one figure, in the figure's own unit."""

    n: int
    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def summary(values: Sequence[float]) -> Summary | None:
    """None of no values."""
    if not values:
        return None
    return Summary(
        len(values), statistics.fmean(values), percentile(values, 0.5), percentile(values, 0.95)
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, interpolated linearly.

    Raises ValueError of no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def middle(values: Sequence[float]) -> float:
    """Hodges and Lehmann's: the median of the means of all pairs. As good as the mean where noise
    is even, and hardly moved by a few readings that went wrong. Raises ValueError of no values."""
    pairs = [(a + b) / 2 for at, a in enumerate(values) for b in values[at:]]
    return percentile(pairs, 0.5)


def wilson(right: int, n: int) -> Interval:
    """Wilson's score interval of a share, from `right` of `n`. All that is possible, of none."""
    if n == 0:
        return Interval(0.0, 1.0)
    z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    share = right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p of McNemar's test, from the questions only one of two got right."""
    n, k = only_first + only_second, min(only_first, only_second)
    if n == 0:
        return 1.0
    tail: float = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    return min(1.0, 2 * tail)


def ratio_interval(
    log_ratios: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, Interval]:
    """The geometric mean of paired ratios and its t interval, from their natural logarithms.

    One pair alone says nothing about the noise: its interval is unbounded. Raises ValueError
    of none.
    """
    mean, n = statistics.fmean(log_ratios), len(log_ratios)
    if n < 2:
        return math.exp(mean), Interval(0.0, math.inf)
    half = t_quantile(0.5 + confidence / 2, n - 1) * statistics.stdev(log_ratios) / math.sqrt(n)
    return math.exp(mean), Interval(math.exp(mean - half), math.exp(mean + half))


def t_quantile(p: float, df: int) -> float:
    """The quantile of Student's t distribution, found by bisection. `p` between 0.5 and 1."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if _t_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_cdf(t: float, df: int) -> float:
    """P(T <= t) for t >= 0: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(df))
    cos, sin = math.cos(angle), math.sin(angle)
    term, total = 1.0, 0.0
    if df % 2:
        term = cos
        for k in range(3, df + 1, 2):
            total += term
            term *= cos * cos * (k - 1) / k
        inside = 2 / math.pi * (angle + sin * total)
    else:
        for k in range(2, df + 1, 2):
            total += term
            term *= cos * cos * (k - 1) / k
        inside = sin * total
    return float(0.5 + inside / 2)
