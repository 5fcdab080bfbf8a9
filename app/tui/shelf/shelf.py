"""The shelf beside the conversation: each document with its state and what it takes."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.core.documents import Document
from app.core.i18n import _
from app.tui.glyphs import UNICODE, Glyphs
from app.tui.panel.gauges import spread
from app.tui.plain import one_line
from app.tui.shelf.reading import Reading
from app.tui.shelf.rows import Row


class Shelf(OptionList):
    """The documents of the conversation in the order of the prompt, and what is being read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("delete,backspace,x", "drop", _("Remove"), id="shelf.drop"),
        Binding("plus,a", "add", _("From earlier"), id="shelf.add"),
        Binding("w", "warm", _("Warm again"), show=False, id="shelf.warm"),
        Binding("shift+up,K", "shift(-1)", _("Move up"), show=False, id="shelf.up"),
        Binding("shift+down,J", "shift(1)", _("Move down"), show=False, id="shelf.down"),
    ]

    class Opened(Message):
        """The user wants to read this document."""

        def __init__(self, document: Document) -> None:
            super().__init__()
            self.document = document

    class Dropped(Message):
        """The user wants this document gone."""

        def __init__(self, document: Document) -> None:
            super().__init__()
            self.document = document

    class Asked(Message):
        """The user wants a document of an earlier session (`what` is "add"), or what a restart of
        the engine lost or they stopped themselves to be read ("warm")."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    class Shifted(Message):
        """The user wants this document `step` places further down."""

        def __init__(self, document: Document, step: int) -> None:
            super().__init__()
            self.document, self.step = document, step

    def __init__(self, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id, markup=False, compact=True)
        self._glyphs = glyphs
        self._rows: tuple[Row, ...] = ()
        self._readings: tuple[Reading, ...] = ()

    def show(self, rows: Sequence[Row], readings: Sequence[Reading] = ()) -> None:
        """Show these documents, and what is being read."""
        chosen = self._chosen
        is_same = [each.document for each in rows] == [each.document for each in self._rows]
        count = len(self._readings)
        self._rows, self._readings = tuple(rows), tuple(readings)
        prompts = self._prompts()
        if is_same and count == len(readings):
            for index, prompt in enumerate(prompts):
                self.replace_option_prompt_at_index(index, prompt)
            return
        self.set_options(Option(prompt) for prompt in prompts)
        documents = [row.document for row in rows]
        if chosen in documents:
            self.highlighted = documents.index(chosen)
        elif documents:
            self.highlighted = min(self.highlighted or 0, len(documents) - 1)

    def on_resize(self) -> None:
        for index, prompt in enumerate(self._prompts()):
            self.replace_option_prompt_at_index(index, prompt)

    def _prompts(self) -> list[Content]:
        width = max(16, self.scrollable_content_region.width - 1)
        rows = [self._row(row, width) for row in self._rows]
        return rows + [self._reading(each, width) for each in self._readings]

    def _row(self, row: Row, width: int) -> Content:
        size = Content.assemble((row.size(), "$muted"))
        first = spread(
            Content.assemble(row.sign(self._glyphs), " ", row.title).truncate(
                max(8, width - size.cell_length - 1), ellipsis=True
            ),
            size,
            width,
        )
        facts = [row.state(), row.of_context()]
        second = f"  {f' {self._glyphs.dot} '.join(filter(None, facts))}"
        return Content("\n").join([first, Content.assemble((second, "$muted"))])

    def _reading(self, reading: Reading, width: int) -> Content:
        title = Content.assemble((f"{self._glyphs.document} ", "$accent"), one_line(reading.title))
        text = Content.assemble((f"  {reading.text}", "$muted"))
        return Content("\n").join([title.truncate(width, ellipsis=True), text])

    @property
    def _chosen(self) -> Document | None:
        at = self.highlighted
        return self._rows[at].document if at is not None and at < len(self._rows) else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._rows):
            self.post_message(self.Opened(self._rows[event.option_index].document))

    def action_drop(self) -> None:
        """Let go of the document, or give up reading it."""
        at = self.highlighted
        if document := self._chosen:
            self.post_message(self.Dropped(document))
        elif at is not None and at - len(self._rows) < len(self._readings):
            self._readings[at - len(self._rows)].stop()

    def action_shift(self, step: int) -> None:
        """Move the document."""
        if document := self._chosen:
            self.post_message(self.Shifted(document, step))

    def action_add(self) -> None:
        """Take a document of an earlier session."""
        self.post_message(self.Asked("add"))

    def action_warm(self) -> None:
        """Read what a restart of the engine lost, or what was stopped."""
        self.post_message(self.Asked("warm"))
