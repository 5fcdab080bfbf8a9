"""`ling-chat doctor`: what works here, what does not, and what helps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from app.core.checkup.findings import Finding


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Check hardware, engine, model, keyring, settings and terminal. Exits 1 if one is bad."""
    import json
    from dataclasses import asdict, replace

    from app.core.checkup.report import Health
    from app.core.figures import pad
    from app.core.i18n import _
    from app.core.plain import plain

    marks = {Health.GOOD: _("ok"), Health.WARNING: _("warn"), Health.BAD: _("BAD")}
    names = {
        "hardware": _("hardware"),
        "memory": _("memory"),
        "disk": _("disk"),
        "engine": _("engine"),
        "model": _("model"),
        "settings": _("settings"),
        "language": _("language"),
        "keyring": _("keyring"),
        "sessions": _("sessions"),
        "terminal": _("terminal"),
        "clipboard": _("clipboard"),
    }
    findings = []
    for found in _everything():
        # Names in files and paths are shown as well: nothing of them may rule the terminal.
        text, cure = (" ".join(plain(words).split()) for words in (found.text, found.cure))
        findings.append(each := replace(found, text=text, cure=cure))
        if not as_json:
            area = names.get(each.area, each.area)
            click.echo(f"{pad(marks[each.health], 4)}  {pad(area, 10)}{each.text}")
            if each.cure:
                click.echo(f"      {'':<10}→ {each.cure}")
    healthy = all(each.health is not Health.BAD for each in findings)
    if as_json:
        report = {"healthy": healthy, "findings": [asdict(each) for each in findings]}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    if not healthy:
        raise click.exceptions.Exit(1)


def _everything() -> "Iterator[Finding]":
    from app.core.checkup import report
    from app.core.settings import file as settings_file

    yield from report.examine()
    # What only the interface knows takes a second to load: where something of it is set.
    if settings_file.sets_keys_or_theme():
        from app.tui.checkup import examine

        yield from examine()
