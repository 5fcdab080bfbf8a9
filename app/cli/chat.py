"""`ling-chat [FILE...]`: the TUI."""

import click

from app.cli.options import engine_options
from app.core.i18n import _


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@engine_options
@click.option(
    "--plain",
    is_flag=True,
    help="Line by line, for screen readers and terminals that cannot place a cursor.",
)
@click.option("--theme", metavar="NAME", help="A theme of the app or of your themes folder.")
def chat(
    files: tuple[str, ...],
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    plain: bool,
    theme: str | None,
) -> None:
    """Open the app, with these documents attached (the default command)."""
    import os
    import sys

    from app.core import terminal
    from app.core.settings import file as settings_file
    from app.core.spec import wanted
    from engine_bridge.errors import UsageError

    for file in files:
        if not os.path.exists(file) and not file.lower().startswith(("http://", "https://")):
            raise UsageError(
                _("There is no command and no file called {file!r}.").format(file=file),
                _("See `ling-chat --help`."),
            )
    is_terminal = all(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr))
    plain = plain or (is_terminal and terminal.is_dumb())
    if not plain and not is_terminal:
        raise UsageError(
            _("The app needs a terminal."),
            _("Use `ling-chat ask` for pipes, or run it in a terminal."),
        )
    settings = settings_file.load()
    if theme:
        settings.only_now("appearance.theme", theme)
    spec = wanted(settings, engine, model, url, context)

    if plain:
        from app.cli.lines.chat import run_lines

        run_lines(spec, settings, files)
        return
    from app.tui.run import run_app

    if code := run_app(spec, settings, files):
        raise click.exceptions.Exit(code)
