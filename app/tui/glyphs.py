"""The signs the app draws with, and what stands in for them where they cannot be shown."""

import codecs
import sys
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Single-cell signs by meaning; `spark` and `spinner` are sequences of them."""

    bar: str = "▎"
    quote: str = "│"
    bullet: str = "•"
    rule: str = "─"
    column: str = "│"
    crossing: str = "┼"
    folded: str = "▸"
    unfolded: str = "▾"
    on: str = "●"
    off: str = "○"
    partly: str = "◐"
    absent: str = "·"
    full: str = "━"
    empty: str = "─"
    down: str = "↓"
    checked: str = "☑"
    unchecked: str = "☐"
    dot: str = "·"
    times: str = "×"
    cut: str = "…"
    warn: str = "!"
    document: str = "▤"
    branch: str = "⎇"
    cursor: str = "▌"
    spark: str = "▁▂▃▄▅▆▇█"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


UNICODE = Glyphs()
ASCII = Glyphs(
    bar="|",
    quote="|",
    bullet="*",
    rule="-",
    column="|",
    crossing="+",
    folded=">",
    unfolded="v",
    on="*",
    off="o",
    partly="~",
    absent=".",
    full="#",
    empty="-",
    down="v",
    checked="x",
    unchecked="_",
    dot="-",
    times="x",
    cut="~",
    warn="!",
    document="#",
    branch="Y",
    cursor=">",
    spark="_.-=+*%#",
    spinner="|/-\\",
)


def can_show(encoding: str | None) -> bool:
    """Whether text in `encoding` can carry every sign of the full set."""
    try:
        codecs.lookup(encoding or "ascii")
        for field in fields(UNICODE):
            str(getattr(UNICODE, field.name)).encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def for_terminal() -> Glyphs:
    """The signs that this process's terminal can show. Textual draws on standard error."""
    return UNICODE if can_show(getattr(sys.__stderr__, "encoding", None)) else ASCII
