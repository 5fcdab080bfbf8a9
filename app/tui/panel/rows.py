"""A widget of a few rows of text that are made for the width they get."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget


class Rows(Widget):
    """Subclasses say what their rows are; the height follows from that."""

    _shown: Content | None = None

    def rows(self, width: int) -> Sequence[Content]:
        """The rows at `width` cells."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width))

    def render(self) -> Content:
        return Content("\n").join(self.rows(self.size.width))

    def refresh_if_changed(self) -> None:
        """Draw again only where the rows are others than before."""
        shown = self.render()
        if shown != self._shown:
            self._shown = shown
            self.refresh(layout=shown.plain.count("\n") + 1 != self.size.height)


class Made(Rows):
    """Rows that somebody else makes."""

    def __init__(self, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._make: Callable[[int], Sequence[Content]] = lambda _width: ()

    def show(self, make: Callable[[int], Sequence[Content]]) -> None:
        """Show the rows that `make` gives for a width; nothing where it gives none."""
        self._make = make
        self.refresh(layout=True)

    def rows(self, width: int) -> Sequence[Content]:
        return self._make(width)


def labelled(
    label: str, text: str, width: int, column: int = 12, indent: int = 0, colour: str = "$muted"
) -> list[Content]:
    """A label, quiet where no colour is given, and its text beside it, wrapped within its own
    column. There is always a gap between them: a label too long for its column widens it."""
    column = max(column, cell_len(label) + 1)
    first, *rest = Content(text).wrap(max(8, width - column - indent)) or [Content("")]
    lead = " " * indent
    rows = [Content.assemble(lead, (label + " " * (column - cell_len(label)), colour), first)]
    return rows + [Content.assemble(lead, " " * column, row) for row in rest]


def hanging(text: Content, width: int) -> list[Content]:
    """The text wrapped to `width`, each row indented."""
    return [Content.assemble("  ", row) for row in text.wrap(max(4, width - 2))]
