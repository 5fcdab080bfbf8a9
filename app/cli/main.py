"""`ling-chat`: finds the command, runs it, and turns what goes wrong into one sentence."""

import importlib
import os
import sys
from typing import NoReturn

import click

from app.cli.translated import translated
from app.core.i18n import _, lend_to_libraries, shown
from engine_bridge.errors import BridgeError, UnavailableError, brief

# pydantic would look through all installed packages for plugins: 30 ms of each command's start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

COMMANDS = {
    "chat": "app.cli.chat:chat",
    "ask": "app.cli.ask:ask",
    "sessions": "app.cli.sessions:sessions",
    "engine": "app.cli.engine:engine",
    "models": "app.cli.models:models",
    "bench": "app.cli.bench:bench",
    "doctor": "app.cli.doctor:doctor",
    "key": "app.cli.key:key",
}
INTERRUPTED = 130


class LazyCommands(click.Group):
    """Imports a command when it is called, and takes anything that is no command as `chat`'s."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name].split(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return translated(command)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in {*COMMANDS, "--help", "-h", "--version"}:
            args = ["chat", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`ling-chat [FILE...]` opens the app with these documents; its options are those of"
    " `ling-chat chat`. With --debug, an error shows where it came from.",
)
@click.version_option(package_name="ling-chat")
def main() -> None:
    """Chat with a local model, see what its engine does, and switch its optimisations."""


def run(argv: list[str] | None = None) -> NoReturn:
    """The console script. Never returns: exits 0 done, 1 failed, 2 wrong usage, 3 no engine or
    model, 130 interrupted."""
    args = sys.argv[1:] if argv is None else argv
    debug = "--debug" in args
    args = [each for each in args if each != "--debug"]
    try:
        # Without standalone mode, click returns the exit code of a command that chose one.
        if sys.stdout is None:  # closed by who started us, as with >&-
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        lend_to_libraries()
        translated(main)
        code = main.main(args, prog_name="ling-chat", standalone_mode=False) or 0
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except BridgeError as problem:
        if debug:
            raise
        from app.core.plain import plain

        # A sentence may quote a file's name or a server's words, and stays one line.
        told = " ".join(plain(shown(str(problem))).splitlines())
        click.echo(f"ling-chat: {told}", err=True)
        code = problem.exit_code
    except BrokenPipeError:
        # The reader had enough; Python must not complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    except ConnectionError as problem:
        if debug:
            raise
        click.echo(
            _("ling-chat: The engine host left ({problem}). Try again.").format(problem=problem),
            err=True,
        )
        code = UnavailableError.exit_code
    except OSError as problem:
        if debug:
            raise
        what = f" ({problem.filename})" if problem.filename else ""
        click.echo(
            _(
                "ling-chat: The system says: {problem}{what}. Check the disk and its permissions."
            ).format(problem=problem.strerror or problem, what=what),
            err=True,
        )
        code = 1
    except Exception as problem:
        if debug:
            raise
        click.echo(
            _(
                "ling-chat: Something went wrong that should not: {problem}."
                " Run it again with --debug to see where."
            ).format(problem=brief(problem)),
            err=True,
        )
        code = 1
    sys.exit(code)
