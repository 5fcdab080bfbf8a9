"""One switch off and on, with the same prompts by turns: what it brings on this machine."""

import math
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from app.bench.engines import Pair
from app.bench.measure import Sample, measure, measure_decode
from app.bench.progress import Steps, Watch
from app.bench.stats import Interval, mcnemar, ratio_interval
from app.bench.tasks import Question
from app.core.i18n import _
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.errors import BridgeError

CONFIDENCE = 0.99
"""Of the interval that decides. Nineteen in twenty would call a switch that does nothing a
gain or a loss once in twenty runs."""
PROCESSES = {"CPU": 0.025, "GPU": 0.01, "wall": 0.025}
"""How much the speeds of two engine processes with the same settings differ, as the standard
deviation of the logarithm of their ratio: each start lies elsewhere in memory. Measured on a busy
two-core machine, and from repeated starts on one GPU; part of every interval here, since no number
of requests to the same two processes can show it."""
GENERATIONS, MOST_GENERATIONS = 2, 4
"""How often the engines are started, each time for half of the prompts: again for prompts
whose rates are not confirmed while the interval is wider than `WIDE`."""
WIDE = 0.07
"""Half an interval's width, as a logarithm. Whether to go on depends on this alone, never on which
side the ratio is."""

CONFIRMED = 0.02
"""Two readings of one answer that differ by less are the same."""
MOST = 3
"""How many times the rounds asked for may be needed until the best rate is confirmed."""

Figure = Callable[[Sample], float | None]
Ask = Callable[..., Awaitable[None]]


class Outcome(StrEnum):
    GAIN = "gain"
    NOTHING = "no difference seen"
    LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Settings:
    """How each prompt is asked: `rounds` times of each side at least, and at most three times as
    often until the best rate is confirmed."""

    rounds: int = 2
    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 1
    thinking: bool | None = False


@dataclass(slots=True)
class Answers:
    """One prompt's measured answers, side by side in their order."""

    off: list[Sample] = field(default_factory=list)
    on: list[Sample] = field(default_factory=list)

    def side(self, on: bool) -> list[Sample]:
        return self.on if on else self.off

    @property
    def complete(self) -> bool:
        return bool(self.off and self.on)


def confirmed(*sides: Sequence[Sample]) -> bool:
    """Whether each side's best rate was seen twice: then it is the engine's, and undisturbed."""
    for samples in sides:
        best = sorted((s.tokens_per_engine_s or 0.0 for s in samples), reverse=True)[:2]
        if len(best) < 2 or best[1] < best[0] * (1 - CONFIRMED):
            return False
    return True


@dataclass(slots=True)
class Comparison:
    """All that was measured of one switch."""

    toggle: str
    task: str
    questions: Sequence[Question]
    settings: Settings
    answers: list[Answers] = field(default_factory=list)
    generations: int = 1

    @property
    def unit(self) -> str:
        return self.answers[0].off[0].unit

    def rate(self, samples: Sequence[Sample]) -> float | None:
        """Decode tokens per engine second of one side of one prompt.

        What other programs do to an engine only ever costs it time, so of greedy answers, which
        are the same work each time, the best is nearest to the truth. Sampled ones are averaged.
        """
        known = [rate for sample in samples if (rate := sample.tokens_per_engine_s)]
        if not known:
            return None
        return max(known) if self.settings.temperature == 0 else statistics.fmean(known)

    def ratio(self) -> tuple[float, Interval] | None:
        """On over off of `rate`: the geometric mean over the prompts, which are what an effect
        has to hold for, and its interval. None where no prompt has a rate on both sides."""
        found = _ratio([(self.rate(each.off), self.rate(each.on)) for each in self.answers])
        if found is None:
            return None
        ratio, interval = found
        return ratio, widened(ratio, interval, PROCESSES[self.unit] / math.sqrt(self.generations))

    def first_ratio(self, figure: Figure) -> tuple[float, Interval] | None:
        """The same of another figure, from each side's first answer: later ones find the prompt
        in the cache."""
        complete = [each for each in self.answers if each.complete]
        return _ratio([(figure(each.off[0]), figure(each.on[0])) for each in complete])

    def total_rate(self, on: bool) -> float | None:
        """Decode tokens per engine second over each prompt's best answer of one side."""
        known = [
            max(samples, key=lambda sample: sample.tokens_per_engine_s or 0)
            for each in self.answers
            if (samples := each.side(on))
        ]
        seconds = sum(each.engine_s or 0 for each in known)
        return sum(each.engine_tokens for each in known) / seconds if seconds else None

    def grades(self) -> "Grades | None":
        """Right and wrong first answers, where the questions have answers."""
        pairs = [
            (question.is_right(each.off[0].text), question.is_right(each.on[0].text))
            for question, each in zip(self.questions, self.answers, strict=True)
            if question.answer is not None and each.complete
        ]
        return Grades.of(pairs) if pairs else None


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[float, Interval] | None:
    logs = [math.log(on / off) for off, on in pairs if off and on]
    return ratio_interval(logs, CONFIDENCE) if logs else None


def is_wide(found: tuple[float, Interval] | None) -> bool:
    """Whether an interval says too little, so that more measuring is worth its time."""
    if found is None or found[1].low <= 0:
        return False
    ratio, interval = found
    return math.log(interval.high / ratio) > WIDE


def widened(ratio: float, interval: Interval, deviation: float) -> Interval:
    """The interval with another, known source of noise in it: a standard deviation of the ratio's
    logarithm."""
    z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    if interval.low <= 0:
        return interval
    half = math.hypot(math.log(interval.high / ratio), z * deviation)
    return Interval(ratio * math.exp(-half), ratio * math.exp(half))


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
    """What an effect on speed may be called: a difference only where the interval excludes none."""
    if 1.0 in interval:
        return Outcome.NOTHING
    return Outcome.GAIN if ratio > 1 else Outcome.LOSS


async def compare(
    pair: Pair,
    toggle: str,
    task: str,
    questions: Sequence[Question],
    settings: Settings,
    watch: Watch | None = None,
) -> Comparison:
    """Ask every question of both sides and keep what was measured.

    Where both engines are loaded, each prompt's answers take turns: off, on, on, off, and so on,
    so that drift hits both alike. Where a change costs a restart, all prompts are asked between
    two restarts. Raises BridgeError where an engine does not start, refuses or breaks off.
    """
    comparison = Comparison(toggle, task, questions, settings, [Answers() for _ in questions])
    steps = Steps(2 * len(questions) * settings.rounds, watch)

    async def ask(prompt: int, on: bool, counts: bool = True) -> None:
        engine = await pair.arm(on)
        side = _("{switch} {state}, prompt {n} of {m}").format(
            switch=toggle, state=_("on") if on else _("off"), n=prompt + 1, m=len(questions)
        )
        steps.tell(side)
        sample = await measure_decode(engine, _request(questions[prompt].prompt, settings))
        comparison.answers[prompt].side(on).append(sample)
        rate = sample.tokens_per_engine_s
        figure = f"{rate:.1f} tokens/{sample.unit}-s" if rate else ""
        (steps.did if counts else steps.tell)(side, figure)

    await (_by_turns if pair.together else _in_blocks)(pair, comparison, ask)
    if not comparison.ratio():
        raise BridgeError(
            "No prompt was answered with two tokens or more on both sides.",
            "Choose other prompts, or allow longer answers.",
        )
    return comparison


async def _in_blocks(pair: Pair, comparison: Comparison, ask: Ask) -> None:
    """All prompts of one side, restart, all of the other: off, on, on, off."""
    comparison.generations = comparison.settings.rounds
    for block in range(2 * comparison.settings.rounds):
        on = block % 4 in (1, 2)
        await _warm_up(pair, on, comparison.settings)
        for prompt in range(len(comparison.questions)):
            await ask(prompt, on)


async def _by_turns(pair: Pair, comparison: Comparison, ask: Ask) -> None:
    """Both sides of each prompt by turns; half of the prompts with one pair of processes, half
    with another. While noise leaves the interval wide, what is not confirmed is asked again."""
    rounds, answers = comparison.settings.rounds, comparison.answers
    parts = min(GENERATIONS if pair.renewable else 1, len(answers))
    for generation in range(MOST_GENERATIONS if parts > 1 else 1):
        prompts = list(range(generation % parts, len(answers), parts))
        if generation >= parts:
            prompts = [at for at in prompts if not confirmed(answers[at].off, answers[at].on)]
            if not prompts or not is_wide(comparison.ratio()):
                continue
        comparison.generations = generation + 1
        if generation:
            await pair.renew()
        for on in (False, True):
            await _warm_up(pair, on, comparison.settings)
        for prompt in prompts:
            for round_ in range(MOST * rounds):
                each = answers[prompt]
                if round_ >= rounds and confirmed(each.off, each.on):
                    break
                for on in (bool(round_ % 2), not round_ % 2):
                    await ask(prompt, on, generation < parts and round_ < rounds)


async def _warm_up(pair: Pair, on: bool, settings: Settings) -> None:
    """The first tokens after a start run in cold caches."""
    await measure(await pair.arm(on), _request("Count to ten.", settings, 8))


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
