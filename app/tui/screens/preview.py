"""The text of a document as the model sees it: to scroll, search and go to a page."""

import asyncio
import re
from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, Static
from textual.worker import WorkType

from app.core.chat.prompt import document_prompt, offset_in_prompt
from app.core.documents import Document
from app.core.documents.places import line_offset
from app.core.i18n import _
from app.tui.glyphs import Glyphs
from app.tui.plain import one_line
from app.tui.shelf.pieces import Text
from app.tui.shelf.rows import parts
from app.tui.shelf.text_view import TextView

_MARK = re.compile(r"\[((?:p|l)\.\d+)\]$", re.MULTILINE)
NEAR = 20_000
"""Characters within which the mark of a line is looked for: there is one every few thousand."""
COUNT_S = 0.15
"""Seconds after the last letter until matches are counted."""


class PreviewScreen(Screen[None]):
    """One document, from its beginning or from `offset` of its text on."""

    CSS_PATH = "preview.tcss"
    AUTO_FOCUS = "#text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f4", "back", _("Back"), id="preview.back"),
        Binding("slash,ctrl+f", "find", _("Search"), id="preview.find"),
        Binding("n", "next(1)", _("Next"), id="preview.next"),
        Binding("N", "next(-1)", _("Previous"), show=False, id="preview.previous"),
        Binding("g", "go_to", _("Go to page"), id="preview.go_to"),
        Binding("y", "copy", _("Copy all"), show=False, id="preview.copy"),
    ]

    def __init__(self, document: Document, glyphs: Glyphs, offset: int | None = None) -> None:
        super().__init__()
        self._document = document
        self._glyphs = glyphs
        self._offset = offset
        self._view = TextView(glyphs, id="text")
        self._head = Static(id="head")
        self._input = Input(id="ask", compact=True, select_on_focus=True)
        self._shown: Content | None = None
        self._asks = ""
        """What the input is for: search or page."""
        self._from = 0
        """Where the search that is being typed began."""

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._view
        with Horizontal(id="line"):
            yield Static(id="label")
            yield self._input
            yield Static(id="count")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._ask("")
        self._show_head()
        self.run_worker(self._load(), group="load")

    async def _load(self) -> None:
        document = self._document
        text = await asyncio.to_thread(lambda: Text.of(document_prompt(document)))
        self._view.show(text)
        if self._offset is not None:
            self._view.point(await asyncio.to_thread(offset_in_prompt, document, self._offset))

    def _mark(self, place: str) -> int | None:
        text = self._view.text.text
        at = text.find(f"\n[{place}]\n")
        return None if at < 0 else at + 1

    # The head

    @on(TextView.Moved)
    def _show_head(self) -> None:
        document, dot = self._document, self._glyphs.dot
        facts = [document.kind, _("{n:,} characters").format(n=document.characters)]
        if document.encoding and document.encoding != "utf-8":
            facts.append(document.encoding)
        if pages := len(document.pages):
            facts.insert(1, parts(self._document.kind, pages))
        if place := self._place_in_view():
            facts.append(place)
        note = f"\n{one_line(document.note)}" if document.note else ""
        head = Content.assemble(
            (f"{self._glyphs.document} {one_line(document.title)}", "bold $primary"),
            (f"  {f' {dot} '.join(facts)}", "$muted"),
            (note, "$warning"),
        )
        if head != self._shown:
            # A layout of the whole screen takes longer than all the rest of scrolling.
            self._head.update(head, layout=self._shown is None)
            self._shown = head

    def _place_in_view(self) -> str:
        """The page by the last mark above what is looked at; without pages, the line."""
        text, place = self._view.text.text, self._view.place_in_view
        end = place + len("\n[p.")
        at = max(text.rfind("\n[p.", 0, end), text.rfind("\n[l.", max(0, end - NEAR), end))
        found = _MARK.match(text, at + 1) if at >= 0 else None
        if self._document.pages or (found is None and place > NEAR):
            return found[1] if found else ""
        start, first = 0, self._document.first_line
        if found is not None:
            start, first = found.start(), int(found[1].removeprefix("l."))
        lines = text.count("\n", start, place)  # that of the mark or the title is none
        return f"l.{first + max(0, lines - 1)}"

    # Searching, going

    def _ask(self, what: str) -> None:
        self._asks = what
        self.query_one("#line").display = bool(what)
        if what:
            label = _("Search") if what == "search" else self._unit()
            self.query_one("#label", Static).update(f"{label} ")
            self._from = self._view.offset_in_view
            self._input.value = self._view.found.needle if what == "search" else ""
            self._input.focus()
        else:
            self._view.focus()

    def _unit(self) -> str:
        return _("Page") if self._document.pages else _("Line")

    def action_find(self) -> None:
        """Search, from what is in view on."""
        self._ask("search")

    def action_go_to(self) -> None:
        """Ask for a page, or a line where there are no pages."""
        self._ask("place")

    def action_back(self) -> None:
        """Close the input, else the screen."""
        if self._asks:
            self._ask("")
        else:
            self.dismiss()

    def action_next(self, step: int) -> None:
        """To the next match, or the one before."""
        found = self._view.found
        if not found.needle:
            self._ask("search")
            return
        start = found.at + 1 if step > 0 else found.at
        self._find(found.needle, start, backwards=step < 0)

    @on(Input.Changed, "#ask")
    def _typed(self, event: Input.Changed) -> None:
        if self._asks == "search":
            self._find(event.value, self._from)

    @on(Input.Submitted, "#ask")
    def _submitted(self, event: Input.Submitted) -> None:
        asks, value = self._asks, event.value.strip()
        self._ask("")
        if asks == "place" and value and not self._go(value):
            self.notify(_("There is no such place."), severity="warning")

    def _go(self, value: str) -> bool:
        if not value.isdigit():
            offset = self._mark(value)
        elif self._document.pages:
            offset = self._mark(f"p.{value}")
        else:
            offset = self._line(int(value))
        if offset is None:
            return False
        self._view.go_to(offset, above=0)
        return True

    def _line(self, number: int) -> int | None:
        """Where a line of the document stands."""
        offset = line_offset(self._document, number - self._document.first_line + 1)
        return None if offset is None else offset_in_prompt(self._document, offset)

    def _find(self, needle: str, start: int, backwards: bool = False) -> None:
        self._view.search(needle, start, backwards)
        self.query_one("#line").display = bool(needle) or bool(self._asks)
        self.run_worker(cast(WorkType[None], self._count), group="count", exclusive=True)

    async def _count(self) -> None:
        """Say which match this is, and of how many, once no more is typed."""
        await asyncio.sleep(COUNT_S)
        found, folded = self._view.found, self._view.text.folded
        words = ""
        if found.needle and found.at < 0:
            words = _("not found")
        elif found.needle:
            before = await asyncio.to_thread(folded.count, found.needle, 0, found.at)
            total = await asyncio.to_thread(folded.count, found.needle)
            words = _("{n:,} of {total:,}").format(n=before + 1, total=total)
        self.query_one("#count", Static).update(words)

    async def action_copy(self) -> None:
        """Copy the document's text."""
        from app.tui.app import LingChat

        assert isinstance(self.app, LingChat)
        await self.app.copy(self._document.text)
