"""The side panel of wide screens, and the line that stands for it on narrow ones."""

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Label, Static

from app.core import figures
from app.core.i18n import _
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.panel.cards import EngineCard, SpeedCard
from app.tui.panel.gauges import meter
from app.tui.panel.live import Live
from app.tui.panel.switches import Switches
from app.tui.panel.words import progress_text, state_sign, state_text
from app.tui.plain import one_line, said
from engine_bridge.contract import EngineState, EngineStatus, Optimisation


class SidePanel(VerticalScroll, can_focus=False):
    """Speed, context, engine and its switches, each with its figures."""

    def __init__(self, live: Live, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._speed = SpeedCard(live, glyphs, id="speed")
        self._engine = EngineCard(glyphs, id="engine")
        self._title = Label(_("Optimisations"), classes="title")
        self._switches = Switches(glyphs, id="switches")

    def compose(self) -> ComposeResult:
        yield Label(_("Engine"), classes="title")
        yield self._engine
        yield Label(_("Speed"), classes="title")
        yield self._speed
        yield self._title
        yield self._switches

    async def show(
        self,
        status: EngineStatus,
        switches: Sequence[Optimisation],
        wanted: Mapping[str, bool],
        when: str,
        frame: int,
    ) -> None:
        """Show the engine's status, its switches, and those of them that wait and until when."""
        self._speed.context_tokens = status.context_tokens
        self._engine.show(status, frame)
        self._title.display = bool(switches)
        await self._switches.show(switches, wanted, when)
        self._speed.refresh_if_changed()

    def tick(self, status: EngineStatus, frame: int) -> None:
        """Time went by: figures and turning signs."""
        self._engine.show(status, frame)
        self._speed.refresh_if_changed()


class StatusLine(Static):
    """Everything that matters on one row; what does not fit is left out, the least first."""

    def __init__(self, live: Live, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._live = live
        self._glyphs = glyphs
        self._status = EngineStatus()
        self._frame = 0

    def show(self, status: EngineStatus, frame: int) -> None:
        """Show this status."""
        self._status, self._frame = status, frame
        self.refresh()

    def render(self) -> Content:
        width = self.size.width
        first, *others = self._pieces()
        row = first.truncate(width, ellipsis=True)
        for piece in others:
            longer = Content.assemble(row, "  ", piece)
            if longer.cell_length > width:
                break
            row = longer
        return row

    def _pieces(self) -> list[Content]:
        """The first piece is always shown, cut where it must be."""
        status, live, glyphs = self._status, self._live, self._glyphs
        state = Content.assemble(state_sign(status, glyphs, self._frame), " ")
        if status.state is EngineState.STARTING:
            return self._start(state)
        if status.state is EngineState.FAILED:
            reason = Content.assemble("  ", (said(status.reason), "$error"))
            return [Content.assemble(state, (state_text(status, glyphs), "$error"), reason)]
        if not status.state.is_usable:
            return [Content.assemble(state, state_text(status, glyphs))]
        share = live.prefill_share
        if share is not None:
            eta = live.prefill_eta_s
            left = "" if eta is None else " " + _("{time} left").format(time=figures.clock(eta))
            bar = meter(share, 16, glyphs, "$accent")
            return [Content.assemble(state, _("prefill"), " ", bar, f" {share:.0%}{left}")]
        pieces = [Content.assemble(state, state_text(status, glyphs))]
        if (speed := live.tokens_per_s) is not None:
            number = Content.assemble((figures.rate(speed), "bold $primary"), " tok/s")
            pieces = [Content.assemble(state, number), *self._details()]
        if status.model_name:
            pieces.append(Content.assemble((one_line(status.model_name), "$muted")))
        pieces.append(Content.assemble((_("F2: engine and switches"), "$muted")))
        return pieces

    def _start(self, state: Content) -> list[Content]:
        """How far it is comes first: what is under way may be long."""
        status = self._status
        phase = said(status.phase) or _("starting")
        first = Content.assemble(state, "  ".join(filter(None, (progress_text(status), phase))))
        if status.fraction is None:
            return [first]
        return [first, meter(status.fraction, 16, self._glyphs, "$accent")]

    def _details(self) -> list[Content]:
        live, timings = self._live, self._live.timings
        details: list[str] = []
        if timings.ttft_s is not None:
            details.append(f"TTFT {figures.seconds(timings.ttft_s)}")
        if timings.accept_length is not None:
            details.append(_("accept {length:.2f}").format(length=timings.accept_length))
        if live.context_used is not None and self._status.context_tokens:
            total = figures.short_count(self._status.context_tokens)
            details.append(
                _("context {context_used:,}/{total}").format(
                    context_used=live.context_used, total=total
                )
            )
        return [Content.assemble((each, "$muted")) for each in details]
