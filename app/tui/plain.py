"""Text from outside on its way to the screen: harmless, and encodable."""

import re

from app.core.i18n import shown
from app.core.plain import Plain as _Plain
from app.core.plain import plain as _plain

# Lone surrogates cannot be written to a terminal; the separators would break a row.
_BROKEN = re.compile("[\ud800-\udfff\u2028\u2029]")


def plain(text: str) -> str:
    """The text without anything a terminal would obey. Line feeds and tabs stay."""
    return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", _plain(text))


def one_line(text: str) -> str:
    """The same as one line."""
    return " ".join(plain(text).split())


class Plain:
    """`plain` for text that comes in pieces."""

    def __init__(self) -> None:
        self._inner = _Plain()

    def feed(self, text: str) -> str:
        return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", self._inner.feed(text))

    def end(self) -> str:
        """What was held back, once nothing more can come."""
        return self._inner.end()


def said(text: str) -> str:
    """A sentence of engine_bridge in the user's language, on one line."""
    return one_line(shown(text))
