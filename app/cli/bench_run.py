"""What the commands of `ling-chat bench` share: progress, an engine, the ledger, the output."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from app.bench.progress import Step, Watch
    from engine_bridge.contract import EngineSpec
    from engine_bridge.engine import Engine


class Progress:
    """The run's progress as one line on standard error."""

    def __init__(self) -> None:
        from app.cli.line import Line

        self._line = Line()
        self._done = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._line.clear()

    def __call__(self, step: "Step") -> None:
        from app.core import figures
        from app.core.i18n import _

        parts = [step.title, f"{step.done}/{step.total}"]
        if step.eta_s:
            parts.append(_("{time} left").format(time=figures.seconds(step.eta_s)))
        if step.figure:
            parts.append(step.figure)
        text = " · ".join(parts)
        if self._line.redraws:
            self._line.draw(text)
        elif step.done != self._done:  # in a log, one line a step is enough
            self._line.say(text)
        self._done = step.done


def with_engine(
    spec: "EngineSpec", work: "Callable[[Engine, Watch], Awaitable[dict[str, Any]]]"
) -> dict[str, Any]:
    """Start or share the engine, do the work, leave the engine as it was."""

    async def whole() -> dict[str, Any]:
        from app.cli.progress import StartProgress
        from engine_bridge.engine import open_engine, wait_until_ready

        engine = await open_engine(spec)
        try:
            with StartProgress(quiet=not sys.stderr.isatty()) as start:
                await engine.start(spec)
                start.follow(engine)
                await wait_until_ready(engine)
            with Progress() as progress:
                return await work(engine, progress)
        finally:
            await engine.close()

    return asyncio.run(whole())


class open_ledger:  # noqa: N801 - read as `with open_ledger() as ledger`
    """The ledger, closed at the end of the block; its notice, if any, goes to standard error."""

    def __enter__(self) -> Any:
        from app.bench.ledger import Ledger

        self._ledger = Ledger()
        if self._ledger.notice:
            click.echo(self._ledger.notice, err=True)
        return self._ledger

    def __exit__(self, *_: object) -> None:
        self._ledger.close()


def show(result: dict[str, Any], as_json: bool, as_text: "Callable[[dict[str, Any]], str]") -> None:
    import json

    from app.core.plain import plain

    click.echo(json.dumps(result) if as_json else plain(as_text(result)))


def show_rungs(
    found: list[tuple[str, dict[str, Any]]],
    as_json: bool,
    as_text: "Callable[[dict[str, Any]], str]",
) -> None:
    """One result, or the cumulative table of several."""
    if len(found) == 1:
        show(found[0][1], as_json, as_text)
        return
    from app.bench.ladder import table
    from app.bench.text import ladder_text

    rows = table(found[0][1]["kind"], found)
    show(
        {"rows": rows, "results": [result for _, result in found]},
        as_json,
        lambda _: ladder_text(rows),
    )
