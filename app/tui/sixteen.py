"""Drawing with sixteen colours: a text keeps its colour as far as it can be read on its ground."""

import functools

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

READABLE = 4.5
"""Contrast that a text has at least, where its theme gives it as much."""
# As xterm draws them. Other terminals draw them a little brighter or darker.
_DARK = ("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5")
_BRIGHT = ("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff")
_SIXTEEN = tuple(map(Color.parse, (*_DARK, *_BRIGHT)))
_GROUNDS = (0, 4, 7, 15)
"""Black, blue, grey and white: on the others hardly any text can be read."""


class SixteenColours(LineFilter):
    """Takes the terminal's own sixteen colours for all."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, None if style is None else _in_sixteen(style), control)
            for text, style, control in segments
        ]


@functools.lru_cache(1024)
def _in_sixteen(style: Style) -> Style:
    ground = _SIXTEEN[0] if style.bgcolor is None else Color.from_rich_color(style.bgcolor)
    ink = _SIXTEEN[7] if style.color is None else Color.from_rich_color(style.color)
    on = min(_GROUNDS, key=lambda n: _distance(_SIXTEEN[n], ground))
    wanted = min(READABLE, contrast(ink, ground))
    readable = [n for n in range(16) if contrast(_SIXTEEN[n], _SIXTEEN[on]) >= wanted]
    by = min(readable or [15], key=lambda n: _distance(_SIXTEEN[n], ink))
    return style + Style(color=RichColor.from_ansi(by), bgcolor=RichColor.from_ansi(on))


def contrast(one: Color, other: Color) -> float:
    """From 1 to 21, as WCAG has it."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
        for each in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _distance(one: Color, other: Color) -> float:
    """How different they look, about."""
    mean = (one.r + other.r) / 512
    red, green, blue = one.r - other.r, one.g - other.g, one.b - other.b
    return (2 + mean) * red**2 + 4 * green**2 + (3 - mean) * blue**2
