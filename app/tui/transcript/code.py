"""Paints code: on its own ground, highlighted by Pygments in the theme's colours."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from app.tui.palette import Palette
from app.tui.transcript.lines import Line, Run, split_lines, wrap

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

TAB = 4
USUAL = 100
"""Cells of a block of code on a wide screen, unless its lines need more."""


@lru_cache(maxsize=64)
def lexer_for(language: str) -> "Lexer | None":
    """The lexer a fence's info string names, None where Pygments knows no such language."""
    from pygments.lexers import get_lexer_by_name  # not needed for the first frame
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def highlight(code: str, language: str, palette: Palette) -> list[Run]:
    """The code in styled runs."""
    lexer = lexer_for(language) if language else None
    if lexer is None:
        return [(code, palette.block)]
    return [(text, _style_of(kind, palette)) for kind, text in _tokens(lexer, code) if text]


def _tokens(lexer: "Lexer", code: str) -> Iterable["tuple[_TokenType, str]"]:
    return lexer.get_tokens(code)


def _style_of(kind: "_TokenType", palette: Palette) -> Style:
    name = str(kind).removeprefix("Token.")
    while name:
        if name in palette.tokens:
            return palette.tokens[name]
        name = name.rpartition(".")[0]
    return palette.block


def paint_code(
    code: str,
    language: str,
    width: int,
    palette: Palette,
    lead: Sequence[Run] = (),
    top: bool = True,
    bottom: bool = True,
) -> list[Line]:
    """Rows of full `width`; long code lines are wrapped and copied as one again."""
    ground = palette.block
    widest = max(map(cell_len, code.expandtabs(TAB).split("\n")))
    width = min(width, max(USUAL, widest + 3 + sum(cell_len(text) for text, _ in lead)))
    room = width - sum(cell_len(text) for text, _ in lead)
    margin = [*lead, (" ", ground)]
    gutter = sum(len(text) for text, _ in margin)
    lines: list[Line] = []
    if top:
        label = language[: max(0, room - 2)]
        pad = " " * max(0, room - cell_len(label) - 1)
        head = [(pad, ground), (label, palette.block_label), (" ", ground)]
        segments = [Segment(text, style) for text, style in [*lead, *head] if text]
        lines.append(Line(segments, gutter=sum(len(segment.text) for segment in segments)))
    if code or not lines:
        for source in split_lines(highlight(code.expandtabs(TAB), language, palette)):
            for line in wrap(source, width - 1, margin, margin, gutter):
                line.fill(width, ground)
                lines.append(line)
    if bottom:
        last = Line([Segment(text, style) for text, style in lead])
        last.fill(width, ground)
        lines.append(last)
    return lines
