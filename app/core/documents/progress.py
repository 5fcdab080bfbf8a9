"""How far the reading of a document is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Doing = Literal["reading", "recognising", "fetching"]


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `of` things are done; `of` is 0 while nobody knows how many there are."""

    doing: Doing
    done: int
    of: int
    unit: Literal["pages", "files", "bytes"] = "pages"


Report = Callable[[Progress], None]


def unheard(progress: Progress) -> None:
    """A report that nobody listens to."""
