"""What a line that begins with a slash does."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.cli.lines.chat import LEAVE, LineChat, say
from app.core.chat import origins
from app.core.i18n import _, shown
from engine_bridge.errors import UsageError

if TYPE_CHECKING:
    from engine_bridge.contract import Optimisation


def command(chat: LineChat, name: str, argument: str) -> object:
    """Do it; returns LEAVE if the conversation ends. Raises UsageError for an unknown one."""
    found = COMMANDS.get(name)
    if found is None:
        raise UsageError(
            _("There is no command /{name}.").format(name=name), _("/help lists them.")
        )
    return found[2](chat, argument)


def _help(chat: LineChat, argument: str) -> None:
    for name, (takes, what, _action) in COMMANDS.items():
        say(f"/{name} {takes}: {what}" if takes else f"/{name}: {what}")
    say(_("A line that ends with a backslash goes on in the next. // says a line with one slash."))


def _attach(chat: LineChat, argument: str) -> None:
    if not argument:
        raise UsageError(_("Which file?"), _("Give it like: /attach report.pdf"))
    chat.attach(argument)


def _documents(chat: LineChat, argument: str) -> None:
    from app.cli.documents import describe

    for number, each in enumerate(chat.conversation.documents, 1):
        say(f"{number}. {describe(each)}")
    if not chat.conversation.documents:
        say(_("No document is attached."))


def _detach(chat: LineChat, argument: str) -> None:
    documents = chat.conversation.documents
    if not (argument.isdecimal() and 1 <= int(argument) <= len(documents)):
        raise UsageError(_("Which document?"), _("Give its number from /documents."))
    gone = documents.pop(int(argument) - 1)
    chat.conversation.changed()
    say(_("Removed: {title}.").format(title=gone.title))


def _switch(chat: LineChat, argument: str) -> None:
    known = {each.id: each for each in chat.engine.status.optimisations}
    name, _space, value = argument.partition(" ")
    if not name:
        for each in known.values():
            say(_describe(each))
        return
    if name not in known or not known[name].switchable:
        ids = ", ".join(each.id for each in known.values() if each.switchable)
        raise UsageError(
            _("There is no switch {name} now.").format(name=name),
            _("There are: {ids}.").format(ids=ids) if ids else _("/start starts the engine."),
        )
    if value not in ("on", "off"):
        raise UsageError(_("On or off?"), _("Give it like: /switch {id} on").format(id=name))
    wanted = {**chat.spec.optimisations, name: value == "on"}
    chat.settings.put("engine.optimisations", wanted)
    chat.start(optimisations=wanted)
    for each in chat.engine.status.optimisations:
        if each.id == name:
            say(_describe(each))


def _describe(each: "Optimisation") -> str:
    """ "ngram, on: verified, +17% decode. Drafts tokens from …"."""
    from app.core import figures

    state = _("on") if each.requested else _("off")
    words = ", ".join(filter(None, [shown(str(each.verdict)), figures.effect(each.effect)]))
    return f"{each.id}, {state}: {words}. {shown(each.note or each.observed or each.summary)}"


def _engine(chat: LineChat, argument: str) -> None:
    status = chat.engine.status
    say(
        _("The engine is {state}. {what}").format(
            state=shown(str(status.state)), what=shown(status.phase or status.reason)
        )
    )
    if status.model_name:
        say(_("Model: {model}").format(model=status.model_name))
    if status.context_tokens:
        say(_("Context: {n:,} tokens").format(n=status.context_tokens))
    for each in status.optimisations:
        say(_describe(each))


def _start(chat: LineChat, argument: str) -> None:
    if argument:
        if chat.offered is None:
            raise UsageError(
                _("There is no other engine to start."), _("/open offers that of a session.")
            )
        chat.spec, chat.offered = chat.offered, None
    chat.start()


def _stop(chat: LineChat, argument: str) -> None:
    chat.work.wait(chat.engine.stop())
    say(_("The engine is stopped."))


def _again(chat: LineChat, argument: str) -> None:
    chat.again()


def _new(chat: LineChat, argument: str) -> None:
    chat.memory.begin()
    say(_("A new conversation; documents stay."))


def _sessions(chat: LineChat, argument: str) -> None:
    found = chat.memory.search(argument) if argument else chat.memory.recent()
    for each in found:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.changed))
        say(f"{each.key}: {each.title}, {day}")
    if not found:
        say(_("There is no such session.") if argument else _("There is no session yet."))


def _open(chat: LineChat, argument: str) -> None:
    if not argument:
        raise UsageError(_("Which session?"), _("Give the beginning of its key from /sessions."))
    notice = chat.memory.resume(argument)
    if notice:
        say(notice)
    for turn in chat.conversation.turns:
        who = _("You") if turn.role == "user" else _("Answer")
        say(f"{who}: {turn.text}")
    if found := origins.other(chat.conversation, chat.engine.status, chat.spec):
        who, chat.offered = origins.name(found[0]), found[1]
        say(_("{who} answered here. /start session starts it again.").format(who=who))


def _system(chat: LineChat, argument: str) -> None:
    chat.conversation.system = argument
    say(_("The system prompt is set.") if argument else _("There is no system prompt now."))


def _thinking(chat: LineChat, argument: str) -> None:
    from dataclasses import replace

    if argument not in ("on", "off", ""):
        raise UsageError(_("On or off?"), _("Give it like: /thinking off"))
    wanted = {"on": True, "off": False}.get(argument)
    talk = chat.conversation
    talk.parameters = replace(talk.parameters, thinking=wanted)
    states: dict[bool | None, str] = {
        True: _("The model thinks first."),
        False: _("The model answers at once."),
    }
    say(states.get(wanted, _("The model thinks as it likes.")))


def _quit(chat: LineChat, argument: str) -> object:
    return LEAVE


_Action = Callable[[LineChat, str], object]
COMMANDS: dict[str, tuple[str, str, _Action]] = {
    "help": ("", _("this list"), _help),
    "attach": (_("FILE"), _("attach a file, a folder or the address of a page"), _attach),
    "documents": ("", _("what is attached"), _documents),
    "detach": (_("NUMBER"), _("remove a document"), _detach),
    "again": ("", _("ask the last question again"), _again),
    "new": ("", _("a new conversation; documents stay"), _new),
    "sessions": (
        _("[WORDS]"),
        _("earlier conversations; with words, those that have them"),
        _sessions,
    ),
    "open": (_("KEY"), _("go on with an earlier conversation"), _open),
    "system": (_("TEXT"), _("set the system prompt; without text, none"), _system),
    "thinking": (_("on or off"), _("whether the model thinks first"), _thinking),
    "engine": ("", _("the engine's state"), _engine),
    "switch": (_("NAME on or off"), _("switch an optimisation; alone, list them"), _switch),
    "start": (_("[session]"), _("start the engine, or that of the session opened"), _start),
    "stop": ("", _("stop the engine"), _stop),
    "quit": ("", _("leave; Ctrl+D does it too"), _quit),
}
"""Each with what it takes, what it does, and the function."""
