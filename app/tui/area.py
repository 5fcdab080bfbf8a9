"""Textual's box for several lines, without a fault of it that ends the app."""

from textual.geometry import Offset
from textual.widgets import TextArea


class Area(TextArea):
    """Undoing hides the scroll bar before it moves the cursor, which then is in no line."""

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, where there is one to be seen."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset(0, 0)
        return super().scroll_cursor_visible(center, animate)
