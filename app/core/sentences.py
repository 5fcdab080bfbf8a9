"""Finds the translation of a sentence whose figures and names are filled in already.

What engine_bridge says crosses a process border as finished English. The catalogue has its
f-strings as templates, "The model {name} is not here.", under the context `BRIDGE`.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.core.i18n import Catalogue

BRIDGE = "bridge"
_MARK = f"{BRIDGE}\x04"
_FIELD = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_BETWEEN = re.compile(r"(?<=[.!?;]) ")
_KEPT = 512


@dataclass(frozen=True, slots=True)
class Template:
    """The fixed parts of a sentence in order, the names of the gaps, and the translation."""

    parts: tuple[str, ...]
    names: tuple[str, ...]
    translation: str

    @property
    def fixed(self) -> int:
        """Characters that must be as they are: the more, the surer is a match."""
        return sum(map(len, self.parts))

    def values(self, text: str) -> list[str] | None:
        """What stands in the gaps of `text`; None where it is another sentence."""
        first, *middle, last = self.parts
        if not (text.startswith(first) and text.endswith(last)):
            return None
        at, end = len(first), len(text) - len(last)
        found: list[str] = []
        for part in middle:
            after = text.find(part, at, end)
            if after < 0:
                return None
            found.append(text[at:after])
            at = after + len(part)
        return [*found, text[at:end]] if at <= end else None


@functools.lru_cache(_KEPT)
def translate(text: str, catalogue: Catalogue) -> str:
    """The translation of `text`: sentence by sentence where all are known, so that no gap takes
    a sentence in; else whole, else what is known of it."""
    if exact := catalogue.messages().get(_MARK + text):
        return exact
    pieces = _BETWEEN.split(text)
    found = [_one(piece, catalogue) for piece in pieces]
    if None in found and (whole := _one(text, catalogue)) is not None:
        return whole
    return "".join(
        piece + " " if translated is None else translated
        for piece, translated in zip(pieces, found, strict=True)
    ).rstrip()


def _one(text: str, catalogue: Catalogue) -> str | None:
    if exact := catalogue.messages().get(_MARK + text):
        return exact
    for template in _templates(catalogue):
        values = template.values(text)
        if values is not None:
            shown = (_value(each, catalogue) for each in values)
            return template.translation.format(**dict(zip(template.names, shown, strict=True)))
    return None


def _value(text: str, catalogue: Catalogue) -> str:
    """What fills a gap may be a sentence or a phrase of ours again; a single word is a name."""
    return translate(text, catalogue) if " " in text else text


@functools.lru_cache(2)
def _templates(catalogue: Catalogue) -> tuple[Template, ...]:
    """Every template, the surest first."""

    def read() -> Iterator[Template]:
        for key, translation in catalogue.messages().items():
            if isinstance(key, str) and key.startswith(_MARK) and _FIELD.search(key):
                pieces = _FIELD.split(key.removeprefix(_MARK))
                parts = (each.replace("{{", "{").replace("}}", "}") for each in pieces[::2])
                yield Template(tuple(parts), tuple(pieces[1::2]), translation)

    return tuple(sorted(read(), key=lambda each: -each.fixed))
