"""Everything the app can do, for the command palette."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from app.core.i18n import _
from app.tui import themes
from app.tui.keymap import key as _key
from app.tui.panel.words import can_switch, is_ours, switch_means
from app.tui.plain import one_line, said
from engine_bridge.contract import EngineState

if TYPE_CHECKING:
    from app.tui.app import LingChat
    from app.tui.screens.chat import ChatScreen


def system_commands(app: "LingChat", chat: "ChatScreen") -> Iterator[SystemCommand]:
    """The commands that make sense now, the most used ones first."""
    if chat.talk.is_running:
        yield SystemCommand(_("Stop the reply"), "Esc", chat.action_stop)
    if chat.transcript.last_reply is not None:
        yield SystemCommand(_("Copy the last reply"), "Ctrl+Y", chat.action_copy)
        yield SystemCommand(_("Regenerate the last reply"), "Ctrl+R", chat.action_regenerate)
        yield SystemCommand(_("Open or fold the thinking"), "Ctrl+T", chat.action_thinking)
        yield SystemCommand(
            _("Edit the last message"), _key("chat.edit_last"), chat.action_edit_last
        )
        yield SystemCommand(_("Branches"), _key("chat.branches"), chat.action_branches)
    yield SystemCommand(_("Sessions"), _key("app.sessions"), app.action_sessions)
    yield SystemCommand(
        _("This session: system prompt, presets, sampling"),
        _key("chat.parameters"),
        chat.action_parameters,
    )
    yield SystemCommand(
        _("Thinking about the next message: on, off"),
        _key("chat.think_next"),
        chat.action_think_next,
    )
    yield SystemCommand(_("New chat"), _("Ctrl+N: documents stay"), chat.action_new_chat)
    yield SystemCommand(
        _("Attach"), _("Ctrl+O: a file, a folder or a web page"), chat.action_attach
    )
    yield SystemCommand(_("Attach from earlier sessions"), _("Kept documents"), chat.desk.add_kept)
    yield SystemCommand(_("Shelf"), _("F4: the documents of this conversation"), chat.action_shelf)
    if app.conversation.documents:
        yield SystemCommand(
            _("Next source"), _("Ctrl+S: opens what the reply cites"), chat.action_next_source
        )
        yield SystemCommand(
            _("Warm the documents"),
            _("After a restart, or when stopped"),
            chat.desk.context.warm_again,
        )
    yield SystemCommand(_("Write in your editor"), "Ctrl+G", chat.action_edit)
    yield from _switches(app)
    yield SystemCommand(_("Engine"), _("F2: state, phases, proofs, log"), app.action_engine)
    yield from _engine(app)
    for name in app.themes.names:
        now = _("Colours, in use now") if name == app.theme else _("Colours")
        about = ": ".join(filter(None, (now, themes.title(name))))
        title = _("Theme: {name}").format(name=name)
        yield SystemCommand(title, about, partial(app.use_theme, name))
    yield SystemCommand(_("Benchmarks"), _("F7: measure, compare, history"), app.action_bench)
    yield SystemCommand(_("Settings"), "F8", app.action_settings)
    yield SystemCommand(_("Show or hide the panel"), "F3", chat.action_panel)
    yield SystemCommand(_("Keys"), _("F1: what every key does"), app.action_help)
    yield SystemCommand(_("Quit"), "Ctrl+Q", app.action_quit)


def _switches(app: "LingChat") -> Iterator[SystemCommand]:
    for number, each in enumerate(app.switches, 1):
        if not can_switch(each):
            continue
        is_on = app.wanted.get(each.id, each.requested)
        verb = _("off") if is_on else _("on")
        if app.status.state is EngineState.STOPPED:
            hint = _("applies at the next start")
        else:
            hint = switch_means(each)
        yield SystemCommand(
            _("{number} Switch {verb}: {title}").format(
                number=number, verb=verb, title=said(each.title)
            ),
            hint[:1].upper() + hint[1:],
            partial(app.switch, each.id, not is_on),
        )


def _engine(app: "LingChat") -> Iterator[SystemCommand]:
    if app.offered is not None and not app.status.remedy:
        yield SystemCommand(
            _("Start this session's engine"),
            one_line(app.offered.model or app.offered.url or ""),
            app.action_apply_remedy,
        )
    if app.status.state.is_usable:
        yield SystemCommand(_("Verify"), _("Proves every optimisation again"), app.verify)
    else:
        yield SystemCommand(_("Start the engine"), "F5", app.action_start_engine)
    if not is_ours(app.spec):
        return
    if app.status.state.is_usable:
        yield SystemCommand(_("Restart the engine"), _("Stops and starts it"), app.restart_engine)
        yield SystemCommand(_("Stop the engine"), _("Frees its memory"), app.action_stop_engine)
    if app.status.keep:
        yield SystemCommand(
            _("Let the engine go on quit"),
            _("It stops when the last ling-chat is closed"),
            partial(app.keep_engine, False),
        )
    else:
        yield SystemCommand(
            _("Keep the engine running after quit"),
            _("The next start is at once"),
            partial(app.keep_engine, True),
        )
