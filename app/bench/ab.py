"""One switch off and on, with the same prompts by turns: what it brings on this machine."""

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from app.bench.effect import CONFIDENCE, MOST_TURNS, PROCESSES, Effect
from app.bench.engines import Pair
from app.bench.measure import Sample, measure, measure_decode
from app.bench.progress import Steps, Watch
from app.bench.stats import Interval, mcnemar, ratio_interval
from app.bench.tasks import Question
from app.core.i18n import _
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.errors import BridgeError

PATIENCE_S = 300.0
"""After this, no prompt is asked again; how long a run takes says nothing of its ratio."""
BLOCKS = 2
"""How often each side is started where a change of the switch costs a restart."""

Figure = Callable[[Sample], float | None]
Ask = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How each prompt is asked: `rounds` times of each side; None asks as often as the noise
    demands, up to `MOST_TURNS` times."""

    rounds: int | None = None
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

    @property
    def effects(self) -> list[float]:
        """Logarithms of on over off of decode tokens per engine second, for each pair of turns."""
        rates = [
            (off.tokens_per_engine_s, on.tokens_per_engine_s)
            for off, on in zip(self.off, self.on, strict=False)  # a turn may still be open
        ]
        return [math.log(on / off) for off, on in rates if off and on]


@dataclass(slots=True)
class Comparison:
    """All that was measured of one switch."""

    toggle: str
    task: str
    questions: Sequence[Question]
    settings: Settings
    answers: list[Answers] = field(default_factory=list)
    starts: int = 1
    """How many pairs of processes were measured."""

    @property
    def unit(self) -> str:
        return self.answers[0].off[0].unit

    @property
    def turns(self) -> int:
        """How often every prompt was asked of both sides."""
        return min(min(len(each.off), len(each.on)) for each in self.answers)

    @property
    def effect(self) -> Effect:
        """On over off of decode tokens per engine second."""
        between = PROCESSES[self.unit] / math.sqrt(self.starts)
        return Effect([each.effects for each in self.answers], between)

    def first_ratio(self, figure: Figure) -> tuple[float, Interval] | None:
        """On over off of another figure, from each side's first answer: later ones find the prompt
        in the cache."""
        complete = [each for each in self.answers if each.complete]
        return _ratio([(figure(each.off[0]), figure(each.on[0])) for each in complete])

    def total_rate(self, on: bool) -> float | None:
        """Decode tokens per engine second over all answers of one side."""
        known = [sample for each in self.answers for sample in each.side(on) if sample.engine_s]
        seconds = sum(sample.engine_s or 0 for sample in known)
        return sum(sample.engine_tokens for sample in known) / seconds if seconds else None

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
    so that drift hits both alike, again and again until the noise is small. Where a change costs
    a restart, all prompts are asked between two restarts. Raises BridgeError where an engine does
    not start, refuses or breaks off.
    """
    comparison = Comparison(toggle, task, questions, settings, [Answers() for _ in questions])
    steps = Steps(2 * len(questions) * (settings.rounds or BLOCKS), watch)

    async def ask(prompt: int, on: bool, cached: bool = False) -> None:
        engine = await pair.arm(on)
        side = _("{switch} {state}, prompt {n} of {m}").format(
            switch=toggle, state=_("on") if on else _("off"), n=prompt + 1, m=len(questions)
        )
        steps.tell(side)
        request = _request(questions[prompt].prompt, settings)
        sample = await measure_decode(engine, request, cached=cached)
        comparison.answers[prompt].side(on).append(sample)
        rate = sample.tokens_per_engine_s
        steps.did(side, f"{rate:.1f} tokens/{sample.unit}-s" if rate else "")

    if pair.together:
        await _by_turns(pair, comparison, ask, steps)
    else:
        await _in_blocks(pair, comparison, ask)
    if not comparison.effect.ratio():
        raise BridgeError(
            "No answer came in two parts or more on both sides, so there is no rate to compare.",
            "Choose other prompts, or allow longer answers with --max-tokens.",
        )
    return comparison


async def _in_blocks(pair: Pair, comparison: Comparison, ask: Ask) -> None:
    """All prompts of one side, restart, all of the other: off, on, on, off."""
    comparison.starts = comparison.settings.rounds or BLOCKS
    for block in range(2 * comparison.starts):
        on = block % 4 in (1, 2)
        await _warm_up(pair, on, comparison.settings)
        for prompt in range(len(comparison.questions)):
            await ask(prompt, on)


async def _by_turns(pair: Pair, comparison: Comparison, ask: Ask, steps: Steps) -> None:
    """Both sides of each prompt, one after the other, and all prompts again until it is enough."""
    prompts, began = len(comparison.questions), time.monotonic()
    most = comparison.settings.rounds or MOST_TURNS
    for on in (False, True):
        await _warm_up(pair, on, comparison.settings)
    while (done := comparison.turns) < most:
        if done and comparison.settings.rounds is None:
            if comparison.effect.is_enough() or time.monotonic() - began > PATIENCE_S:
                break
            most_in_time = math.ceil(done * PATIENCE_S / (time.monotonic() - began)) + 1
            needed = min(comparison.effect.turns_needed(done), most_in_time)
            steps.expect(2 * prompts * needed)
        # Coming back to a prompt means reading it again, so two turns are had from it then.
        until = min(done + (2 if done else 1), most)
        for prompt in range(prompts):
            for turn in range(done, until):
                first = bool((turn + prompt) % 2)
                for on in (first, not first):
                    await ask(prompt, on, cached=turn > done)
    steps.expect(2 * prompts * comparison.turns)
    steps.tell(comparison.toggle)


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
