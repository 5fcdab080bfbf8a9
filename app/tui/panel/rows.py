"""A widget of a few rows of text that are made for the width they get."""

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget


class Rows(Widget):
    """Subclasses say what their rows are; the height follows from that."""

    def rows(self, width: int) -> Sequence[Content]:
        """The rows at `width` cells."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width))

    def render(self) -> Content:
        return Content("\n").join(self.rows(self.size.width))


def hanging(text: Content, width: int, indent: int = 2) -> list[Content]:
    """The text wrapped to `width`, each row indented."""
    lead = " " * indent
    return [Content.assemble(lead, row) for row in text.wrap(max(4, width - indent))]
