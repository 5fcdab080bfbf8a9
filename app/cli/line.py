"""One line on standard error that is drawn again and again, where that is a terminal."""

import os
import shutil
import sys

import click

CLEAR = "\r\x1b[K"


class Line:
    """Cut to the terminal's width. `redraws` is False where a line once written stays."""

    may_redraw = True
    """False in a process that never draws over what it wrote: the plain mode."""

    def __init__(self) -> None:
        self.redraws = self.may_redraw and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = False

    def draw(self, text: str) -> None:
        """Show this instead of what was drawn before."""
        text = text[: max(1, shutil.get_terminal_size().columns - 1)]
        click.echo(CLEAR + text, nl=False, err=True)
        self._drawn = True

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """Wipe what was drawn, so that what follows starts at the left."""
        if self._drawn:
            click.echo(CLEAR, nl=False, err=True)
        self._drawn = False
