"""The chat screen: the conversation, the box to type in, and the engine beside them."""

import gc
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Static

from app.core.chat.tree import Turn
from app.core.i18n import _, shown
from app.tui.composer import slash
from app.tui.composer.composer import Composer
from app.tui.glyphs import Glyphs
from app.tui.panel.live import Live
from app.tui.panel.side_panel import SidePanel, StatusLine
from app.tui.panel.switches import SwitchRow
from app.tui.panel.words import cure
from app.tui.screens.welcome import Welcome
from app.tui.shelf.on_screen import DocumentScreen
from app.tui.talk import Talk
from app.tui.transcript.entries import NoteEntry
from app.tui.transcript.paint import preload
from app.tui.transcript.view import Transcript
from app.tui.transcript.walk import WalkedTranscript
from engine_bridge.contract import EngineState, EngineStatus
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.tui.app import LingChat

TICK_S = 0.25
PRELOAD_S = 0.5
FREEZE_S = 3.0
WIDE = 100
"""Columns from which the side panel has room."""


class ChatScreen(DocumentScreen):
    """Everything about talking; what concerns the engine alone is the app's."""

    AUTO_FOCUS = "#composer"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", _("Stop"), id="chat.stop"),
        Binding("ctrl+y", "copy", _("Copy"), priority=True, id="chat.copy"),
        Binding("ctrl+r", "regenerate", _("Again"), id="chat.regenerate"),
        Binding("ctrl+l", "edit_last", _("Edit the last message"), show=False, id="chat.edit_last"),
        Binding("f12", "think_next", _("Think about the next"), show=False, id="chat.think_next"),
        Binding("f10", "parameters", _("This session"), show=False, id="chat.parameters"),
        Binding("ctrl+b", "branches", _("Branches"), show=False, id="chat.branches"),
        Binding("ctrl+n", "new_chat", _("New chat"), show=False, id="chat.new_chat"),
        Binding("ctrl+t", "thinking", _("Thinking"), show=False, id="chat.thinking"),
        Binding("f3", "panel", _("Panel"), show=False, id="chat.panel"),
        Binding("pageup", "page(-1)", _("Scroll up"), show=False, priority=True, id="chat.page_up"),
        Binding(
            "pagedown", "page(1)", _("Scroll down"), show=False, priority=True, id="chat.page_down"
        ),
        Binding(
            "ctrl+up", "row(-1)", _("Scroll up a row"), show=False, priority=True, id="chat.row_up"
        ),
        Binding(
            "ctrl+down",
            "row(1)",
            _("Scroll down a row"),
            show=False,
            priority=True,
            id="chat.row_down",
        ),
        Binding("ctrl+home", "top", _("To the top"), show=False, priority=True, id="chat.top"),
        Binding("ctrl+end", "end", _("To the end"), show=False, priority=True, id="chat.end"),
    ]

    app: "LingChat"

    def __init__(self, live: Live, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._frame = 0
        self._panel_wanted = True
        self._was = EngineState.STOPPED
        self.talk = Talk(self)
        self.transcript = WalkedTranscript(glyphs, id="transcript")
        self.composer = Composer(id="composer")
        self._welcome = Welcome(glyphs, id="welcome")
        self._middle = Vertical(self._welcome, id="middle")
        self._behind = Static(_("{down} new below").format(down=glyphs.down), id="behind")
        self._status_line = StatusLine(live, glyphs, id="status")
        self._panel = SidePanel(live, glyphs, id="panel")
        self._footer = Footer(show_command_palette=False, compact=True)

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield self._side
            with Vertical(id="talk"):
                yield self._middle
                yield self.transcript
                yield self._behind
                yield self._chips
                yield self.composer
                yield self._status_line
            yield self._panel
        yield self.composer.pop_up
        yield self._footer

    async def on_mount(self) -> None:
        self._behind.display = False
        self._show_middle()
        self.set_interval(TICK_S, self._tick)
        self.watch(self.app, "status", self._status_changed)
        self.set_timer(PRELOAD_S, self._preload)
        # What is there by then stays: else the collector looks through it, 70 ms each time.
        self.set_timer(FREEZE_S, gc.freeze)
        await self.show_documents()

    def _preload(self) -> None:
        """Import what the first reply needs while nothing else is to be done."""
        self.run_worker(preload, thread=True, group="preload")

    # The engine

    async def _status_changed(self, status: EngineStatus) -> None:
        was, self._was = self._was, status.state
        has_failed = status.state is EngineState.FAILED and was is not EngineState.FAILED
        if has_failed and self.transcript.entries:
            helps = _("{status} F5 starts it again.").format(status=cure(status)).strip()
            self.transcript.append(NoteEntry(shown(status.reason), helps, is_bad=True))
        self._show_status(status)
        app = self.app
        await self._panel.show(status, app.switches, app.wanted, app.wanted_when, self._frame)
        self.desk.context.status_changed()
        self.talk.pump()

    def _show_status(self, status: EngineStatus) -> None:
        if not self.transcript.entries:
            self._welcome.show(status, self._frame)
        self._status_line.show(status, self._frame)

    def _tick(self) -> None:
        if self.app.status.state.is_changing or self.talk.is_running:
            self._frame += 1
            self.show_figures()
            self.talk.tick()

    def show_figures(self) -> None:
        """Bring the figures of panel and status line up to date."""
        self._show_status(self.app.status)
        self._panel.tick(self.app.status, self._frame)

    @on(SwitchRow.Switched)
    def _switch(self, event: SwitchRow.Switched) -> None:
        self.app.switch(event.optimisation.id, event.on)

    # What is said

    @on(Composer.Sent)
    async def _send(self, event: Composer.Sent) -> None:
        try:
            command = slash.find(event.text) if event.may_be_command else None
        except BridgeError as error:
            self.composer.put(event.text)
            self.notify(str(error), severity="warning", markup=False)
            return
        if command is not None:
            await slash.do(*command, self)
            return
        await self.desk.add_mentioned(event.text)
        self.talk.say(event.text)
        self._show_middle()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            desk = self.desk
            stops = desk.is_reading or desk.trail.is_opening or desk.context.is_warming
            return self.talk.can_stop or stops
        if action in ("copy", "regenerate"):
            return self.transcript.last_reply is not None
        return True

    @on(Composer.SentNothing)
    def _go_on(self) -> None:
        if self.talk.can_go_on:
            self._try(self.talk.go_on)

    def _try(self, act: Callable[[], None]) -> None:
        """Do it; what stands against it is told."""
        try:
            act()
        except BridgeError as error:
            self.notify(str(error), severity="warning", markup=False)

    @on(WalkedTranscript.Wanted)
    def _do(self, event: WalkedTranscript.Wanted) -> None:
        turn = event.entry.node if event.entry is not None else None
        match event.what:
            case "quote":
                self.composer.quote(event.text)
                self.composer.focus()
            case "leave":
                self.composer.focus()
            case "go_on":
                self._try(self.talk.go_on)
            case "edit" if turn is not None:
                self._reword(turn)
            case "again" if turn is not None:
                self._try(partial(self.talk.regenerate, turn))
            case "before" | "after" if turn is not None:
                self._try(partial(self.talk.switch, turn, 1 if event.what == "after" else -1))

    def _reword(self, turn: Turn) -> None:
        if self.talk.is_running:
            self.notify(_("A reply is still running."), severity="warning")
            return
        self.talk.editing = turn
        self.composer.put(turn.text)
        self.composer.focus()
        self.notify(_("Enter asks it in these words, as another version; Esc leaves it as it was."))

    def action_edit_last(self) -> None:
        """Put the last question in other words."""
        turns = [turn for turn in self.app.conversation.turns if turn.role == "user"]
        if turns:
            self._reword(turns[-1])

    def action_parameters(self) -> None:
        """System prompt, presets and sampling of this session."""
        from app.tui.screens.parameters import ParametersScreen

        self.app.push_screen(ParametersScreen())

    def action_branches(self) -> None:
        """The tree of this conversation."""
        from app.tui.screens.branches import BranchesScreen

        self.app.push_screen(BranchesScreen())

    def action_think_next(self) -> None:
        """Whether the next message is thought about: as the session says, yes, no."""
        talk = self.talk
        talk.thinking = {None: True, True: False, False: None}[talk.thinking]
        told = {
            None: _("Thinking as the session has it."),
            True: _("The model thinks about your next message."),
            False: _("The model answers your next message without thinking."),
        }
        self.notify(told[talk.thinking])

    def action_stop(self) -> None:
        """Stop the running reply, or take back the message that waits, or give up an edit or
        reading, a document's or the engine's."""
        if self.desk.trail.give_up():  # meant for the preview that was about to open
            return
        if not self.talk.is_running and self.desk.stop_reading():
            return
        if self.talk.editing is not None and not self.talk.is_running:
            self.talk.editing = None
            self.composer.put("")
        elif self.talk.can_stop:
            if taken := self.talk.stop():
                self.desk.give_back(taken)
                self._show_middle()
        else:
            self.desk.context.stop_warming()

    def action_regenerate(self) -> None:
        """Ask the last question again."""
        self._try(self.talk.regenerate)

    async def action_copy(self) -> None:
        """Copy the selected text, else the last reply."""
        reply = self.transcript.last_reply
        selected = self.get_selected_text() or self.composer.selected_text
        text = selected or (reply.text if reply else "")
        if text:
            await self.app.copy(text)

    async def action_new_chat(self) -> None:
        """Begin another conversation with the same documents; this one is kept."""
        await self.app.sessions.new()
        self.composer.focus()

    async def show_conversation(self) -> None:
        """The conversation is another one."""
        self.talk.show()
        self._show_middle()
        await self.show_documents()

    def action_thinking(self) -> None:
        """Open or fold the thinking of the last reply."""
        self.transcript.action_toggle_thinking()

    # Where things are

    def _show_middle(self) -> None:
        is_empty = not self.transcript.entries
        self._middle.display = is_empty
        self.transcript.display = not is_empty
        if is_empty:
            self._welcome.show(self.app.status, self._frame)

    def on_resize(self, event: events.Resize) -> None:
        self._place(event.size.width, event.size.height)
        self.call_later(self.desk.show)

    def _place(self, width: int, height: int) -> None:
        has_panel = self._panel_wanted and width >= WIDE
        self._panel.display = has_panel
        self._status_line.display = not has_panel and height > 6
        self._footer.display = height > 8
        self.set_class(height < 12, "-low")

    def action_panel(self) -> None:
        """Show or hide the side panel."""
        if self.size.width < WIDE:
            self.notify(
                _("The panel needs {WIDE} columns; the engine screen (F2) shows it all.").format(
                    WIDE=WIDE
                )
            )
            return
        self._panel_wanted = not self._panel_wanted
        self._place(self.size.width, self.size.height)

    @on(Transcript.Behind)
    def _tell_behind(self, event: Transcript.Behind) -> None:
        self._behind.display = event.is_behind

    @on(events.Click, "#behind")
    def action_end(self) -> None:
        """To the end, and stay there."""
        self.transcript.scroll_end(animate=False)

    def action_top(self) -> None:
        """To the beginning."""
        self.transcript.scroll_home(animate=False)

    def action_page(self, direction: int) -> None:
        """Scroll the transcript by a page."""
        rows = max(1, self.transcript.size.height - 2)
        self.transcript.scroll_relative(y=direction * rows, animate=False)

    def action_row(self, direction: int) -> None:
        """Scroll the transcript by a row."""
        self.transcript.scroll_relative(y=direction, animate=False)
