"""A prompt that is longer than the context: the figures, and what would make it fit."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from app.core.context.fitting import Choice, TakePart, sentences, words
from app.core.context.parts import range_of
from app.core.i18n import _
from app.tui.glyphs import Glyphs
from app.tui.plain import one_line
from engine_bridge.errors import UsageError

if TYPE_CHECKING:
    from app.core.context.budget import Budget

NUMBERS = 12
"""Columns of a figure."""


class BudgetScreen(ModalScreen["Choice | None"]):
    """Asks what to leave out, or for more room; None where the user goes back."""

    CSS_PATH = "budget.tcss"
    AUTO_FOCUS = "#choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", _("Back"), id="budget.cancel"),
        Binding("e", "edit", _("Other pages"), id="budget.edit"),
    ]

    def __init__(self, budget: "Budget", glyphs: Glyphs) -> None:
        super().__init__()
        self._budget = budget
        self._glyphs = glyphs
        self._choices = list(budget.choices)

    def compose(self) -> ComposeResult:
        reason, _cure = sentences(self._budget)
        with Vertical(id="page"):
            yield Label(_("This does not fit"), classes="title")
            yield Static(Content(reason), id="reason")
            yield Static(self._figures(), id="figures")
            if self._choices:
                yield OptionList(*map(self._option, self._choices), id="choices", compact=True)
            else:
                yield Static(_("Ask something shorter."), id="choices")
            yield Input(id="part", compact=True, placeholder="1-12")
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one("#part").display = False

    def _figures(self) -> Content:
        budget = self._budget
        rest = budget.prompt_tokens - budget.turns_tokens - budget.system_tokens
        rest -= sum(share.tokens for share in budget.documents)
        rows = [(one_line(share.title), share.tokens) for share in budget.documents]
        rows += [
            (_("system text"), budget.system_tokens),
            (_("questions and answers"), budget.turns_tokens),
            (_("chat template"), max(0, rest)),
            (_("kept free for the answer"), budget.reserve_tokens),
        ]
        lines = [_figure(title, tokens) for title, tokens in rows if tokens]
        return Content("\n").join([*lines, _figure(_("too many"), budget.over_tokens, "$error")])

    def _option(self, choice: Choice) -> Option:
        text = words(choice)
        text = one_line(text[:1].upper() + text[1:])
        less = "" if choice.suffices else f"  {_('(not enough alone)')}"
        return Option(Content.assemble(text, (less, "auto 60%")))

    @property
    def _chosen(self) -> Choice | None:
        if not self._choices:
            return None
        at = self.query_one(OptionList).highlighted
        return None if at is None else self._choices[at]

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index])

    def action_edit(self) -> None:
        """Take other pages or lines than those proposed."""
        choice = self._chosen
        if not isinstance(choice, TakePart):
            self.notify(_("Choose one that takes a part of a document."))
            return
        part = self.query_one("#part", Input)
        part.display = True
        part.value = f"{choice.first}-{choice.last}"
        part.focus()

    @on(Input.Submitted)
    def _take_part(self, event: Input.Submitted) -> None:
        choice = self._chosen
        assert isinstance(choice, TakePart)
        try:
            first, last = range_of(event.value, choice.of)
        except UsageError as error:
            self.notify(str(error), severity="warning", markup=False)
        else:
            self.dismiss(replace(choice, first=first, last=last))

    def action_cancel(self) -> None:
        """Close the input, else change nothing."""
        part = self.query_one("#part")
        if part.display:
            part.display = False
            self.query_one("#choices").focus()
        else:
            self.dismiss(None)


def _figure(title: str, tokens: int, style: str = "") -> Content:
    return Content.assemble((f"{tokens:>{NUMBERS},}", style), (f"  {title}", style or "$muted"))
