"""Help in the user's language: texts in decorators and docstrings stay English in the source."""

import inspect

import click

from app.core.i18n import _, language


def translated(command: click.Command) -> click.Command:
    """The same command, its help and that of its options and subcommands translated."""
    if language() == "en":
        return command
    command.help = _(inspect.cleandoc(command.help or ""))
    command.epilog = _(command.epilog or "")
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            parameter.help = _(parameter.help)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            translated(each)
    return command
