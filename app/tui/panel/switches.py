"""The optimisation switches, each with what became of it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from app.core import figures
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.panel.rows import Rows, hanging, labelled
from app.tui.panel.words import can_switch, switch_hint, switch_sign
from app.tui.plain import one_line
from engine_bridge.contract import Optimisation, Verdict


def proof(optimisation: Optimisation) -> list[tuple[str, str]]:
    """The chain of proof in words: (link, what is known of it)."""
    effect = figures.effect(optimisation.effect)
    how = optimisation.effect.how if optimisation.effect else ""
    chain = [
        ("requested", "on" if optimisation.requested else "off"),
        ("resolved", optimisation.resolved or "not yet"),
        ("observed", optimisation.observed or "not yet"),
        ("measured", " ".join(filter(None, (effect, f"({how})" if how else ""))) or "not yet"),
        ("verdict", str(optimisation.verdict)),
    ]
    chain += [(key.replace("_", " "), str(value)) for key, value in optimisation.evidence.items()]
    return [(key, one_line(value)) for key, value in chain]


class SwitchRow(Rows, can_focus=True):
    """One switch. Space, Enter or a click switch it; `i` shows its proof."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "switch", "Switch"),
        Binding("i", "details", "Details"),
        Binding("up", "app.focus_previous", "Previous", show=False),
        Binding("down", "app.focus_next", "Next", show=False),
    ]

    class Switched(Message):
        """The user wants this optimisation on or off."""

        def __init__(self, optimisation: Optimisation, on: bool) -> None:
            super().__init__()
            self.optimisation = optimisation
            self.on = on

    def __init__(self, optimisation: Optimisation, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.optimisation = optimisation
        self._glyphs = glyphs
        self._wanted: bool | None = None
        self._is_open = False

    @property
    def is_supported(self) -> bool:
        return self.optimisation.verdict is not Verdict.NOT_SUPPORTED

    def show(self, optimisation: Optimisation, wanted: bool | None) -> None:
        """Show this state; `wanted` is a switch that waits for the running reply to end."""
        if (optimisation, wanted) != (self.optimisation, self._wanted):
            self.optimisation, self._wanted = optimisation, wanted
            self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        optimisation = self.optimisation
        sign, colour = switch_sign(optimisation, self._glyphs)
        title = one_line(optimisation.title)
        rows = [
            Content.assemble(
                (f"{sign} ", colour), (title, "" if self.is_supported else "$muted 70%")
            )
        ]
        for each in self._state(width):
            rows += hanging(each, width)
        if self._is_open:
            rows += hanging(Content.assemble((one_line(optimisation.summary), "$muted")), width)
            for link, words in proof(optimisation):
                rows += labelled(link, words, width, column=10, indent=2)
        if self.has_focus or self.mouse_hover:
            more = "i hides the proof." if self._is_open else "i shows the proof."
            hint = f"{switch_hint(optimisation)} {more}" if can_switch(optimisation) else more
            rows += hanging(Content.assemble((hint, "italic $muted")), width)
        return rows

    def _state(self, width: int) -> list[Content]:
        optimisation = self.optimisation
        if self._wanted is not None:
            word = "on" if self._wanted else "off"
            return [Content.assemble((f"switches {word} after this reply", "$accent"))]
        rows = []
        if self.is_supported:
            _, colour = switch_sign(optimisation, self._glyphs)
            verdict = Content.assemble((str(optimisation.verdict), colour))
            effect = figures.effect(optimisation.effect)
            gained = Content.assemble((effect if optimisation.requested else "", "$muted"))
            together = Content.assemble(verdict, (f" {self._glyphs.dot} ", "$muted"), gained)
            if not gained:
                rows.append(verdict)
            elif together.cell_length <= width - 2:
                rows.append(together)
            else:
                rows += [verdict, gained]
        if note := one_line(optimisation.note):
            rows.append(Content.assemble((note, "$muted")))
        elif not self.is_supported:
            rows.append(Content.assemble(("not supported here", "$muted 70%")))
        return rows

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_switch()

    def on_focus(self) -> None:
        self.refresh(layout=True)

    def on_blur(self) -> None:
        self.refresh(layout=True)

    def watch_mouse_hover(self, _value: bool) -> None:
        self.refresh(layout=True)

    def action_switch(self) -> None:
        """Switch it."""
        if can_switch(self.optimisation):
            now = self.optimisation.requested if self._wanted is None else self._wanted
            self.post_message(self.Switched(self.optimisation, not now))

    def action_details(self) -> None:
        """Show or hide the proof."""
        self._is_open = not self._is_open
        self.refresh(layout=True)


class Switches(Vertical):
    """All switches the engine has."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._optimisations: tuple[Optimisation, ...] = ()

    def compose(self) -> ComposeResult:
        for optimisation in self._optimisations:
            yield SwitchRow(optimisation, self._glyphs)

    async def show(self, optimisations: Sequence[Optimisation], wanted: Mapping[str, bool]) -> None:
        """Show these; `wanted` holds the switches that wait, by id."""
        ids = [optimisation.id for optimisation in optimisations]
        if ids != [optimisation.id for optimisation in self._optimisations]:
            self._optimisations = tuple(optimisations)
            await self.recompose()
        self._optimisations = tuple(optimisations)
        for row, optimisation in zip(self.query(SwitchRow), optimisations, strict=False):
            row.show(optimisation, wanted.get(optimisation.id))
