"""`ling-chat models`: what there is, and getting, checking and removing it."""

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from app.cli.line import Line
from app.core import figures
from app.core.i18n import _, shown

if TYPE_CHECKING:
    from engine_bridge.backends.base import Phase
    from engine_bridge.models.registry import Entry

PLAIN_EVERY_S = 5.0
"""Where a line cannot be redrawn (a log file, a pipe), one line in so many seconds."""


@click.group()
def models() -> None:
    """Model files: list, pull, check, remove."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array for programs.")
def list_(as_json: bool) -> None:
    """What can be pulled, and what is here."""
    from engine_bridge import machine
    from engine_bridge.models import choose
    from engine_bridge.models.registry import load_registry
    from engine_bridge.models.store import installed

    free = machine.free_memory()
    default = choose.default_model(free).name
    here = {model.name: model for model in installed()}
    rows = []
    for entry in load_registry().values():
        row = entry.model_dump(mode="json", exclude={"sources", "small"})
        row["default"] = entry.name == default
        row["installed"] = entry.name in here
        row["path"] = str(here[entry.name].path) if entry.name in here else None
        row["fits_in_memory"] = choose.fits(entry, free).fits
        rows.append(row)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    _table(rows)


def _table(rows: list[dict[str, object]]) -> None:
    from engine_bridge.models.progress import size_text

    table = [(_("NAME"), _("DOWNLOAD"), _("MEMORY"), _("CONTEXT"), _("LICENCE"), _("STATE"))]
    for row in rows:
        size, memory = (size_text(float(str(row[key]))) for key in ("size_bytes", "memory_bytes"))
        marks = [
            _("installed") if row["installed"] else "",
            _("default") if row["default"] else "",
            _("recommended") if row["recommended"] else "",
        ]
        state = ", ".join(mark for mark in marks if mark) or "-"
        context, licence = f"{row['context_tokens']:,}", str(row["licence"])
        table.append((str(row["name"]), size, memory, context, licence, state))
    widths = [max(figures.cells(line[at]) for line in table) for at in range(5)]
    about = [""]
    for row in rows:
        short = "" if row["fits_in_memory"] else _(" Needs more memory than is free.")
        about.append(f"  {shown(str(row['description']))}{short}")
    for line, below in zip(table, about, strict=True):
        cells = [
            figures.pad(cell, wide, to_right=at in (1, 2, 3))
            for at, (cell, wide) in enumerate(zip(line, widths, strict=False))
        ]
        click.echo("  ".join([*cells, line[-1]]))
        if below:
            click.echo(below)


@models.command()
@click.argument("name", required=False)
def pull(name: str | None) -> None:
    """Download a model; without NAME the one that suits this machine."""
    from engine_bridge import machine
    from engine_bridge.models import choose, hashes
    from engine_bridge.models.download import download
    from engine_bridge.models.fetch import DownloadStoppedError
    from engine_bridge.models.registry import find
    from engine_bridge.models.store import target

    free = machine.free_memory()
    entry = find(name) if name else choose.default_model(free)
    fit = choose.fits(entry, free)
    if not fit.fits:
        click.echo(_("Note: {what}").format(what=shown(fit.sentence)), err=True)
    line = PhaseLine()
    try:
        if hashes.is_verified(target(entry), entry, line.show):
            line.end()
            click.echo(
                _("{title} is here already: {entry}").format(title=entry.title, entry=target(entry))
            )
            return
        path = download(entry, line.show)
    except KeyboardInterrupt:
        raise DownloadStoppedError(
            _("The download of {title} was stopped.").format(title=entry.title),
            _("`ling-chat models pull {name}` goes on from there.").format(name=entry.name),
        ) from None
    finally:
        line.end()
    click.echo(_("{title} is ready: {path}").format(title=entry.title, path=path))


@models.command()
@click.argument("name", required=False)
def check(name: str | None) -> None:
    """Hash a model file (all installed ones without NAME) and compare."""
    from engine_bridge.errors import BridgeError
    from engine_bridge.models import store

    names = [name] if name else [model.name for model in store.installed()]
    if not names:
        click.echo(_("No model is installed."))
    failed: BridgeError | None = None
    for each in names:
        line = PhaseLine()
        try:
            model = store.check(each, line.show)
        except BridgeError as error:
            failed = failed or error
            line.end()
            if len(names) > 1:
                click.echo(f"{each}  {_('damaged')}")
            continue
        finally:
            line.end()
        verdict = _("ok") if model.entry else _("whole (not a model of the registry)")
        click.echo(f"{each}  {verdict}  sha256 {model.sha256}")
    if failed:
        raise failed


@models.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Delete a model and all that was made from it."""
    from engine_bridge.errors import UsageError
    from engine_bridge.models import store
    from engine_bridge.models.progress import size_text
    from engine_bridge.models.registry import find

    if not yes and not store.is_path(name):
        entry: Entry = find(name)
        files = store.files_of(entry)
        if files and not sys.stdin.isatty():
            raise UsageError(_("Nothing was deleted: nobody can be asked here."), _("Add --yes."))
        size = size_text(sum(file.stat().st_size for file in files))
        if files and not click.confirm(
            _("Delete {title} ({size}, {files} files)?").format(
                title=entry.title, size=size, files=len(files)
            )
        ):
            click.echo(_("Nothing was deleted."))
            return
    for file in store.remove(name):
        click.echo(_("deleted {file}").format(file=file))


class PhaseLine:
    """Phases on standard error: one redrawn line on a terminal, now and then a line elsewhere."""

    def __init__(self) -> None:
        self._line = Line()
        self._step = ""
        self._last = 0.0

    def show(self, phase: "Phase") -> None:
        from engine_bridge.backends.base import step_of

        if self._line.redraws:
            self._line.draw(phase_text(phase))
            return
        step = step_of(phase.title)
        now = time.monotonic()
        if step != self._step or now - self._last >= PLAIN_EVERY_S:
            self._step, self._last = step, now
            self._line.say(phase_text(phase))

    def end(self) -> None:
        self._line.clear()


def phase_text(phase: "Phase") -> str:
    """ " 42%  0:07 left  downloading …": what changes stands first, what a narrow window may cut
    last."""
    parts = []
    if phase.fraction is not None:
        parts.append(f"{phase.fraction:4.0%}")
    if phase.eta_s is not None:
        parts.append(_("{time} left").format(time=figures.clock(phase.eta_s)))
    return "  ".join([*parts, shown(phase.title)])
