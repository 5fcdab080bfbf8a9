"""The engine screen: what it is, how its start went, what each optimisation proves, its log."""

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Log, Static

from app.core import figures
from app.core.i18n import _, shown
from app.tui.panel.cards import NOTHING
from app.tui.panel.gauges import meter
from app.tui.panel.rows import Made, hanging, labelled
from app.tui.panel.switches import Switches, SwitchRow
from app.tui.panel.words import (
    can_switch,
    cure,
    gpu_facts,
    is_ours,
    state_sign,
    state_text,
    steps,
)
from app.tui.plain import one_line, said
from app.tui.screens.log_tail import LogTail
from engine_bridge.contract import EngineState, EngineStatus
from engine_bridge.models.progress import size_text

if TYPE_CHECKING:
    from app.tui.app import LingChat

TICK_S = 0.5
LOG_LINES = 2_000
NARROW = 90


class Facts(VerticalScroll):
    """The details; they scroll while they or a switch in them have the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page_up", _("Scroll"), key_display="PgDn"),
    ]


class EngineScreen(Screen[None]):
    """Everything the engine says of itself."""

    CSS_PATH = "engine.tcss"
    AUTO_FOCUS = "#facts"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f2,q", "back", _("Back"), priority=True, id="engine.back"),
        Binding("r", "restart", _("Restart"), id="engine.restart"),
        Binding("s", "stop", _("Stop"), id="engine.stop"),
        Binding("enter,f5", "start", _("Start"), id="engine.start"),
        Binding("v", "verify", _("Verify"), id="engine.verify"),
        Binding("1", "switch(1)", _("Switch"), key_display="1-9"),
        *(Binding(str(n), f"switch({n})", _("Switch"), show=False) for n in range(2, 10)),
    ]

    app: "LingChat"

    def __init__(self) -> None:
        super().__init__()
        self._tail = LogTail()
        self._frame = 0

    def compose(self) -> ComposeResult:
        with Horizontal(id="columns"):
            with Facts(id="facts"):
                yield Static(_("Engine"), classes="title")
                yield Made(id="engine-facts", classes="part")
                yield Static(_("Start"), classes="title", id="start-title")
                yield Made(id="phases", classes="part")
                yield Static(_("Optimisations"), classes="title", id="proofs-title")
                yield Switches(self.app.glyphs, id="proofs", keys=True)
            yield Log(id="log", max_lines=LOG_LINES)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one("#log").border_title = _("Log")
        self.watch(self.app, "status", self._show)
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._tick)

    def on_resize(self) -> None:
        self.set_class(self.size.width < NARROW, "-narrow")

    async def _show(self, status: EngineStatus) -> None:
        phases = steps(status, time.time())
        self.query_one("#engine-facts", Made).show(lambda width: self._facts(status, width))
        self.query_one("#start-title").display = self.query_one("#phases").display = bool(phases)
        self.query_one("#phases", Made).show(lambda _width: _phase_rows(phases))
        app = self.app
        self.query_one("#proofs-title").display = bool(app.switches)
        await self.query_one(Switches).show(app.switches, app.wanted, app.wanted_when)
        self.refresh_bindings()

    async def _tick(self) -> None:
        status = self.app.status
        if status.state is EngineState.STARTING:
            self._frame += 1
            await self._show(status)
        if status.log_path:
            lines = await asyncio.to_thread(self._tail.read, status.log_path)
            if lines:
                self.query_one(Log).write_lines(lines)

    def _facts(self, status: EngineStatus, width: int) -> list[Content]:
        glyphs = self.app.glyphs
        state = Content.assemble(
            state_sign(status, glyphs, self._frame), " ", state_text(status, glyphs)
        )
        rows = [state]
        if status.state is EngineState.STARTING and status.fraction is not None:
            rows.append(meter(status.fraction, min(32, width), glyphs, "$accent"))
        if status.reason:
            rows += hanging(Content.assemble((said(status.reason), "$error")), width)
        if status.cure:
            rows += hanging(Content(cure(status)), width)
        for text in map(shown, filter(None, (status.caveat, status.load.advice))):
            rows += hanging(Content.assemble((one_line(text), "$warning")), width)
        for label, value in _known(status):
            rows += labelled(label, one_line(value), width)
        if drafts := figures.accepted_drafts(self.app.live.timings):
            rows += labelled(_("drafts kept"), drafts, width)
        if gpu := gpu_facts(status, glyphs):
            rows += labelled("GPU", gpu, width)
        return rows

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        is_usable = self.app.status.state.is_usable
        is_down = self.app.status.state in (EngineState.STOPPED, EngineState.FAILED)
        match action:
            case "verify":
                return is_usable
            case "restart":
                return is_usable and is_ours(self.app.spec)
            case "stop":
                return not is_down and is_ours(self.app.spec)
            case "start":
                return is_down
            case "switch":
                return any(map(can_switch, self.app.switches))
            case _:
                return True

    def action_back(self) -> None:
        """Back to the conversation."""
        self.app.pop_screen()

    async def action_restart(self) -> None:
        """Stop the engine and start it again."""
        self.run_worker(self.app.restart_engine(), group="engine-restart", exclusive=True)

    def action_stop(self) -> None:
        """Stop the engine."""
        self.app.action_stop_engine()

    def action_start(self) -> None:
        """Start the engine."""
        self.app.action_start_engine()

    def action_switch(self, number: int) -> None:
        """Switch the optimisation with this number."""
        rows = list(self.query(SwitchRow))
        if number <= len(rows):
            rows[number - 1].action_switch()

    @on(SwitchRow.Switched)
    def _switch(self, event: SwitchRow.Switched) -> None:
        self.app.switch(event.optimisation.id, event.on)

    def action_verify(self) -> None:
        """Prove every optimisation again."""
        self.run_worker(self.app.verify(), group="verify", exclusive=True)


def _known(status: EngineStatus) -> list[tuple[str, str]]:
    """What is known of the engine, each with its label."""
    memory, context = status.load.memory_bytes, status.context_tokens
    started = time.time() - status.started_at if status.started_at else 0.0
    facts = [
        (_("model"), status.model_name),
        (_("file"), status.model_path),
        (_("size"), size_text(status.model_bytes) if status.model_bytes else ""),
        (_("memory"), size_text(memory) if memory else ""),
        (_("context"), _("{n:,} tokens").format(n=context) if context else ""),
        (_("threads"), str(status.threads or "")),
        (_("process"), str(status.engine_pid or "")),
        (_("address"), status.base_url),
        (
            _("started"),
            _("{time} ago").format(time=figures.seconds(started)) if started > 0 else "",
        ),
        (_("start took"), figures.seconds(status.start_s) if status.start_s else ""),
        (_("on quit"), _("stays") if status.keep else _("goes with its last user")),
    ]
    return [(label, value) for label, value in facts if value]


def _phase_rows(phases: list[tuple[str, float | None]]) -> list[Content]:
    times = [NOTHING if took is None else figures.seconds(took) for _, took in phases]
    return [
        Content.assemble((f"{took:>10} ", "$accent"), title)
        for took, (title, _) in zip(times, phases, strict=True)
    ]
