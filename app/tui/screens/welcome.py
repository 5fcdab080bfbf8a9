"""What stands where the conversation will be: what to do, and how far the engine is."""

from textual.content import Content

from app.core.i18n import _
from app.tui import keymap
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.panel.gauges import meter
from app.tui.panel.rows import Rows
from app.tui.panel.words import cure, is_down, state_sign, state_text
from app.tui.plain import one_line, said
from engine_bridge.contract import EngineState, EngineStatus

BAR = 28


class Welcome(Rows):
    """Three rows in the middle of the empty screen."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._status = EngineStatus()
        self._frame = 0

    def show(self, status: EngineStatus, frame: int) -> None:
        """Show this status."""
        self._status, self._frame = status, frame
        self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        status = self._status
        sign = state_sign(status, self._glyphs, self._frame)
        rows = [Content.assemble(("ling-chat", "bold $primary")), Content("")]
        if status.state.is_usable:
            rows.append(Content(_("Type a question below and press Enter.")))
        elif status.state is EngineState.FAILED:
            rows.append(
                Content(_("The engine did not start. F5 tries again; what you type is kept."))
            )
        elif is_down(status):
            rows.append(Content(_("The engine is stopped. F5 starts it; what you type is kept.")))
        else:
            rows.append(Content(_("Just type. It is sent as soon as the engine is ready.")))
        if status.state is not EngineState.FAILED:
            helps = _("@ or {attach} adds a document, {engine} shows the engine").format(
                attach=keymap.key("documents.attach"), engine=keymap.key("app.engine")
            )
            rows.append(Content.assemble((helps, "$muted")))
        rows += [Content(""), Content.assemble(sign, " ", state_text(status, self._glyphs))]
        if status.state is EngineState.STARTING:
            bar = meter(status.fraction or 0.0, BAR, self._glyphs, "$accent")
            rows.append(bar if status.fraction is not None else Content(""))
        if status.reason:
            rows.append(Content.assemble((said(status.reason), "$error")))
        if status.cure:
            rows.append(Content(cure(status)))
        if status.model_name:
            rows.append(Content.assemble((one_line(status.model_name), "$muted")))
        return [line for row in rows for line in (row.wrap(max(4, width)) if row else [row])]
