"""The settings screen, drawn from the schema: what is changed is saved at once."""

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from app.core.i18n import _
from app.core.settings import file as settings_file
from app.core.settings.fields import Control, Item, change, items
from app.tui.plain import one_line
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.tui.app import LingChat

COLUMN = 30


class SettingsScreen(Screen[None]):
    """Every setting in a list, and below it what the one under the cursor means."""

    CSS_PATH = "settings.tcss"
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f8", "back", _("Back"), id="settings.back"),
        Binding("right,space", "step(1)", _("Change"), key_display="Enter", id="settings.next"),
        Binding("left", "step(-1)", _("Previous"), id="settings.previous"),
        Binding("delete,backspace", "reset", _("Default"), id="settings.reset"),
    ]

    app: "LingChat"

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[str, Item] = {}
        self._list = OptionList(id="list", markup=False)
        self._about = Static(id="about")
        self._input = Input(id="value", compact=True)
        self._problem = Static(id="problem")

    def compose(self) -> ComposeResult:
        path = Content.assemble((str(settings_file.path()), "$muted"))
        yield Static(Content.assemble((_("Settings"), "bold $primary"), "  ", path), id="title")
        yield self._list
        with Vertical(id="detail"):
            yield self._about
            yield self._input
            yield self._problem
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._input.display = self._input.cursor_blink = False
        chosen_from = {"appearance.theme": tuple(self.app.themes.names)}
        section = ""
        for each in (_choosing(item, chosen_from.get(item.key, ())) for item in items()):
            if each.section != section:
                gap = "\n" if section else ""
                section = each.section
                title = Content.assemble((gap + section, "bold $primary"))
                self._list.add_option(Option(title, id=f"section-{section}", disabled=True))
            self._items[each.key] = each
            self._list.add_option(Option(self._row(each), id=each.key))
        self._list.action_first()

    def _row(self, item: Item) -> Content:
        value = self.app.settings.get(item.key)
        text = one_line(item.shown(value))
        if item.control in (Control.CHOICE, Control.SWITCH):
            text = f"‹ {text} ›" if not self.app.has_class("-ascii") else f"< {text} >"
        gap = " " * max(1, COLUMN - cell_len(item.title))
        style = "$accent" if value != item.default else ""
        return Content.assemble("  ", item.title, gap, (text, style))

    @property
    def _item(self) -> Item | None:
        at = self._list.highlighted
        return None if at is None else self._items.get(self._list.get_option_at_index(at).id or "")

    @on(OptionList.OptionHighlighted)
    def _show(self) -> None:
        """Say what the setting under the cursor is."""
        if (item := self._item) is None:
            return
        facts = [
            _("Default: {value}").format(value=item.shown(item.default)),
            item.applies,
            f"[{item.key.replace('.', '] ')}",
        ]
        self._about.update(
            Content("\n").join(
                [Content(item.description), Content.assemble((" · ".join(facts), "$muted"))]
            )
        )
        self._say("" if item.control in (Control.CHOICE, Control.SWITCH) else item.rule)

    def _say(self, text: str, is_bad: bool = False) -> None:
        self._problem.update(Content.assemble((text, "$error" if is_bad else "$muted")))

    @on(OptionList.OptionSelected)
    def _begin(self) -> None:
        """Enter: the next choice, or a box to type in."""
        item = self._item
        if item is None:
            return
        if item.control in (Control.CHOICE, Control.SWITCH):
            self.action_step(1)
            return
        value = self.app.settings.get(item.key)
        self._input.value = "" if value is None else str(value)
        self._input.display = True
        self._input.focus()

    @on(Input.Submitted)
    def _finish(self, event: Input.Submitted) -> None:
        if (item := self._item) is not None and self._change(item, event.value):
            self._end()

    def _end(self) -> None:
        self._input.display = False
        self._list.focus()
        self._show()

    def action_step(self, by: int) -> None:
        """The next or the previous choice."""
        item = self._item
        if item is None or self._input.display:
            return
        value = self.app.settings.get(item.key)
        if item.control is Control.SWITCH:
            self._change(item, not value)
        elif item.control is Control.CHOICE:
            at = item.choices.index(value) if value in item.choices else -by
            self._change(item, item.choices[(at + by) % len(item.choices)])

    def action_reset(self) -> None:
        """Back to the default."""
        if (item := self._item) is not None and not self._input.display:
            self._change(item, item.default)

    def action_back(self) -> None:
        """Leave the box, else the screen."""
        if self._input.display:
            self._end()
        else:
            self.app.pop_screen()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("step", "reset") or not self._input.display

    def _change(self, item: Item, value: object) -> bool:
        """Set and save it, and let it apply; False with a sentence where that cannot be."""
        try:
            change(self.app.settings, item.key, value)
        except BridgeError as problem:
            self._say(one_line(str(problem)), is_bad=True)
            return False
        self._list.replace_option_prompt(item.key, self._row(item))
        self._show()
        self.app.setting_changed(item.key)
        return True


def _choosing(item: Item, choices: tuple[str, ...]) -> Item:
    """The setting as a choice among what is there, where that is known."""
    return dataclasses.replace(item, control=Control.CHOICE, choices=choices) if choices else item
