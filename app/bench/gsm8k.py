"""GSM8K as the article ran it, question by question, resumable after any end."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.bench import grading
from app.bench.figures import figures
from app.bench.gsm8k_data import Data, Problem
from app.bench.ledger import Ledger
from app.bench.measure import Sample, measure, prompt_tokens
from app.bench.progress import Steps, Watch
from app.bench.setup import Setup, setup_of
from app.bench.stats import wilson
from app.core.i18n import _
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.engine import Engine
from engine_bridge.errors import UsageError

KIND = "gsm8k"
EXTRACTION = (
    "strict: the number after ####; flexible: the last number of the answer"
    " (lm-evaluation-harness's strict-match and flexible-extract, compared as written);"
    " by value: the last number, where 57.00 is 57"
)
SPARE = 32
"""Tokens of context left free, so that an engine does not refuse a request that just fits."""


@dataclass(frozen=True, slots=True)
class Published:
    """The published settings: five shots (they come with the data), thinking on."""

    count: int | None = None
    """How many questions, drawn by `seed`; None asks all."""
    seed: int = 1
    temperature: float = 0.6
    top_p: float = 0.95
    top_k: int = 29
    max_tokens: int = 32_768
    thinking: bool = True


async def run(
    engine: Engine,
    data: Data,
    settings: Published,
    ledger: Ledger,
    watch: Watch | None = None,
    *,
    resume: bool = True,
) -> dict[str, Any]:
    """Ask the questions that an unfinished run of the same settings left open, or all of them.

    Each answer is on disk before the next question. Raises BridgeError where the engine refuses
    or breaks off; what was answered is kept.
    """
    setup = await asyncio.to_thread(setup_of, engine.status)
    kept = asdict(settings) | {"data": data.sha256[:16]}
    record = ledger.unfinished(KIND, kept, setup) if resume else None
    resumed = record is not None
    record = record or ledger.begin(KIND, kept, setup)
    problems = data.sample(settings.count, settings.seed)
    done = ledger.answers(record)
    steps = Steps(len(problems), watch, sum(str(each.index) in done for each in problems))
    if resumed:
        steps.tell(_("resuming"))
    else:
        await measure(engine, _request("Count to ten.", settings, 8, 0))
    for problem in problems:
        if str(problem.index) in done:
            continue
        title = _("question {n}").format(n=problem.index + 1)
        steps.tell(title, _score(done))
        prompt = data.prompt(problem)
        room = await _room(engine, prompt, settings.max_tokens)
        asked = _request(prompt, settings, room, problem.index)
        sample = await measure(engine, asked, steps.live(title))
        done[str(problem.index)] = answer = graded(problem, sample)
        ledger.keep(record, str(problem.index), answer)
        steps.did(title, _score(done))
    result = result_of(problems, done, settings, setup)
    ledger.finish(record, result)
    return result | {"resumed": resumed}


def graded(problem: Problem, sample: Sample) -> dict[str, Any]:
    """The answer as it is kept: the measured sample, what was read from it, right or wrong."""
    strict, lenient = grading.strict(sample.text), grading.lenient(sample.text)
    return sample.as_dict() | {
        "index": problem.index,
        "answer": problem.answer,
        "strict": strict,
        "flexible": lenient,
        "strict_right": grading.equal(strict, problem.answer),
        "flexible_right": grading.equal(lenient, problem.answer),
    }


def result_of(
    problems: Sequence[Problem],
    done: dict[str, dict[str, Any]],
    settings: Published,
    setup: Setup,
) -> dict[str, Any]:
    """Accuracy by both readings with Wilson's 95% interval, lengths, latencies."""
    answers = [
        kept | {"value_right": grading.equal_by_value(kept["flexible"], kept["answer"])}
        for kept in (done[str(problem.index)] for problem in problems)
    ]
    samples = [Sample.from_dict(answer) for answer in answers]
    return {
        "kind": KIND,
        **asdict(settings),
        "questions": len(answers),
        "shots": 5,
        "extraction": EXTRACTION,
        "accuracy": {
            "flexible": accuracy(answers, "flexible_right"),
            "strict": accuracy(answers, "strict_right"),
            "by value": accuracy(answers, "value_right"),
        },
        "cut_short": sum(sample.finish_reason == "length" for sample in samples),
        "figures": figures(samples),
        "setup": setup.as_dict(),
    }


def accuracy(answers: Sequence[dict[str, Any]], which: str) -> dict[str, Any]:
    right, n = sum(bool(answer[which]) for answer in answers), len(answers)
    interval = wilson(right, n)
    share = right / n if n else None
    return {"right": right, "n": n, "share": share, "interval": [interval.low, interval.high]}


def _score(done: dict[str, dict[str, Any]]) -> str:
    right = sum(bool(answer["flexible_right"]) for answer in done.values())
    return f"{right} of {len(done)} right" if done else ""


def _request(prompt: str, settings: Published, max_tokens: int, index: int) -> ChatRequest:
    return ChatRequest(
        (Message("user", prompt),),
        max_tokens=max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        seed=settings.seed + index,
        thinking=settings.thinking,
    )


async def _room(engine: Engine, prompt: str, wanted: int) -> int:
    """How many tokens may be generated: as asked for, at most what the context has left.

    Raises UsageError where the prompt itself does not fit.
    """
    context = engine.status.context_tokens
    used = await prompt_tokens(engine, prompt) if context is not None else None
    if context is None or used is None:
        return wanted
    if used + SPARE >= context:
        raise UsageError(
            f"The question has {used:,} tokens and the engine's context only {context:,}.",
            "Start it with a longer --context.",
        )
    return min(wanted, context - used - SPARE)
