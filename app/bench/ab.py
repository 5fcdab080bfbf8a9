"""One switch off and on, with the same prompts by turns: what it brings on this machine."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from app.bench.engines import Pair
from app.bench.measure import Sample, measure, measure_decode
from app.bench.progress import Steps, Watch
from app.bench.stats import Interval, mcnemar, ratio_interval
from app.bench.tasks import Question
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.errors import BridgeError

CONFIDENCE = 0.99
"""Of the interval that decides. Nineteen in twenty would call a switch that does nothing a
gain or a loss once in twenty runs."""
SMALLEST = 0.02
"""Smaller differences are not claimed, whatever the interval: this is what two engine processes
with the same settings differ by on a machine that does other things too."""


class Outcome(StrEnum):
    GAIN = "gain"
    NOTHING = "no difference seen"
    LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Settings:
    """How each prompt is asked. `rounds` is how often each prompt goes to either side."""

    rounds: int = 2
    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 1
    thinking: bool | None = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt's answers from both sides, of one round."""

    prompt: int
    round: int
    off: Sample
    on: Sample


@dataclass(slots=True)
class Comparison:
    """All that was measured of one switch."""

    toggle: str
    task: str
    questions: Sequence[Question]
    settings: Settings
    turns: list[Turn] = field(default_factory=list)

    @property
    def unit(self) -> str:
        return self.turns[0].off.unit if self.turns else ""

    def by_prompt(self, figure: Callable[[Sample], float | None]) -> list[float]:
        """The logarithm of on over off of one figure, a mean over the rounds for each prompt.

        Prompts are what an effect has to hold for, so they are the units of the statistics.
        """
        found: dict[int, list[float]] = {}
        for turn in self.turns:
            off, on = figure(turn.off), figure(turn.on)
            if off and on:
                found.setdefault(turn.prompt, []).append(math.log(on / off))
        return [statistics.fmean(each) for each in found.values()]

    def ratio(
        self, figure: Callable[[Sample], float | None], confidence: float = CONFIDENCE
    ) -> tuple[float, Interval] | None:
        """On over off, and its interval; None where no prompt has the figure on both sides."""
        logs = self.by_prompt(figure)
        return ratio_interval(logs, confidence) if logs else None

    def total_rate(self, on: bool) -> float | None:
        """Decode tokens per engine second over all answers of one side."""
        sides = [turn.on if on else turn.off for turn in self.turns]
        known = [each for each in sides if each.tokens_per_engine_s and each.engine_s]
        seconds = sum(each.engine_s or 0 for each in known)
        return sum(each.engine_tokens for each in known) / seconds if seconds else None

    def grades(self) -> "Grades | None":
        """Right and wrong answers of the first round, where the questions have answers."""
        pairs = [
            (question.is_right(turn.off.text), question.is_right(turn.on.text))
            for turn in self.turns
            if turn.round == 0 and (question := self.questions[turn.prompt]).answer is not None
        ]
        return Grades.of(pairs) if pairs else None


@dataclass(frozen=True, slots=True)
class Grades:
    """Accuracy of both sides on the same questions, and McNemar's exact p of their difference."""

    n: int
    off: int
    on: int
    only_off: int
    only_on: int
    p: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool, bool]]) -> "Grades":
        only_off = sum(off and not on for off, on in pairs)
        only_on = sum(on and not off for off, on in pairs)
        off, on = sum(off for off, _ in pairs), sum(on for _, on in pairs)
        return cls(len(pairs), off, on, only_off, only_on, mcnemar(only_off, only_on))


def outcome(ratio: float, interval: Interval) -> Outcome:
    """What an effect on speed may be called: a difference only where the interval excludes none
    and the effect is larger than machines repeat."""
    if 1.0 in interval or abs(math.log(ratio)) < math.log1p(SMALLEST):
        return Outcome.NOTHING
    return Outcome.GAIN if ratio > 1 else Outcome.LOSS


def order(prompts: int, rounds: int, together: bool) -> list[tuple[int, int, bool]]:
    """(round, prompt, on) of each request. Sides take turns at each prompt and swap who is first,
    so that drift hits both alike; where a change costs a restart, whole rounds do: off, on, on,
    off."""
    plan = []
    for round_ in range(rounds):
        if together:
            for prompt in range(prompts):
                first = bool((round_ + prompt) % 2)
                plan += [(round_, prompt, first), (round_, prompt, not first)]
        else:
            for on in (bool(round_ % 2), not round_ % 2):
                plan += [(round_, prompt, on) for prompt in range(prompts)]
    return plan


async def compare(
    pair: Pair,
    toggle: str,
    task: str,
    questions: Sequence[Question],
    settings: Settings,
    watch: Watch | None = None,
) -> Comparison:
    """Ask every question of both sides and keep what was measured.

    Raises BridgeError where an engine does not start, refuses or breaks off.
    """
    comparison = Comparison(toggle, task, questions, settings)
    plan = order(len(questions), settings.rounds, pair.together)
    steps = Steps(len(plan), watch)
    waiting: dict[tuple[int, int], dict[bool, Sample]] = {}
    warm: set[bool] = set()
    for round_, prompt, on in plan:
        engine = await pair.arm(on)
        if on not in warm:  # the first tokens after a start run in cold caches
            await measure(engine, _request("Count to ten.", settings, 8))
            warm = (warm if pair.together else set()) | {on}
        side = f"{toggle} {'on' if on else 'off'}"
        steps.tell(f"{side}, prompt {prompt + 1}")
        sample = await measure_decode(engine, _request(questions[prompt].prompt, settings))
        rate = sample.tokens_per_engine_s
        steps.did(side, f"{rate:.1f} tokens/{sample.unit}-s" if rate else "")
        sides = waiting.setdefault((round_, prompt), {})
        sides[on] = sample
        if len(sides) == 2:
            comparison.turns.append(Turn(prompt, round_, sides[False], sides[True]))
    if not comparison.ratio(lambda sample: sample.tokens_per_engine_s):
        raise BridgeError(
            "No prompt was answered with two tokens or more on both sides.",
            "Choose other prompts, or allow longer answers.",
        )
    return comparison


def _request(prompt: str, settings: Settings, max_tokens: int | None = None) -> ChatRequest:
    return ChatRequest(
        (Message("user", prompt),),
        max_tokens=max_tokens or settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        seed=settings.seed,
        thinking=settings.thinking,
    )
