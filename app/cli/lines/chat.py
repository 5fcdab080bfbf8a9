"""The conversation of the plain line mode: reads a line, answers it, and says states as words."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from app.cli.lines.background import Background
from app.cli.lines.memory import Memory
from app.core.i18n import _, shown
from app.core.plain import plain
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from app.core.settings.file import Settings
    from engine_bridge.contract import EngineSpec, EngineStatus
    from engine_bridge.engine import Engine

PROMPT = "> "
HISTORY_LINES = 500


def run_lines(spec: "EngineSpec", settings: "Settings", files: Sequence[str]) -> None:
    """Chat line by line until the user leaves. Raises UnavailableError if no engine host is had."""
    from app.cli.line import Line
    from app.core.chat.sampling import of_settings
    from engine_bridge.engine import open_engine

    Line.may_redraw = False
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    with Background() as work:
        engine = work.wait(open_engine(spec))
        try:
            with Memory(of_settings(settings.chat)) as memory:
                LineChat(work, engine, spec, settings, memory).run(files)
        finally:
            work.wait(engine.close())


class LineChat:
    """What the loop and its commands share."""

    def __init__(
        self,
        work: Background,
        engine: "Engine",
        spec: "EngineSpec",
        settings: "Settings",
        memory: Memory,
    ) -> None:
        self.work = work
        self.engine = engine
        self.spec = spec
        self.settings = settings
        self.memory = memory
        self.offered: EngineSpec | None = None
        """The engine of the session that was opened, where another one runs."""

    @property
    def conversation(self) -> "Conversation":
        """The one that is on now."""
        return self.memory.conversation

    def run(self, files: Sequence[str]) -> None:
        """Start the engine, then read lines until the end."""
        from app.cli.lines.commands import command

        say(_("ling-chat, plain mode. /help lists the commands; Ctrl+C stops a reply."))
        if self.memory.notice:
            say(self.memory.notice)
        for file in files:
            self.attempt(self.attach, file)
        self.attempt(self.start)
        for line in _lines():
            name, argument = _command(line)
            if not name:
                self.attempt(self.ask, argument)
            elif self.attempt(command, self, name, argument) is LEAVE:
                break

    def attempt(self, action: object, *arguments: object) -> object:
        """Do it; what goes wrong is said, and the conversation goes on."""
        assert callable(action)
        try:
            return action(*arguments)
        except BridgeError as error:
            say(shown(str(error)))
        except KeyboardInterrupt:
            say(_("Stopped."))
        except ConnectionError as error:
            say(_("The engine host left ({why}). /start tries again.").format(why=error))
        return None

    def attach(self, source: str) -> None:
        """Attach a file, a folder or a page."""
        from app.cli.documents import Attaching

        with Attaching(self.conversation, show=True) as attaching:
            attaching.source(source)

    def start(self, **changes: object) -> None:
        """Start the engine, with these changes to what is wanted, and wait until it is ready."""
        self.spec = self.spec.model_copy(update=changes)
        status = self.work.wait(self._start())
        say(_("Ready: {model}.").format(model=plain(status.model_name) or self.spec.backend))

    async def _start(self) -> "EngineStatus":
        from app.cli.progress import StartProgress
        from engine_bridge.engine import wait_until_ready

        say(_("Starting the engine."))
        with StartProgress() as progress:
            await self.engine.start(self.spec)
            progress.follow(self.engine)
            return await wait_until_ready(self.engine)

    def ask(self, text: str) -> None:
        """Ask, and write the answer as it comes."""
        self.work.wait(self._answer(text))

    def again(self) -> None:
        """Ask the last question again."""
        self.work.wait(self._answer(None))

    async def _answer(self, text: str | None) -> None:
        from contextlib import aclosing

        from app.cli.ask import Printer
        from app.cli.documents import doubts
        from app.cli.notes import Notes

        talk = self.conversation
        printer = Printer(quiet=False)
        asked = talk.regenerate(self.engine) if text is None else talk.ask(text, self.engine)
        with Notes(quiet=False, aside=False) as notes:
            try:
                async with aclosing(asked) as events:
                    async for event in events:
                        notes.take(event)
                        printer.take(event)
            finally:
                sources = printer.end(talk, as_json=False)
        for doubt in doubts(sources):
            say(doubt)


LEAVE = object()
"""What a command returns that ends the conversation."""


def say(text: str) -> None:
    """A line of ours; nothing in it can command the terminal."""
    click.echo(plain(text))


def _command(line: str) -> tuple[str, str]:
    """The command of a line and what follows it; no command where it is something to say.

    Two slashes say a line that begins with one; a path is no command either.
    """
    if line.startswith("//"):
        return "", line[1:]
    name, _space, argument = line[1:].partition(" ")
    if not line.startswith("/") or "/" in name:
        return "", line
    return name, argument.strip()


def _lines() -> Iterator[str]:
    """The lines of the user, without empty ones, until the end of input or the second Ctrl+C.

    A line that ends with a backslash goes on in the next.
    """
    parts: list[str] = []
    warned = False
    with _history():
        while True:
            try:
                line = input("" if not sys.stdin.isatty() else PROMPT)
            except EOFError:
                say("")
                return
            except KeyboardInterrupt:
                say("")
                if warned:
                    return
                say(_("Press Ctrl+C again to quit."))
                parts, warned = [], True
                continue
            warned = False
            if line.endswith("\\"):
                parts.append(line[:-1])
                continue
            text = "\n".join([*parts, line]).strip()
            parts = []
            if text:
                yield text


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Line editing with what was typed in earlier runs, where this is a terminal."""
    from engine_bridge import paths

    try:
        import readline
    except ImportError:
        yield
        return
    file = paths.state_dir() / "line-history"
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        if sys.stdin.isatty():
            readline.set_history_length(HISTORY_LINES)
            with contextlib.suppress(OSError):
                # What people ask is theirs alone, from the first byte.
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
                readline.write_history_file(file)
