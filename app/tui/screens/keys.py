"""What every key does, as it is bound now, each with the id by which the settings change it."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from app.core.i18n import _
from app.tui import keymap
from app.tui.keymap import Bound
from app.tui.panel.rows import Made, labelled

COLUMN = 24
TEXT = 48
WIDE = 106
"""Columns from which the ids have room."""
HIDDEN = frozenset({"keys"})
"""Sections of pages that say their keys themselves."""

SECTIONS = {
    "composer": _("Writing"),
    "chat": _("The conversation"),
    "transcript": _("The transcript, while it has the focus"),
    "documents": _("Documents"),
    "shelf": _("The shelf, while it has the focus"),
    "preview": _("A document's text"),
    "chip": _("A document above the box, while it has the focus"),
    "switch": _("A switch, while it has the focus"),
    "engine": _("Engine screen"),
    "app": _("App"),
    "sessions": _("Sessions"),
    "branches": _("Branches"),
    "parameters": _("This session"),
    "settings": _("Settings"),
    "bench": _("Benchmarks"),
    "attach": _("Attaching"),
    "folder": _("Attaching a folder"),
    "kept": _("Documents of earlier sessions"),
    "budget": _("Where the documents do not fit"),
    "text": _("A long text, while it has the focus"),
}
"""The first part of ids in the order of the page; others follow by their name."""
WHAT = {
    "composer.send": _("send"),
    "composer.newline": _("new line"),
    "composer.up": _("earlier messages, when on the first line"),
    "composer.down": _("later messages, when on the last line"),
    "composer.redo": _("redo"),
    "chat.stop": _("stop the reply; or take a waiting message back"),
    "chat.copy": _("copy the selection, else the last reply"),
    "chat.regenerate": _("ask again"),
    "chat.edit_last": _("edit the last message"),
    "chat.think_next": _("think about the next message: as the session says, yes, no"),
    "chat.parameters": _("this session: system prompt, presets, sampling"),
    "chat.branches": _("the branches of the conversation"),
    "chat.new_chat": _("new chat; documents stay"),
    "chat.thinking": _("open or fold the thinking"),
    "chat.panel": _("show or hide the panel"),
    "chat.page_up": _("scroll by a page"),
    "chat.page_down": _("scroll by a page"),
    "chat.row_up": _("scroll by a row"),
    "chat.row_down": _("scroll by a row"),
    "chat.top": _("to the beginning, to the end"),
    "chat.end": _("to the beginning, to the end"),
    "transcript.thinking": _("open or fold the thinking"),
    "transcript.down": _("scroll by a row"),
    "transcript.up": _("scroll by a row"),
    "transcript.top": _("to the beginning, to the end"),
    "transcript.end": _("to the beginning, to the end"),
    "transcript.block_up": _("to the block above, below"),
    "transcript.block_down": _("to the block above, below"),
    "transcript.copy_block": _("copy the block"),
    "transcript.copy_message": _("copy the message"),
    "transcript.quote": _("quote the block in the box"),
    "transcript.edit": _("put the question in other words"),
    "transcript.again": _("ask again"),
    "transcript.go_on": _("go on with a cut reply"),
    "transcript.before": _("the version before, after"),
    "transcript.after": _("the version before, after"),
    "documents.attach": _("attach a file, a folder or a web page"),
    "documents.shelf": _("the shelf; on a pasted text, read it"),
    "documents.edit": _("write in your own editor: the message, or the paste at the cursor"),
    "documents.source": _("open what the last reply cites, one after the other"),
    "shelf.drop": _("let go of the document"),
    "shelf.add": _("take one of an earlier session"),
    "shelf.warm": _("read again what a restart of the engine lost"),
    "shelf.up": _("move it, where the engine has not read it yet"),
    "shelf.down": _("move it, where the engine has not read it yet"),
    "preview.find": _("search as you type"),
    "preview.next": _("the next match, the one before"),
    "preview.previous": _("the next match, the one before"),
    "preview.go_to": _("go to a page, or a line where there are no pages"),
    "chip.open": _("read the document"),
    "chip.stop": _("stop reading it"),
    "chip.drop": _("remove the document"),
    "switch.switch": _("switch it on or off"),
    "switch.details": _("its proof"),
    "switch.previous": _("to the next, the previous part"),
    "switch.next": _("to the next, the previous part"),
    "engine.back": _("back"),
    "engine.restart": _("restart the engine"),
    "engine.stop": _("stop the engine"),
    "engine.start": _("start the engine"),
    "engine.verify": _("prove every optimisation again"),
    "app.help": _("this page"),
    "app.engine": _("engine: switches, phases, proofs, log"),
    "app.start_engine": _("start the engine"),
    "app.apply_remedy": _("do what helps a failed engine; start a session's own engine"),
    "app.settings": _("settings"),
    "app.commands": _("all commands: themes, keep the engine, verify …"),
    "app.quit": _("quit"),
    "app.interrupt": _("copy a selection, else stop the reply; twice: quit"),
}
"""What a binding does, where its name in the footer is too short to say it."""
FIXED = (
    ("composer", "Ctrl+U, Ctrl+K", _("delete to the line's start, end")),
    ("composer", "Ctrl+Z", _("undo")),
    ("chat", "Tab, Shift+Tab", _("to the next, the previous part")),
    ("chat", _("Mouse"), _("wheel scrolls, drag selects")),
    ("engine", "1-9", _("switch the optimisation with this number")),
)
"""What no binding of ours does, by section."""


class KeysScreen(ModalScreen[None]):
    """A page of keys over the present screen."""

    CSS_PATH = "keys.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter", "dismiss", _("Back"), priority=True, id="keys.back"),
    ]

    def __init__(self, engine_first: bool = False) -> None:
        """`engine_first` begins with the keys of the engine screen."""
        super().__init__()
        self._first = "engine" if engine_first else ""
        self._page = VerticalScroll(id="page")

    def compose(self) -> ComposeResult:
        yield self._page

    async def on_mount(self) -> None:
        self._page.focus()
        bindings = await asyncio.to_thread(keymap.every_binding)
        self.set_class(self.app.size.width >= WIDE, "-wide")
        for section, title in _sections(bindings.values(), self._first):
            keys = Made(classes="keys")
            keys.show(partial(_rows, section, bindings.values(), self.app.size.width >= WIDE))
            await self._page.mount(Static(title, classes="title"), keys)


def _sections(bindings: Iterable[Bound], first: str) -> list[tuple[str, str]]:
    """The sections that have bindings, in the order of the page, each with its title."""
    there = {each.section for each in bindings} - HIDDEN
    ordered = [each for each in SECTIONS if each in there]
    ordered += sorted(there - SECTIONS.keys())
    if first in ordered:
        ordered.remove(first)
        ordered.insert(0, first)
    return [(each, SECTIONS.get(each, each.capitalize())) for each in ordered]


def _rows(section: str, bindings: Iterable[Bound], with_ids: bool, width: int) -> list[Content]:
    """What the section's keys do, those that do the same in one row."""
    same: dict[str, list[Bound]] = {}
    for each in bindings:
        if each.section == section:
            what = WHAT.get(each.id, each.description)
            same.setdefault(_capital(what), []).append(each)
    rows = [
        (_cut(", ".join(key for each in group for key in _keys(each))), what, _ids(group))
        for what, group in same.items()
    ]
    rows += [(keys, _capital(what), "") for where, keys, what in FIXED if where == section]
    if not with_ids:
        return [
            row
            for keys, what, _name in rows
            for row in labelled(keys, what, width, COLUMN, colour="$accent")
        ]
    return [
        Content.assemble(
            (keys + " " * (COLUMN - cell_len(keys)), "$accent"),
            what,
            (" " * max(2, TEXT - cell_len(what)) + name, "$muted"),
        )
        for keys, what, name in rows
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ids(group: list[Bound]) -> str:
    """ "chat.page_up, page_down": the section once."""
    return ", ".join([group[0].id, *(each.id.partition(".")[2] for each in group[1:])])


def _keys(bound: Bound) -> list[str]:
    return [keymap.display(each) for each in keymap.keys(bound.id)]


def _cut(keys: str) -> str:
    """As many of the keys as the column holds."""
    while len(keys) >= COLUMN and ", " in keys:
        keys = keys.rpartition(", ")[0]
    return keys
