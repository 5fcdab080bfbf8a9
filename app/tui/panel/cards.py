"""The parts of the side panel that only show: speed, context, engine."""

from rich.cells import cell_len
from textual.content import Content

from app.core import figures
from app.core.i18n import _
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.panel.gauges import meter, sparkline, spread, stacked
from app.tui.panel.live import Live
from app.tui.panel.rows import Rows, hanging
from app.tui.panel.words import cure, engine_facts, gpu_facts, state_sign, state_text
from app.tui.plain import one_line, said
from engine_bridge.contract import EngineState, EngineStatus

NOTHING = "–"


class SpeedCard(Rows):
    """Tokens a second, its curve, the step behind it, time to first token, the context."""

    def __init__(self, live: Live, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._live = live
        self._glyphs = glyphs
        self.context_tokens: int | None = None

    def rows(self, width: int) -> list[Content]:
        rows = [self._speed(width), self._curve(width), self._step(), self._first_token()]
        return [*rows, self._context_row(width), *self._context_parts(width)]

    def _speed(self, width: int) -> Content:
        speed = self._live.tokens_per_s
        number = NOTHING if speed is None else figures.rate(speed)
        left = Content.assemble((number, "bold $primary"), (" tok/s", "$muted"))
        tokens = self._live.timings.completion_tokens
        right = _("{n:,} tokens").format(n=tokens) if tokens is not None else ""
        return spread(left, Content.assemble((right, "$muted")), width)

    def _curve(self, width: int) -> Content:
        share = self._live.prefill_share
        if share is not None:
            eta = self._live.prefill_eta_s
            left = " " + _("{time} left").format(time=figures.clock(eta)) if eta is not None else ""
            words = f" {share:.0%}{left}"
            bar = meter(share, width - 8 - cell_len(words), self._glyphs, "$accent")
            return Content.assemble((_("prefill") + " ", "$muted"), bar, words)
        if not self._live.speeds:
            return Content.assemble((self._glyphs.spark[0] * width, "$border-blurred"))
        return sparkline(self._live.speeds, width, self._glyphs)

    def _step(self) -> Content:
        step, accept = self._live.step_ms, self._live.timings.accept_length
        rounds = self._live.timings.accept_histogram
        return Content.assemble(
            (_("step") + " ", "$muted"),
            NOTHING if step is None else f"{step:.{1 if step < 99.95 else 0}f} ms",
            (f" {self._glyphs.times} {_('accept')} ", "$muted"),
            NOTHING if accept is None else f"{accept:.2f} ",
            # Rounds that accepted 0, 1, 2 … drafts.
            sparkline(rounds, len(rounds), self._glyphs),
        )

    def _first_token(self) -> Content:
        timings = self._live.timings
        share = figures.cached_share(timings)
        return Content.assemble(
            ("TTFT ", "$muted"),
            NOTHING if timings.ttft_s is None else figures.seconds(timings.ttft_s),
            (
                _(" {dot} {share}% cached").format(dot=self._glyphs.dot, share=share)
                if share is not None
                else "",
                "$muted",
            ),
        )

    def _context_row(self, width: int) -> Content:
        used = self._live.context_used
        if not self.context_tokens:
            words = NOTHING if used is None else _("{n:,} tokens").format(n=used)
            return Content.assemble((_("context") + " ", "$muted"), words)
        words = f" {used or 0:,} / {figures.short_count(self.context_tokens)}"
        share = (used or 0) / self.context_tokens
        colour = "$error" if share > 0.9 else "$warning" if share > 0.75 else "$primary"
        parts = [(share, colour)]
        if (budget := self._live.budget) is not None and budget.documents:
            documents = self._documents / self.context_tokens
            reserve = budget.reserve_tokens / self.context_tokens
            parts = [(documents, "$accent"), (max(0.0, share - documents), colour)]
            parts.append((reserve, "$muted"))
        bar = stacked(parts, width - 8 - cell_len(words), self._glyphs)
        return Content.assemble((_("context") + " ", "$muted"), bar, words)

    @property
    def _documents(self) -> int:
        budget = self._live.budget
        return sum(share.tokens for share in budget.documents) if budget else 0

    def _context_parts(self, width: int) -> list[Content]:
        """What the context is used for, where documents take a part of it."""
        budget = self._live.budget
        if budget is None or not budget.documents:
            return []
        used = self._live.context_used or 0
        documents = figures.short_count(self._documents)
        turns = figures.short_count(max(0, used - self._documents))
        reserve = figures.short_count(budget.reserve_tokens)
        row = Content.assemble(
            (_("docs "), "$accent"),
            (documents, "$muted"),
            (_("  turns "), "$primary"),
            (turns, "$muted"),
            (_("  reserve {n}").format(n=reserve), "$muted"),
        )
        return [row.truncate(width, ellipsis=True)]


class EngineCard(Rows):
    """State, phase, model, memory; what went wrong and what helps."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._status = EngineStatus()
        self._frame = 0

    def show(self, status: EngineStatus, frame: int) -> None:
        """Show this status; `frame` counts on while something moves."""
        changed = status != self._status
        if not changed and (frame == self._frame or not status.state.is_changing):
            return
        height = len(self.rows(self.size.width)) if changed else 0
        self._status, self._frame = status, frame
        self.refresh(layout=changed and len(self.rows(self.size.width)) != height)

    def rows(self, width: int) -> list[Content]:
        status, glyphs = self._status, self._glyphs
        first = Content.assemble(
            state_sign(status, glyphs, self._frame), " ", state_text(status, glyphs)
        )
        facts = Content.assemble((engine_facts(status, glyphs), "$muted"))
        rows = [spread(first, facts, width)]
        if first.cell_length > width:
            head, *rest = first.wrap(width - 2)
            rows = [head, *(Content.assemble("  ", row) for row in rest)]
        if status.model_name:
            rows.append(Content.assemble((f"  {one_line(status.model_name)}", "$muted")))
        if status.state is EngineState.STARTING:
            for step in status.phases:
                if step.seconds is not None:
                    done = Content.assemble((f"  {said(step.title)}", "$muted"))
                    took = Content.assemble((figures.seconds(step.seconds), "$muted"))
                    rows.append(spread(done, took, width))
        if status.state is EngineState.STARTING and status.fraction is not None:
            bar = meter(status.fraction, width - 2, glyphs, "$accent")
            rows.append(Content.assemble("  ", bar))
        if status.reason:
            rows += hanging(Content.assemble((said(status.reason), "$error")), width)
        if status.cure:
            rows += hanging(Content(cure(status)), width)
        if gpu := gpu_facts(status, glyphs):
            rows.append(Content.assemble((f"  {gpu}", "$muted")))
        if status.load.advice:
            rows += hanging(Content.assemble((said(status.load.advice), "$warning")), width)
        return rows
