"""How this session is answered: system prompt, presets, sampling, thinking, stop sequences."""

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, Label, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from app.core.chat.presets import Preset, every, save
from app.core.chat.sampling import recommended
from app.core.i18n import _
from app.tui.area import Area
from app.tui.plain import one_line
from engine_bridge.chat.events import Parameters
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.tui.app import LingChat

NARROW = 100
NUMBERS: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0, 2),
    "top_p": (float, 0, 1),
    "top_k": (int, 0, 1_000_000),
    "min_p": (float, 0, 1),
    "presence_penalty": (float, -2, 2),
    "frequency_penalty": (float, -2, 2),
    "max_tokens": (int, 1, 10_000_000),
    "seed": (int, 0, 2**32 - 1),
}
"""Each number with its least and greatest value."""
THINKING = {"": None, "on": True, "off": False}


class ParametersScreen(Screen[None]):
    """What is asked of the engine with each message of this session. Empty leaves it open."""

    CSS_PATH = "parameters.tcss"
    AUTO_FOCUS = "#temperature"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f10", "back", _("Back"), priority=True, id="parameters.back"),
        Binding("ctrl+s", "save", _("Save as preset"), priority=True, id="parameters.save"),
    ]

    app: "LingChat"

    def __init__(self) -> None:
        super().__init__()
        self._presets: dict[str, Preset] = {}
        self._best = Parameters()
        names = (*NUMBERS, "stop", "thinking")
        self._inputs = {name: Input(id=name, compact=True) for name in names}
        self._list = OptionList(id="presets", markup=False, compact=True)
        self._system = Area(id="system", soft_wrap=True, tab_behavior="focus")
        self._problem = Static(id="problem")
        self._asked = Input(id="asked", compact=True, placeholder=_("Title of the preset"))

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with Horizontal(id="columns"):
            with VerticalScroll(id="form", can_focus=False):
                yield Label(_("Sampling"), classes="head")
                for name, box in self._inputs.items():
                    with Horizontal(classes="row"):
                        yield Label(name.replace("_", " "))
                        yield box
                yield Label(_("Presets"), classes="head")
                yield self._list
            with Vertical(id="right"):
                yield Label(_("System prompt"), classes="head")
                yield self._system
        yield self._problem
        yield self._asked
        yield Footer(show_command_palette=False, compact=True)

    async def on_mount(self) -> None:
        self._fill()
        status = self.app.status
        self._best = await asyncio.to_thread(recommended, status.model_name, status.model_path)
        await self._show_presets()
        self._fill()

    def on_resize(self) -> None:
        self.set_class(self.size.width < NARROW, "-narrow")

    def _fill(self) -> None:
        """Show the session's values, and in the empty boxes what applies instead."""
        talk = self.app.conversation
        for name, box in self._inputs.items():
            with self.prevent(Input.Changed):
                box.value = _shown(name, getattr(talk.parameters, name))
            box.placeholder = self._otherwise(name)
        if self._system.text != talk.system:
            self._system.load_text(talk.system)
        about = one_line(self.app.status.model_name) or _("the model decides what is left open")
        title = _("This session")
        self.query_one("#title", Static).update(
            Content.assemble((title, "bold $primary"), "  ", (about, "$foreground 60%"))
        )

    def _otherwise(self, name: str) -> str:
        if name == "stop":
            return _('none; as JSON: ["\\n\\n", "END"]')
        if name == "thinking":
            return _("as the model has it; on, off")
        best = getattr(self._best, name)
        if best is not None:
            return _("{value}, the model's own").format(value=best)
        return _("no limit") if name == "max_tokens" else _("as the engine has it")

    async def _show_presets(self) -> None:
        found, problems = await asyncio.to_thread(every)
        self._presets = {preset.name: preset for preset in found}
        at = self._list.highlighted or 0
        self._list.clear_options()
        mark = self.app.glyphs.on
        for preset in found:
            sign = mark if preset.name == self.app.conversation.preset else " "
            title = Content.assemble((f"{sign} ", "$accent"), one_line(preset.title))
            about = (f"  {one_line(preset.description)}", "auto 60%")
            self._list.add_option(Option(Content.assemble(title, about), id=preset.name))
        self._list.highlighted = min(at, len(found) - 1) if found else None
        for problem in problems:
            self.notify(problem, severity="warning", markup=False)

    @on(OptionList.OptionSelected)
    async def _apply(self, event: OptionList.OptionSelected) -> None:
        preset = self._presets.get(event.option_id or "")
        if preset is not None:
            preset.apply(self.app.conversation)
            self._fill()
            await self._show_presets()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        name = event.input.id or ""
        if name not in self._inputs:
            return
        try:
            value = _value(name, event.value)
        except ValueError as error:
            self._problem.update(str(error))
            return
        self._problem.update("")
        talk = self.app.conversation
        talk.parameters = replace(talk.parameters, **{name: value})
        talk.changed()

    @on(TextArea.Changed, "#system")
    def _system_changed(self) -> None:
        talk = self.app.conversation
        if talk.system != self._system.text:
            talk.system = self._system.text
            talk.changed()

    def action_back(self) -> None:
        """Back to the conversation; what was changed applies from the next message on."""
        if self._asked.display:
            self._asked.display = False
            self._list.focus()
        else:
            self.app.pop_screen()

    def action_save(self) -> None:
        """Keep system prompt and sampling as a preset."""
        self._asked.display = True
        self._asked.focus()

    @on(Input.Submitted, "#asked")
    async def _save(self) -> None:
        try:
            await asyncio.to_thread(save, self.app.conversation, self._asked.value)
        except BridgeError as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        self._asked.display = False
        await self._show_presets()
        self._list.focus()


def _shown(name: str, value: Any) -> str:
    if value is None or value == ():
        return ""
    if name == "stop":
        return json.dumps(list(value), ensure_ascii=False)
    return {True: "on", False: "off"}[value] if name == "thinking" else str(value)


def _value(name: str, text: str) -> Any:
    """What was typed. Raises ValueError with a sentence for the user."""
    text = text.strip()
    if name == "thinking":
        if text not in THINKING:
            raise ValueError(_("Thinking is on, off, or empty."))
        return THINKING[text]
    if name == "stop":
        return _stops(text)
    if not text:
        return None
    kind, least, most = NUMBERS[name]
    rule = _("{name} is a number from {least} to {most}.").format(
        name=name.replace("_", " "), least=least, most=most
    )
    try:
        value = kind(text)
    except ValueError:
        raise ValueError(rule) from None
    if not least <= value <= most:
        raise ValueError(rule)
    return value


def _stops(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    if not text.startswith("["):
        return (text,)
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise ValueError(_('Stop sequences are one text, or a JSON list like ["END", "\\n\\n"].'))
    return tuple(found)
