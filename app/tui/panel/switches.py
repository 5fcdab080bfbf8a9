"""The optimisation switches, each with what became of it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from app.core import figures
from app.core.i18n import _, shown
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.panel.rows import Rows, hanging, labelled
from app.tui.panel.words import can_switch, switch_hint, switch_sign
from app.tui.plain import one_line, said
from engine_bridge.contract import Optimisation, Verdict
from engine_bridge.models.progress import size_text


def proof(optimisation: Optimisation) -> list[tuple[str, str]]:
    """The chain of proof in words: (link, what is known of it)."""
    effect = figures.effect(optimisation.effect)
    how = optimisation.effect.how if optimisation.effect else ""
    missing = _("not yet") if optimisation.requested else ""
    chain = [
        (_("requested"), _("on") if optimisation.requested else _("off")),
        (_("resolved"), shown(optimisation.resolved or missing)),
        (_("observed"), shown(optimisation.observed or missing)),
        (_("measured"), " ".join(filter(None, (effect, f"({how})" if how else ""))) or missing),
        (_("verdict"), shown(str(optimisation.verdict))),
    ]
    for key, value in optimisation.evidence.items():
        label = key.removesuffix("_bytes").replace("_", " ").replace(".", " ")
        chain.append((label, evidence_text(key, value)))
    return [(key, one_line(value)) for key, value in chain if value]


def evidence_text(key: str, value: Any) -> str:
    """A piece of evidence as people read it; `key` tells its unit."""
    match value:
        case None | bool():
            return {None: "", True: "yes", False: "no"}[value]
        case int() | float():
            count = f"{value:,.{0 if value == int(value) else 2}f}"
            return size_text(value) if key.endswith("_bytes") else count
        case {"in": read, "out": made}:  # of a trial of the weights' forms, in CPU seconds
            return _("{read:.1f} s for 2,048 tokens in, {made:.1f} s for 128 out").format(
                read=read, made=made
            )
        case dict():
            inner = key if key.endswith("_bytes") else ""
            joint = " " if inner else ": "
            parts = [f"{k}{joint}{evidence_text(inner or k, v)}" for k, v in value.items()]
            return ("; " if key == "trial" else ", ").join(parts)
        case list() | tuple():
            return ", ".join(evidence_text("", each) for each in value)
        case _:
            return str(value)


class SwitchRow(Rows, can_focus=True):
    """One switch. Space, Enter or a click switch it; `i` shows its proof."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "switch", _("Switch"), id="switch.switch"),
        Binding("i", "details", _("Details"), id="switch.details"),
        Binding("up", "app.focus_previous", _("Previous"), show=False, id="switch.previous"),
        Binding("down", "app.focus_next", _("Next"), show=False, id="switch.next"),
    ]

    class Switched(Message):
        """The user wants this optimisation on or off."""

        def __init__(self, optimisation: Optimisation, on: bool) -> None:
            super().__init__()
            self.optimisation = optimisation
            self.on = on

    def __init__(
        self,
        optimisation: Optimisation,
        glyphs: Glyphs = UNICODE,
        number: int | None = None,
        is_open: bool = False,
    ) -> None:
        """`number` stands before the title: the key that switches it."""
        super().__init__()
        self._number = number
        self.optimisation = optimisation
        self._glyphs = glyphs
        self._wanted: bool | None = None
        self._when = ""
        self._is_open = is_open

    @property
    def is_supported(self) -> bool:
        return self.optimisation.verdict is not Verdict.NOT_SUPPORTED

    def show(self, optimisation: Optimisation, wanted: bool | None, when: str) -> None:
        """Show this state; `wanted` is a switch that waits, `when` says until when."""
        if (optimisation, wanted, when) != (self.optimisation, self._wanted, self._when):
            self.optimisation, self._wanted, self._when = optimisation, wanted, when
            self.refresh(layout=True)

    def rows(self, width: int) -> list[Content]:
        optimisation = self.optimisation
        sign, colour = switch_sign(optimisation, self._glyphs)
        key = f"{self._number} " if self._number and can_switch(optimisation) else ""
        title = key + said(optimisation.title)
        rows = [
            Content.assemble(
                (f"{sign} ", colour), (title, "" if self.is_supported else "$muted 70%")
            )
        ]
        for each in self._state(width):
            rows += hanging(each, width)
        if self._is_open:
            rows += hanging(Content.assemble((said(optimisation.summary), "$muted")), width)
            for link, words in proof(optimisation):
                rows += labelled(link, words, width, column=10, indent=2)
        if self.has_focus or self.mouse_hover:
            more = _("i hides the proof.") if self._is_open else _("i shows the proof.")
            hint = f"{switch_hint(optimisation)} {more}" if can_switch(optimisation) else more
            rows += hanging(Content.assemble((hint, "italic $muted")), width)
        return rows

    def _state(self, width: int) -> list[Content]:
        optimisation = self.optimisation
        if self._wanted is not None:
            word = _("on") if self._wanted else _("off")
            text = _("switches {word} {when}").format(word=word, when=self._when)
            return [Content.assemble((text, "$accent"))]
        rows = []
        if self.is_supported:
            _sign, colour = switch_sign(optimisation, self._glyphs)
            verdict = Content.assemble((shown(str(optimisation.verdict)), colour))
            effect = figures.effect(optimisation.effect)
            gained = Content.assemble((effect if optimisation.requested else "", "$muted"))
            together = Content.assemble(verdict, (f" {self._glyphs.dot} ", "$muted"), gained)
            if not gained:
                rows.append(verdict)
            elif together.cell_length <= width - 2:
                rows.append(together)
            else:
                rows += [verdict, gained]
        if note := said(optimisation.note):
            rows.append(Content.assemble((note, "$muted")))
        elif not self.is_supported:
            rows.append(Content.assemble((_("not supported here"), "$muted 70%")))
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
    """All switches the engine has; with `keys` numbered and with their proofs."""

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None, keys: bool = False) -> None:
        super().__init__(id=id)
        self._keys = keys
        self._glyphs = glyphs
        self._optimisations: tuple[Optimisation, ...] = ()

    def compose(self) -> ComposeResult:
        for number, optimisation in enumerate(self._optimisations, 1):
            yield SwitchRow(optimisation, self._glyphs, number if self._keys else None, self._keys)

    async def show(
        self, optimisations: Sequence[Optimisation], wanted: Mapping[str, bool], when: str
    ) -> None:
        """Show these; `wanted` holds the switches that wait, by id, and `when` says until when."""
        ids = [optimisation.id for optimisation in optimisations]
        if ids != [optimisation.id for optimisation in self._optimisations]:
            self._optimisations = tuple(optimisations)
            await self.recompose()
        self._optimisations = tuple(optimisations)
        for row, optimisation in zip(self.query(SwitchRow), optimisations, strict=False):
            row.show(optimisation, wanted.get(optimisation.id), when)
