"""Everything the app can do, for the command palette."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from app.tui.keymap import key as _key
from app.tui.panel.words import can_switch, is_ours, switch_hint
from app.tui.plain import one_line
from engine_bridge.contract import EngineState

if TYPE_CHECKING:
    from app.tui.app import LingChat
    from app.tui.screens.chat import ChatScreen


def system_commands(app: "LingChat", chat: "ChatScreen") -> Iterator[SystemCommand]:
    """The commands that make sense now, the most used ones first."""
    if chat.talk.is_running:
        yield SystemCommand("Stop the reply", "Esc", chat.action_stop)
    if chat.transcript.last_reply is not None:
        yield SystemCommand("Copy the last reply", "Ctrl+Y", chat.action_copy)
        yield SystemCommand("Regenerate the last reply", "Ctrl+R", chat.action_regenerate)
        yield SystemCommand("Open or fold the thinking", "Ctrl+T", chat.action_thinking)
        yield SystemCommand("Edit the last message", _key("chat.edit_last"), chat.action_edit_last)
        yield SystemCommand("Branches", _key("chat.branches"), chat.action_branches)
    yield SystemCommand("Sessions", _key("app.sessions"), app.action_sessions)
    yield SystemCommand(
        "This session: system prompt, presets, sampling",
        _key("chat.parameters"),
        chat.action_parameters,
    )
    yield SystemCommand(
        "Thinking about the next message: on, off", _key("chat.think_next"), chat.action_think_next
    )
    yield SystemCommand("New chat", "Ctrl+N: documents stay", chat.action_new_chat)
    yield SystemCommand("Attach", "Ctrl+O: a file, a folder or a web page", chat.action_attach)
    yield SystemCommand("Attach from earlier sessions", "Kept documents", chat.desk.add_kept)
    yield SystemCommand("Shelf", "F4: the documents of this conversation", chat.action_shelf)
    if app.conversation.documents:
        yield SystemCommand(
            "Next source", "Ctrl+S: opens what the reply cites", chat.action_next_source
        )
        yield SystemCommand("Warm the documents", "After a restart", chat.desk.context.warm_again)
    yield SystemCommand("Write in your editor", "Ctrl+G", chat.action_edit)
    yield from _switches(app)
    yield SystemCommand("Engine", "F2: state, phases, proofs, log", app.action_engine)
    yield from _engine(app)
    for name in app.themes.names:
        now = "Colours, in use now" if name == app.theme else "Colours"
        yield SystemCommand(f"Theme: {name}", now, partial(app.use_theme, name))
    yield SystemCommand("Benchmarks", "F7: measure, compare, history", app.action_bench)
    yield SystemCommand("Settings", "F8", app.action_settings)
    yield SystemCommand("Show or hide the panel", "F3", chat.action_panel)
    yield SystemCommand("Keys", "F1: what every key does", app.action_help)
    yield SystemCommand("Quit", "Ctrl+Q", app.action_quit)


def _switches(app: "LingChat") -> Iterator[SystemCommand]:
    for number, each in enumerate(app.switches, 1):
        if not can_switch(each):
            continue
        is_on = app.wanted.get(each.id, each.requested)
        verb = "off" if is_on else "on"
        if app.status.state is EngineState.STOPPED:
            hint = "applies at the next start"
        else:
            hint = switch_hint(each).removeprefix("Space ")
        yield SystemCommand(
            f"{number} Switch {verb}: {one_line(each.title)}",
            hint[:1].upper() + hint[1:],
            partial(app.switch, each.id, not is_on),
        )


def _engine(app: "LingChat") -> Iterator[SystemCommand]:
    if app.status.state.is_usable:
        yield SystemCommand("Verify", "Proves every optimisation again", app.verify)
    else:
        yield SystemCommand("Start the engine", "F5", app.action_start_engine)
    if not is_ours(app.spec):
        return
    if app.status.state.is_usable:
        yield SystemCommand("Restart the engine", "Stops and starts it", app.restart_engine)
        yield SystemCommand("Stop the engine", "Frees its memory", app.action_stop_engine)
    if app.status.keep:
        yield SystemCommand(
            "Let the engine go on quit",
            "It stops when the last ling-chat is closed",
            partial(app.keep_engine, False),
        )
    else:
        yield SystemCommand(
            "Keep the engine running after quit",
            "The next start is at once",
            partial(app.keep_engine, True),
        )
