"""The benchmarks that make sense for an engine, each ready to run: what a screen offers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from app.bench import ab, ab_result, gsm8k, lossless, roofline, synthetic, tasks
from app.bench.ledger import Ledger
from app.bench.progress import Watch
from app.core.i18n import _
from engine_bridge.contract import EngineSpec, EngineStatus, Optimisation, Verdict
from engine_bridge.engine import Engine

Run = Callable[[Engine, Ledger, Watch], Awaitable[dict[str, Any]]]
SAMPLE = 50
TASK_NAMES = {"rewrite": _("rewriting"), "chat": _("free chat")}
SHORT, MIDDLE = (512, 128), (4_096, 256)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One thing that can be run. `about` says in a sentence what it shows."""

    id: str
    kind: str
    title: str
    about: str
    run: Run


def menu(status: EngineStatus, spec: EngineSpec) -> list[Benchmark]:
    """All that this engine allows, the quick ones first."""
    room = status.context_tokens
    loads = [SHORT, MIDDLE, (32_768, 2_048)]
    found = [_load(*each) for each in loads if room is None or sum(each) <= room]
    if status.model_path:
        found.append(
            Benchmark(
                "roofline",
                roofline.KIND,
                _("Distance to the hardware's limit"),
                _("The bytes of a decode step, its floor here, and where the step stands."),
                lambda engine, ledger, watch: roofline.run(engine, ledger=ledger, watch=watch),
            )
        )
    for each in status.optimisations if spec.backend != "attach" else ():
        if each.switchable and each.verdict is not Verdict.NOT_SUPPORTED:
            found += [_compare(each, spec, task) for task in tasks.TASKS]
            found.append(_lossless(each, spec))
    found.append(
        Benchmark(
            "gsm8k",
            gsm8k.KIND,
            _("GSM8K, {n} questions").format(n=SAMPLE),
            _("Grade-school maths as published; goes on where it was broken off."),
            _gsm8k,
        )
    )
    return found


def _load(tokens_in: int, tokens_out: int) -> Benchmark:
    lengths = synthetic.Lengths(tokens_in, tokens_out, 3)
    return Benchmark(
        f"synthetic-{tokens_in}-{tokens_out}",
        synthetic.KIND,
        _("Random text, {n:,} in, {m:,} out").format(n=tokens_in, m=tokens_out),
        _("Time to first token, time per token, tokens a second; lengths in tokens."),
        lambda engine, ledger, watch: synthetic.run(engine, lengths, ledger, watch),
    )


def _compare(each: Optimisation, spec: EngineSpec, task: str) -> Benchmark:
    async def run(_engine: Engine, ledger: Ledger, watch: Watch) -> dict[str, Any]:
        asked = tasks.questions(task)
        settings = ab.Settings(max_tokens=tasks.answer_tokens(task))
        return await ab_result.run(spec, each.id, task, asked, settings, ledger, watch)

    return Benchmark(
        f"ab-{each.id}-{task}",
        ab_result.KIND,
        _("{switch} off and on: {task}").format(switch=each.id, task=TASK_NAMES.get(task, task)),
        _("The same prompts with it off and on, by turns; says gain, loss or no difference."),
        run,
    )


def _lossless(each: Optimisation, spec: EngineSpec) -> Benchmark:
    async def run(_engine: Engine, ledger: Ledger, watch: Watch) -> dict[str, Any]:
        asked = tasks.questions("chat")
        return await lossless.run(spec, each.id, asked, ledger=ledger, watch=watch)

    return Benchmark(
        f"lossless-{each.id}",
        lossless.KIND,
        _("{switch}: does it change answers?").format(switch=each.id),
        _("Greedy answers, next tokens and identifiers, with it off and on."),
        run,
    )


async def _gsm8k(engine: Engine, ledger: Ledger, watch: Watch) -> dict[str, Any]:
    import asyncio

    from app.bench import gsm8k_data

    data = await asyncio.to_thread(gsm8k_data.load, None)
    return await gsm8k.run(engine, data, gsm8k.Published(count=SAMPLE), ledger, watch)
