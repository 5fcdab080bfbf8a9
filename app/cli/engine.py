"""`ling-chat engine …`: start, stop, look at and prove the engine without the TUI."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from app.cli.options import engine_options, spec_of
from app.core.figures import pad
from app.core.i18n import _, shown

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus, Optimisation
    from engine_bridge.host.client import HostedEngine

NO_ENGINE = _("No engine is running.")


@click.group()
def engine() -> None:
    """Start, stop, look at and prove the engine."""


@engine.command()
@engine_options
def start(engine: str | None, model: str | None, url: str | None, context: int | None) -> None:
    """Start the engine and keep it until `engine stop`."""
    from engine_bridge.errors import UsageError

    spec = spec_of(engine, model, url, context)
    if spec.backend == "attach":
        raise UsageError(_("A server that runs elsewhere cannot be started from here."), "")

    async def work() -> "EngineStatus":
        from app.cli.progress import StartProgress
        from engine_bridge.engine import wait_until_ready
        from engine_bridge.host.client import HostedEngine

        handle = await HostedEngine.open()
        try:
            await handle.start(spec)
            with StartProgress() as progress:
                progress.follow(handle)
                status = await wait_until_ready(handle)
            await handle.keep(True)
            return status
        finally:
            await handle.close()

    status = asyncio.run(work())
    click.echo(
        _("{model_name} is ready at {base_url} after {start_s:.1f} s.").format(
            model_name=status.model_name, base_url=status.base_url, start_s=status.start_s
        )
    )


@engine.command()
def stop() -> None:
    """Stop the engine, whoever started it."""

    async def work() -> bool:
        handle = await _find()
        if handle is None:
            return False
        try:
            await handle.stop()
        finally:
            await handle.close()
        return True

    click.echo(_("The engine is stopped.") if asyncio.run(work()) else NO_ENGINE)


@engine.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """Show what the engine is doing."""
    found = asyncio.run(_status())
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    click.echo("\n".join(_describe(found)))


@engine.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(as_json: bool) -> None:
    """Prove every optimisation of the running engine, now. Exits 1 if one is not what was asked."""
    import json

    from engine_bridge.contract import Verdict
    from engine_bridge.errors import UnavailableError

    async def work() -> "EngineStatus | None":
        handle = await _find()
        if handle is None:
            return None
        try:
            return await handle.verify()
        finally:
            await handle.close()

    found = asyncio.run(work())
    if found is None or found.engine_pid is None:
        raise UnavailableError(NO_ENGINE, _("Start one with `ling-chat engine start`."))
    if as_json:
        assert found.spec is not None
        report = {
            "engine": found.spec.backend,
            "model": found.model_name,
            "optimisations": [each.model_dump(mode="json") for each in found.optimisations],
        }
        click.echo(json.dumps(report, indent=2))
    else:
        click.echo("\n".join(_describe_optimisations(found.optimisations)))
    if any(each.requested and each.verdict is not Verdict.VERIFIED for each in found.optimisations):
        raise click.exceptions.Exit(1)


@engine.command("set")
@click.argument("optimisation")
@click.argument("value", type=click.Choice(["on", "off"]))
def set_(optimisation: str, value: str) -> None:
    """Switch an optimisation: cpu-layout, light-head, ngram; with SGLang humming, fp8-head, nextn.

    A running engine restarts where the switch needs it.
    """
    from app.core.settings import file as settings_file
    from app.core.spec import wanted
    from engine_bridge.backends import backend_named

    settings = settings_file.load()
    spec = wanted(settings)
    known = backend_named(spec.backend).optimisations(spec)
    _check_known(optimisation, [each.id for each in known if each.switchable])
    settings.engine.optimisations[optimisation] = value == "on"
    settings.save()

    async def work() -> "EngineStatus | None":
        from app.cli.progress import StartProgress
        from engine_bridge.engine import wait_until_ready

        handle = await _find(lease=True)
        if handle is None:
            return None
        try:
            running = handle.status.spec
            if running is None or running.backend != spec.backend:
                return None
            switches = {**running.optimisations, optimisation: value == "on"}
            await handle.start(running.model_copy(update={"optimisations": switches}))
            with StartProgress() as progress:
                progress.follow(handle)
                return await wait_until_ready(handle)
        finally:
            await handle.close()

    found = asyncio.run(work())
    if found is None:
        click.echo(
            _("{optimisation} is {value} from the next start on.").format(
                optimisation=optimisation, value=value
            )
        )
        return
    now = [each for each in found.optimisations if each.id == optimisation]
    click.echo("\n".join(_describe_optimisations(now)))


@engine.command()
@click.option(
    "-n",
    "lines",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="How many of the last lines.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
def logs(lines: int, follow: bool) -> None:
    """Show the engine's own log."""
    import time

    from app.core.plain import plain
    from engine_bridge import paths

    found = asyncio.run(_status())
    files = sorted(paths.log_dir().glob("*.log"), key=lambda each: each.stat().st_mtime)
    files = [each for each in files if each.name != "host.log"]
    path = found.log_path or (str(files[-1]) if files else "")
    if not path:
        click.echo(_("No engine has run here yet."))
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file.readlines()[-lines:]:
            click.echo(plain(line), nl=False)
        while follow:
            if line := file.readline():
                click.echo(plain(line), nl=False)
            else:
                sys.stdout.flush()
                time.sleep(0.3)


async def _find(lease: bool = False) -> "HostedEngine | None":
    from engine_bridge.host.client import HostedEngine

    return await HostedEngine.find(lease)


async def _status() -> "EngineStatus":
    from engine_bridge.contract import EngineStatus

    handle = await _find()
    if handle is None:
        return EngineStatus()
    try:
        return handle.status
    finally:
        await handle.close()


def _check_known(name: str, known: list[str]) -> None:
    from engine_bridge.errors import UsageError

    if name not in known:
        raise UsageError(
            _("There is no optimisation {name!r} for this engine.").format(name=name),
            _("Choose from {known}.").format(known=", ".join(known)),
        )


def _describe(status: "EngineStatus") -> list[str]:
    from engine_bridge.models.progress import size_text

    if status.spec is None:
        return [NO_ENGINE]
    lines = [
        pad(_("state"), 11)
        + shown(str(status.state))
        + (f", {shown(status.phase)}" if status.phase else "")
    ]
    if status.reason:
        lines.append(f"           {shown(status.reason)} {shown(status.cure)}")
    if status.engine_pid:
        memory = status.load.memory_bytes
        lines += [
            f"{pad(_('model'), 11)}{status.model_name}  {status.model_path}",
            *([f"           {shown(status.caveat)}"] if status.caveat else []),
            _("address    {base_url}  (process {engine_pid})").format(
                base_url=status.base_url, engine_pid=status.engine_pid
            ),
            _("context    {context_tokens:,} tokens").format(context_tokens=status.context_tokens),
            pad(_("threads"), 11) + str(status.threads or _("unknown")),
            pad(_("memory"), 11) + (size_text(memory) if memory else _("unknown")),
            _("users      {users}, {one}").format(
                users=status.users, one=_("kept") if status.keep else _("leaves with the last one")
            ),
        ]
    return lines + _describe_optimisations(status.optimisations)


def _describe_optimisations(
    optimisations: "tuple[Optimisation, ...] | list[Optimisation]",
) -> list[str]:
    lines = []
    for each in optimisations:
        detail = each.observed or each.resolved or each.summary
        if each.note:
            detail = f"{shown(detail)} ({shown(each.note)})"
        lines.append(f"{each.id:<11}{pad(shown(str(each.verdict)), 20)}{shown(detail)}")
    return lines
