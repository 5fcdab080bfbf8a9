"""What can be asked of the app from the box: /attach and its like."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.core.i18n import _
from engine_bridge.errors import UsageError

if TYPE_CHECKING:
    from app.tui.screens.chat import ChatScreen


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One command. `run` gets the screen and what stands after the name."""

    name: str
    summary: str
    run: Callable[["ChatScreen", str], Awaitable[None] | None]
    argument: str = ""
    """What the argument is, as in PATH; empty where there is none."""
    takes_path: bool = False
    """Paths are completed after it."""

    @property
    def hint(self) -> str:
        """What stands beside its name in a list."""
        return _(self.summary) + (f": {_(self.argument)}" if self.argument else "")


_COMMANDS: dict[str, SlashCommand] = {}


def register(command: SlashCommand) -> None:
    """Add a command; one of the same name is replaced."""
    _COMMANDS[command.name] = command


def commands() -> list[SlashCommand]:
    """All commands in the order they were added."""
    return list(_COMMANDS.values())


def find(text: str) -> tuple[SlashCommand, str] | None:
    """The command that this text asks for and its argument; None where the text is a message.

    Raises UsageError for /word that is no command. A path such as /etc/hosts is a message, and
    so is anything after a space.
    """
    name, _space, argument = text.partition(" ")
    word = name.removeprefix("/")
    if not name.startswith("/") or "\n" in text or not word.isalpha():
        return None
    if command := _COMMANDS.get(word):
        return command, argument.strip()
    known = ", ".join(f"/{each}" for each in _COMMANDS)
    raise UsageError(
        _("There is no command /{name}.").format(name=word),
        _("There are {known}; begin with a space to send it as text.").format(known=known),
    )


async def do(command: SlashCommand, argument: str, chat: "ChatScreen") -> None:
    """Do what the command is for."""
    if (work := command.run(chat, argument)) is not None:
        await work


def _register_ours() -> None:
    def add(name: str, summary: str, run: Callable[["ChatScreen"], Awaitable[None] | None]) -> None:
        register(SlashCommand(name, summary, lambda chat, _argument: run(chat)))

    register(
        SlashCommand(
            "attach",
            _("Attach a file, a folder or a web page"),
            lambda chat, argument: chat.desk.attach(argument),
            _("PATH or URL"),
            takes_path=True,
        )
    )
    add("shelf", _("The documents of this conversation"), lambda chat: chat.action_shelf())
    add("kept", _("Documents of earlier sessions"), lambda chat: chat.desk.add_kept())
    add("edit", _("Write in your own editor"), lambda chat: chat.action_edit())
    add("new", _("New chat"), lambda chat: chat.action_new_chat())
    add("sessions", _("Earlier conversations"), lambda chat: chat.app.action_sessions())
    add("engine", _("The engine and its switches"), lambda chat: chat.app.action_engine())
    add("settings", _("Settings"), lambda chat: chat.app.action_settings())
    add("help", _("Keys"), lambda chat: chat.app.action_help())
    add("quit", _("Quit"), lambda chat: chat.app.action_quit())


_register_ours()
