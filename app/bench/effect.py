"""What repeated, paired readings say of an effect on speed, and when they say enough."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.bench.stats import Interval, middle, ratio_interval

CONFIDENCE = 0.99
"""Of the interval that decides. Nineteen in twenty would call a switch that does nothing a
gain or a loss once in twenty runs."""
EARLY = 0.999
"""Of the interval that may end a run while the other one is still wide (the rule of Haybittle and
Peto): so strict that looking several times hardly adds to the verdicts that are wrong."""
NARROW = 0.06
"""Half an interval's width, as a logarithm, at which a run ends whatever its ratio is."""
MOST_TURNS = 25
"""Of each side, with each prompt."""
SPREAD = 0.2
"""Share of the prompts' spread that noise must explain, or more turns would not narrow it."""
PROCESSES = {"CPU": 0.015, "GPU": 0.01, "wall": 0.015}
"""How much the speeds of two engine processes with the same settings may differ, as the standard
deviation of the logarithm of their ratio. Of a dozen pairs on two cores the means differed by less
than their own noise; on a GPU, from repeated starts. Part of every interval, since no number of
requests to the same two processes can show it."""
_Z = {each: statistics.NormalDist().inv_cdf(0.5 + each / 2) for each in (CONFIDENCE, EARLY)}


class Outcome(StrEnum):
    GAIN = "gain"
    NOTHING = "no difference seen"
    LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Effect:
    """Readings of on over off, as natural logarithms: one for each pair of turns, which follow
    each other so that whatever else the machine does meets both."""

    prompts: Sequence[Sequence[float]]
    """Readings by prompt; those of each prompt in their order."""
    between: float
    """Standard deviation that the processes themselves add, see `PROCESSES`."""

    def ratio(self, confidence: float = CONFIDENCE) -> tuple[float, Interval] | None:
        """The geometric mean over the prompts, which are what an effect has to hold for, and its
        interval; of a single prompt, over its turns. None where there is no reading."""
        logs = [middle(each) for each in self.prompts if each]
        if len(self.prompts) == 1:
            logs = list(self.prompts[0])
        if not logs:
            return None
        ratio, interval = ratio_interval(logs, confidence)
        half = math.hypot(_half(ratio, interval), _Z[confidence] * self.between)
        return ratio, Interval(ratio * math.exp(-half), ratio * math.exp(half))

    def outcome(self) -> Outcome:
        """What it may be called: a difference only where the interval excludes none."""
        found = self.ratio()
        if found is None or 1.0 in found[1]:
            return Outcome.NOTHING
        return Outcome.GAIN if found[0] > 1 else Outcome.LOSS

    def is_enough(self) -> bool:
        """Whether more turns are not worth their time. That the interval is narrow, or would stay
        as wide, says nothing of the side on which it lies; only `EARLY` looks at that."""
        found, strict = self.ratio(), self.ratio(EARLY)
        if found is None or strict is None or _half(*found) <= NARROW or 1.0 not in strict[1]:
            return True
        noise = self._noise_share()
        return noise is not None and noise < SPREAD

    def turns_needed(self, turns: int) -> int:
        """About how many it takes until the interval is narrow, by the noise in the `turns` so
        far."""
        found = self.ratio()
        if found is None or math.isinf(found[1].high):
            return turns + 1
        between = _Z[CONFIDENCE] * self.between
        seen = _half(*found) ** 2 - between**2
        needed = turns * seen / (NARROW**2 - between**2)
        return min(max(math.ceil(needed), turns + 1), MOST_TURNS)

    def _noise_share(self) -> float | None:
        """How much of the variance between the prompts' ratios is noise within them, by their
        repeated turns; None where there are none."""
        each = [readings for readings in self.prompts if len(readings) > 1]
        if len(each) < 2 or not (spread := statistics.variance(map(middle, each))):
            return None
        return statistics.fmean(statistics.variance(e) / len(e) for e in each) / spread


def _half(ratio: float, interval: Interval) -> float:
    """Half an interval's width, as a logarithm."""
    return math.log(interval.high / ratio)
