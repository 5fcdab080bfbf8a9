"""Drawing without colours: what they said is said by bold, dim and reversed text."""

import functools

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

THEME = "ling-mono"
_DEFAULT = RichColor.default()
_LIGHT = 0.5
"""Brightness from which a ground stands out from the black one of the theme."""


class NoColours(LineFilter):
    """Takes the terminal's own two colours for all: a light ground is reversed, grey is dim."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, None if style is None else _without_colours(style), control)
            for text, style, control in segments
        ]


@functools.lru_cache(1024)
def _without_colours(style: Style) -> Style:
    ground, ink = _brightness(style.bgcolor, 0.0), _brightness(style.color, 1.0)
    is_reversed = (ground > _LIGHT) is not bool(style.reverse)
    is_dim = bool(style.dim) or (not is_reversed and ground < ink < 0.7)
    bare = Style(color=_DEFAULT, bgcolor=_DEFAULT, reverse=is_reversed, dim=is_dim)
    return style + bare


def _brightness(colour: RichColor | None, otherwise: float) -> float:
    return otherwise if colour is None else Color.from_rich_color(colour).brightness
