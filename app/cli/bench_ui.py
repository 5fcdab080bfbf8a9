"""`ling-chat bench ui`: what drawing costs, measured without a terminal and without an engine."""

import click

from app.core.i18n import _


@click.command()
@click.option("--quick", is_flag=True, help="Shorter, and without Textual's own Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ui(quick: bool, as_json: bool) -> None:
    """What the transcript costs in CPU: a flush, a resize, opening, keys, memory.

    Run it on an idle machine; the ratios mean something everywhere.
    """
    import asyncio
    import json

    from app.cli.line import Line
    from app.tui.bench_ui import TARGETS, measure

    line = Line()
    try:
        found = asyncio.run(measure(line.draw if line.redraws else line.say, quick))
    finally:
        line.clear()
    if as_json:
        click.echo(json.dumps(found | {"targets": TARGETS}, indent=1))
        return
    for name, value in found.items():
        if isinstance(value, dict):
            text = ", ".join(f"{key} {figure:,.1f}" for key, figure in value.items())
        else:
            text = f"{value:,.3f}" if value < 10 else f"{value:,.0f}"
        row = f"{name:34} {text:>14}"
        if name in TARGETS:
            row += "   " + _("at most {most:g}").format(most=TARGETS[name])
        click.echo(row)
