"""`ling-chat bench …`: measure, compare, and look at what was measured."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from app.cli.bench_run import Progress, open_ledger, show, show_rungs, with_engine
from app.cli.bench_ui import ui
from app.cli.options import engine_options, spec_of
from engine_bridge.paths import expanded

if TYPE_CHECKING:
    from app.bench.progress import Watch
    from app.bench.tasks import Question
    from engine_bridge.contract import EngineSpec
    from engine_bridge.engine import Engine

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
against_option = click.option(
    "--against", metavar="URL", help="With --url: a second server, with it switched on."
)
cumulative_option = click.option(
    "--cumulative", is_flag=True, help="All switches off, then one more on at a time."
)
seed_option = click.option("--seed", type=int, default=1, show_default=True, metavar="N")


@click.group()
def bench() -> None:
    """Measure this machine's engine; every result is kept in a ledger."""


bench.add_command(ui)


@bench.command()
@engine_options
@click.option("--input", "input_tokens", type=click.IntRange(16), default=32_768, show_default=True)
@click.option("--output", "output_tokens", type=click.IntRange(2), default=2_048, show_default=True)
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True)
@cumulative_option
@json_option
def synthetic(
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    input_tokens: int,
    output_tokens: int,
    runs: int,
    cumulative: bool,
    as_json: bool,
) -> None:
    """Random text at chosen lengths, one request at a time: TTFT, TPOT, tokens/s, accept length."""
    from app.bench import synthetic as load
    from app.bench.ladder import rungs
    from app.bench.text import synthetic_text

    spec = spec_of(engine, model, url, context)
    lengths = load.Lengths(input_tokens, output_tokens, runs)

    async def work(running: "Engine", watch: "Watch") -> dict[str, Any]:
        with open_ledger() as ledger:
            return await load.run(running, lengths, ledger, watch)

    specs = rungs(spec) if cumulative else [("", spec)]
    found = [(name, with_engine(each, work)) for name, each in specs]
    show_rungs(found, as_json, synthetic_text)


@bench.command()
@engine_options
@click.option("--data", metavar="PATH", help="test.jsonl, or its folder; default: from the hub.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N questions, by --seed.")
@seed_option
@click.option("--max-tokens", type=click.IntRange(16), default=32_768, show_default=True)
@click.option("--no-thinking", is_flag=True, help="Ask the model to answer without thinking.")
@click.option("--new", "fresh", is_flag=True, help="Begin anew where a run was broken off.")
@cumulative_option
@json_option
def gsm8k(
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    data: str | None,
    sample: int | None,
    seed: int,
    max_tokens: int,
    no_thinking: bool,
    fresh: bool,
    cumulative: bool,
    as_json: bool,
) -> None:
    """Grade-school maths, as published: accuracy with its interval, latency, accept length.

    A run that was broken off, however it ended, goes on with the first open question.
    """
    from app.bench import gsm8k as maths
    from app.bench import gsm8k_data
    from app.bench.ladder import rungs
    from app.bench.text import gsm8k_text

    spec = spec_of(engine, model, url, context)
    questions = gsm8k_data.load(data, lambda text: click.echo(text, err=True))
    chosen = maths.Published(
        count=sample, seed=seed, max_tokens=max_tokens, thinking=not no_thinking
    )

    async def work(running: "Engine", watch: "Watch") -> dict[str, Any]:
        with open_ledger() as ledger:
            return await maths.run(running, questions, chosen, ledger, watch, resume=not fresh)

    specs = rungs(spec) if cumulative else [("", spec)]
    found = [(name, with_engine(each, work)) for name, each in specs]
    show_rungs(found, as_json, gsm8k_text)


@bench.command()
@engine_options
@click.option("--toggle", required=True, metavar="ID", help="The optimisation to compare.")
@click.option("--task", default="rewrite", show_default=True, metavar="rewrite|chat|gsm8k|FILE")
@against_option
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="Else as the noise demands.")
@click.option("--max-tokens", type=click.IntRange(2), metavar="N", help="Else by the task.")
@click.option("--temperature", type=click.FloatRange(0), default=0.0, show_default=True)
@click.option("--data", metavar="PATH", help="For --task gsm8k: test.jsonl, or its folder.")
@click.option("--sample", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@seed_option
@json_option
def ab(
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    toggle: str,
    task: str,
    against: str | None,
    rounds: int | None,
    max_tokens: int | None,
    temperature: float,
    data: str | None,
    sample: int,
    seed: int,
    as_json: bool,
) -> None:
    """The same prompts with one optimisation off and on: ratio, interval, verdict."""
    from app.bench import ab as compare
    from app.bench import tasks
    from app.bench.ab_result import public
    from app.bench.text import ab_text

    spec = spec_of(engine, model, url, context)
    asked = compare.Settings(
        rounds=rounds,
        max_tokens=max_tokens or tasks.answer_tokens(task),
        temperature=temperature,
        seed=seed,
    )
    result = asyncio.run(
        _compare(spec, toggle, task, _questions(task, data, sample, seed), asked, against)
    )
    show(public(result) if as_json else result, as_json, ab_text)


@bench.command()
@engine_options
@click.option("--toggle", required=True, metavar="ID", help="The optimisation to look at.")
@click.option("--task", default="chat", show_default=True, metavar="rewrite|chat|FILE")
@against_option
@click.option("--max-tokens", type=click.IntRange(2), default=96, show_default=True)
@json_option
def lossless(
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    toggle: str,
    task: str,
    against: str | None,
    max_tokens: int,
    as_json: bool,
) -> None:
    """Whether an optimisation changes answers: bytes, next tokens, identifiers."""
    from app.bench import lossless as look
    from app.bench import tasks
    from app.bench.text import lossless_text

    spec = spec_of(engine, model, url, context)

    async def work() -> dict[str, Any]:
        with Progress() as progress, open_ledger() as ledger:
            return await look.run(
                spec,
                toggle,
                tasks.questions(task),
                max_tokens=max_tokens,
                ledger=ledger,
                watch=progress,
                against=against,
            )

    show(asyncio.run(work()), as_json, lossless_text)


@bench.command()
@engine_options
@click.option("--bandwidth", type=click.FloatRange(0.1), metavar="GB/S", help="Else measured.")
@click.option(
    "--at",
    "at_tokens",
    type=click.IntRange(0),
    default=1024,
    show_default=True,
    metavar="TOKENS",
    help="Context length in use.",
)
@click.option("--config", metavar="FILE", help="A config.json or GGUF instead of an engine.")
@click.option("--article", is_flag=True, help="Check the article's steps by --config's bytes.")
@json_option
def roofline(
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    bandwidth: float | None,
    at_tokens: int,
    config: str | None,
    article: bool,
    as_json: bool,
) -> None:
    """Bytes of a decode step by part, its floor at the copy bandwidth, and where it stands."""
    from app.bench import roofline as roof
    from app.bench.text import article_text, roofline_text

    per_s = bandwidth * 1e9 if bandwidth else None
    if article:
        from app.bench.article_check import article_check, ling_config

        rows = article_check(ling_config(config))
        show({"rows": rows}, as_json, lambda result: article_text(result["rows"]))
        return
    if config:
        show(roof.of_file(config, per_s, at_tokens), as_json, roofline_text)
        return
    spec = spec_of(engine, model, url, context)

    async def work(running: "Engine", watch: "Watch") -> dict[str, Any]:
        with open_ledger() as ledger:
            return await roof.run(running, per_s, at_tokens, ledger, watch)

    show(with_engine(spec, work), as_json, roofline_text)


@bench.command()
@click.option("--csv", "form", flag_value="csv", help="One line a run.")
@click.option("--markdown", "form", flag_value="markdown", default=True, help="The default.")
@click.option("--kind", metavar="KIND", help="Only runs of this kind.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N runs.")
@click.option("-o", "--out", type=click.Path(), metavar="FILE", help="Write it to a file.")
@json_option
def report(form: str, kind: str | None, last: int | None, out: str | None, as_json: bool) -> None:
    """What the ledger holds, with regressions beyond noise, to read or to share."""
    from app.bench import export
    from app.bench.history import history
    from app.core.output import write
    from app.core.plain import plain

    with open_ledger() as ledger:
        points = history(ledger.runs(kind))
    points = points[-last:] if last else points
    if as_json:
        import json

        text = json.dumps([export.row(point) for point in points]) + "\n"
    else:
        text = export.as_csv(points) if form == "csv" else export.as_markdown(points)
    if out:
        write(expanded(out), text)
    else:
        click.echo(plain(text), nl=False)


def _questions(task: str, data: str | None, sample: int, seed: int) -> "tuple[Question, ...]":
    from app.bench import gsm8k_data, tasks

    if task != "gsm8k":
        return tasks.questions(task)
    found = gsm8k_data.load(data, lambda text: click.echo(text, err=True))
    return tuple(
        tasks.Question(found.prompt(problem), problem.answer)
        for problem in found.sample(sample, seed)
    )


async def _compare(
    spec: "EngineSpec",
    toggle: str,
    task: str,
    questions: "tuple[Question, ...]",
    asked: Any,
    against: str | None,
) -> dict[str, Any]:
    from app.bench import ab_result

    with Progress() as progress, open_ledger() as ledger:
        return await ab_result.run(
            spec, toggle, task, questions, asked, ledger, progress, against=against
        )
