"""`ling-chat [FILE...]`: the TUI."""

import click

from app.cli.options import engine_options


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@engine_options
@click.option("--theme", metavar="NAME", help="A theme of the app or of your themes folder.")
def chat(
    files: tuple[str, ...],
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    theme: str | None,
) -> None:
    """Open the app, with these documents attached (the default command)."""
    import os
    import sys

    from app.core import settings as settings_file
    from app.core.spec import wanted
    from engine_bridge.errors import UsageError

    for file in files:
        if not os.path.exists(file):
            raise UsageError(
                f"There is no command and no file called {file!r}.", "See `ling-chat --help`."
            )
    if not all(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "The app needs a terminal.", "Use `ling-chat ask` for pipes, or run it in a terminal."
        )
    settings = settings_file.load()
    if theme:
        settings.only_now("appearance.theme", theme)
    spec = wanted(settings, engine, model, url, context)

    from app.tui.run import run_app

    if code := run_app(spec, settings, files):
        raise click.exceptions.Exit(code)
