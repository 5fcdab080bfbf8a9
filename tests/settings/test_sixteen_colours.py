"""With sixteen colours every theme's texts can be read, and are not all of one colour."""

import itertools

import pytest
from rich.color import ColorType
from rich.segment import Segment
from textual.color import Color

from app.tui import palette, themes
from app.tui.sixteen import _SIXTEEN, READABLE, SixteenColours, contrast


def drawn(style) -> tuple[int, int]:
    """The numbers of ink and ground."""
    [found] = SixteenColours().apply([Segment("x", style)], Color(0, 0, 0))
    assert found.style.color.type is found.style.bgcolor.type is ColorType.STANDARD
    return found.style.color.number, found.style.bgcolor.number


@pytest.mark.parametrize("theme", themes.ours(), ids=lambda theme: theme.name)
def test_every_text_of_a_theme_stays_readable(theme) -> None:
    roles = palette.derive(theme)
    styles = [roles.text, roles.muted, roles.heading, roles.accent, roles.link, roles.code]
    styles += [
        roles.user,
        roles.good,
        roles.caution,
        roles.bad,
        roles.block,
        *roles.tokens.values(),
    ]
    inks = set()
    for style in styles:
        ink, ground = drawn(style)
        inks.add(ink)
        own = contrast(*map(Color.from_rich_color, (style.color, style.bgcolor)))
        assert contrast(_SIXTEEN[ink], _SIXTEEN[ground]) >= min(READABLE, own), style
    assert len(inks) > 2 or theme.name == "ling-mono"


def test_contrast_is_that_of_wcag() -> None:
    black, white, grey = Color(0, 0, 0), Color(255, 255, 255), Color(119, 119, 119)
    assert contrast(black, white) == pytest.approx(21)
    assert contrast(grey, white) == pytest.approx(4.48, abs=0.01)
    for one, other in itertools.permutations((black, white, grey), 2):
        assert contrast(one, other) == contrast(other, one)
