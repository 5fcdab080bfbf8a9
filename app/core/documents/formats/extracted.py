"""What a reader of a format hands back, and how it gathers pages."""

from dataclasses import dataclass, field

from app.core.plain import plain


@dataclass(slots=True)
class Extracted:
    """Text that grows page by page, or as a whole; nothing in it can command a terminal."""

    kind: str
    encoding: str = ""
    pages: list[int] = field(default_factory=list)
    """Where each page starts."""
    notes: list[str] = field(default_factory=list)
    """Sentences the user must know."""
    _pieces: list[str] = field(default_factory=list)
    _length: int = 0

    def add(self, text: str) -> None:
        """Append text; it ends with a line end, and with an empty line unless it is empty."""
        text = clean(text).strip("\n")
        if text.strip():
            text += "\n\n"
            self._pieces.append(text)
            self._length += len(text)

    def add_page(self, text: str) -> None:
        """Append a page, slide, sheet, chapter or mail; an empty one counts as well."""
        self.pages.append(self._length)
        self.add(text)

    @property
    def text(self) -> str:
        return "".join(self._pieces).rstrip() + "\n" if self._length else ""


def clean(text: str) -> str:
    """The text with one kind of line end, without control sequences and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n")
    text = plain(text.replace("\x0c", "\n").replace("\u2028", "\n").replace("\u2029", "\n\n"))
    return text.encode("utf-8", "replace").decode() if _has_surrogates(text) else text


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def cell(value: object) -> str:
    """A table's cell on one line."""
    return " ".join(str(value).split())


def markdown_table(rows: list[list[str]]) -> str:
    """Rows of cells as a Markdown table whose first row is the head; empty without rows."""
    width = max(map(len, rows), default=0)
    filled = [[cell(text).replace("|", "\\|") for text in row] for row in rows]
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in filled]
    lines[1:1] = ["|" + " --- |" * width] if lines else []
    return "\n".join(lines)
