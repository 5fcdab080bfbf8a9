"""Whether an optimisation changes what the model says: by what it is, and as measured here.

Three looks: greedy answers byte by byte; where bytes may differ, the next token along the same
text; and identifiers that have to come back letter by letter, which corruption would spoil.
"""

import asyncio
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.bench.engines import FindBackend, pair_for
from app.bench.ledger import Ledger
from app.bench.measure import Sample, measure
from app.bench.next_token import agreement
from app.bench.progress import Steps, Watch, starting
from app.bench.setup import setup_of
from app.bench.stats import wilson
from app.bench.tasks import Question
from app.core.i18n import _
from engine_bridge.backends import backend_named
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import Engine

KIND = "lossless"
CHANGES = {
    "ngram": "must not change answers: each token is the model's own choice; but batches round"
    " differently, so that a near tie may fall the other way",
    "nextn": "must not change answers: each token is the model's own choice; but batches round"
    " differently, so that a near tie may fall the other way",
    "split-verify": "must not change answers: the same guesses are checked; but another kernel adds"
    " in another order, so that a near tie may fall the other way",
    "cuda-graphs": "must not change answers: the same kernels run",
    "cpu-layout": "may change answers: the layers' weights are rounded again",
    "light-head": "may change answers: the output head's weights are rounded to a coarser type",
    "humming": "may change answers: other kernels add in another order; the weights are the same",
    "fp8-head": "may change answers: the output head is rounded from BF16 to FP8",
}
IDENTIFIERS = 8
"""In each probe."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A prompt that asks for identifiers back."""

    prompt: str
    identifiers: tuple[str, ...]

    def found(self, text: str) -> int:
        return sum(each in text for each in self.identifiers)


def may_change(toggle: str) -> str:
    """Whether this optimisation may change answers, and why; empty for an unknown one."""
    return CHANGES.get(toggle, "")


def probes(count: int, seed: int = 1) -> tuple[Probe, ...]:
    """Lists of identifiers that nothing but the prompt can tell: hashes, paths, camelCase."""
    source = random.Random(seed)  # noqa: S311
    return tuple(_probe(source) for _ in range(count))


def _probe(source: random.Random) -> Probe:
    def letters(count: int) -> str:
        return "".join(source.choices(string.ascii_lowercase, k=count))

    makers = (
        lambda: f"{source.getrandbits(32):08x}",
        lambda: f"{letters(4)}_{letters(5)}_{source.randrange(100)}",
        lambda: letters(4) + letters(5).title() + letters(3).title(),
        lambda: f"/{letters(3)}/{letters(5)}-{source.randrange(10)}.{letters(3)}",
    )
    names = tuple(makers[at % len(makers)]() for at in range(IDENTIFIERS))
    listed = "\n".join(names)
    return Probe(f"Repeat these identifiers exactly, one a line:\n\n{listed}", names)


async def run(
    spec: EngineSpec,
    toggle: str,
    questions: Sequence[Question],
    *,
    max_tokens: int = 96,
    probe_count: int = 4,
    every: int = 4,
    ledger: Ledger | None = None,
    watch: Watch | None = None,
    against: str | None = None,
    find: FindBackend = backend_named,
) -> dict[str, Any]:
    """Ask both sides the same, greedily. `every` says at how many tokens' distance the next token
    is compared along the text of the side without the optimisation.

    Raises UsageError for an unknown switch, BridgeError where an engine fails.
    """
    asked = probes(probe_count)
    pair = await pair_for(spec, toggle, against=against, find=find, told=starting(watch))
    answers: dict[bool, list[Sample]] = {}
    echoes: dict[bool, int] = {}
    steps = Steps(2 * (len(questions) + len(asked)) + 1, watch)
    try:
        for on in (False, True):
            engine = await pair.arm(on)
            side = f"{toggle} {_('on') if on else _('off')}"
            answers[on], echoes[on] = [], 0
            for question in questions:
                answers[on].append(await _greedy(engine, question.prompt, max_tokens))
                steps.did(_("{side}: greedy answers").format(side=side))
            for probe in asked:
                echoes[on] += probe.found((await _greedy(engine, probe.prompt, 200)).text)
                steps.did(_("{side}: identifiers").format(side=side))
        steps.tell(_("comparing next tokens"))
        said = zip(questions, answers[False], strict=True)
        texts = [(q.prompt, s.text, s.completion_tokens) for q, s in said]
        tokens = await agreement(await pair.arm(True), texts, every)
        setup = await asyncio.to_thread(setup_of, (await pair.arm(True)).status)
    finally:
        await pair.close()
    same = [a.text == b.text for a, b in zip(answers[False], answers[True], strict=True)]
    total = IDENTIFIERS * len(asked)
    result = {
        "kind": KIND,
        "toggle": toggle,
        "may_change_answers": may_change(toggle),
        "same_bytes": {"same": sum(same), "n": len(same)},
        "first_difference": _first_difference(answers),
        "next_token": tokens,
        "identifiers": {
            side: {"found": echoes[on], "n": total, "interval": _interval(echoes[on], total)}
            for side, on in (("off", False), ("on", True))
        },
        "setup": setup.as_dict(),
    }
    if ledger is not None:
        ledger.finish(
            ledger.begin(KIND, {"toggle": toggle, "max_tokens": max_tokens}, setup), result
        )
    return result


def _interval(found: int, n: int) -> list[float]:
    interval = wilson(found, n)
    return [interval.low, interval.high]


def _first_difference(answers: dict[bool, list[Sample]]) -> dict[str, Any] | None:
    """The first place where greedy answers part, with a few words of either side."""
    for at, (off, on) in enumerate(zip(answers[False], answers[True], strict=True)):
        if off.text != on.text:
            ends = min(len(off.text), len(on.text))
            place = next((i for i in range(ends) if off.text[i] != on.text[i]), ends)
            near = slice(max(0, place - 20), place + 40)
            return {"prompt": at, "character": place, "off": off.text[near], "on": on.text[near]}
    return None


async def _greedy(engine: Engine, prompt: str, max_tokens: int) -> Sample:
    request = ChatRequest(
        (Message("user", prompt),), max_tokens=max_tokens, temperature=0, seed=1, thinking=False
    )
    return await measure(engine, request)
