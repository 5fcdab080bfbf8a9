"""The options that `chat`, `ask` and `engine start` share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from engine_bridge.contract import EngineSpec

F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("auto", "sglang", "llamacpp", "attach")


def engine_options(command: F) -> F:
    """--engine, --model, --url and --context."""
    for option in (
        click.option(
            "--context", type=click.IntRange(256), metavar="TOKENS", help="Context length."
        ),
        click.option("--url", metavar="URL", help="Server to attach to; implies --engine attach."),
        click.option(
            "--model", metavar="NAME", help="A name from `ling-chat models list`, or a GGUF file."
        ),
        click.option(
            "--engine", type=click.Choice(ENGINES), help="Default: auto (the embedded engine)."
        ),
    ):
        command = option(command)
    return command


def spec_of(
    engine: str | None, model: str | None, url: str | None, context: int | None
) -> "EngineSpec":
    """The engine that these options and the settings ask for. Raises UsageError."""
    from app.core.settings import file as settings
    from app.core.spec import wanted

    return wanted(settings.load(), engine, model, url, context)
