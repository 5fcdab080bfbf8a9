"""Bars and curves made of characters."""

from collections.abc import Sequence

from textual.content import Content

from app.tui.glyphs import Glyphs


def meter(share: float, width: int, glyphs: Glyphs, colour: str = "$primary") -> Content:
    """A bar of `width` cells, `share` (0 to 1) of it filled; anything above zero shows."""
    width = max(0, width)
    filled = min(width, round(share * width))
    if share > 0 and width:
        filled = max(1, filled)
    return Content.assemble(
        (glyphs.full * filled, colour), (glyphs.empty * (width - filled), "$border-blurred")
    )


def stacked(parts: Sequence[tuple[float, str]], width: int, glyphs: Glyphs) -> Content:
    """A bar of `width` cells with a piece for each part: its share (0 to 1) and its colour."""
    width = max(0, width)
    pieces: list[tuple[str, str]] = []
    used = 0
    for share, colour in parts:
        cells = min(width - used, max(round(share * width), int(share > 0)))
        pieces.append((glyphs.full * cells, colour))
        used += cells
    return Content.assemble(*pieces, (glyphs.empty * (width - used), "$border-blurred"))


def sparkline(values: Sequence[float], width: int, glyphs: Glyphs) -> Content:
    """The last values, one cell each, from zero to their maximum."""
    shown = list(values)[-width:] if width > 0 else []
    top = max(shown, default=0.0)
    levels = len(glyphs.spark)
    signs = "".join(
        glyphs.spark[min(levels - 1, int(value / top * levels))] if top > 0 else glyphs.spark[0]
        for value in shown
    )
    return Content.assemble((signs, "$primary 70%"))


def spread(left: Content, right: Content, width: int) -> Content:
    """`left` and `right` at the two ends of a row; `right` goes where it does not fit."""
    space = width - left.cell_length - right.cell_length
    if space < 1:
        return left
    return Content.assemble(left, " " * space, right)
