"""The automatic numbers of a Word text, as Word shows them: "7.2", "(a)", or a dash."""

import re
from dataclasses import dataclass
from typing import Any

from app.core.documents.formats.xml import attribute, children

_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """How one level of a list counts and shows its number: `text` is such as "%1.%2"."""

    shape: str = "decimal"
    text: str = ""
    start: int = 1


class Numbering:
    """Counts the paragraphs of each list in the order in which they are asked for."""

    def __init__(self, root: Any, styled: dict[str, Any]) -> None:
        self._styled = styled
        kinds = {
            attribute(each, "abstractNumId"): _levels(each)
            for each in children(root, "abstractNum")
        }
        self._lists: dict[str, tuple[str, dict[int, Level]]] = {}
        for each in children(root, "num"):
            kind = attribute(next(children(each, "abstractNumId"), None), "val")
            self._lists[attribute(each, "numId")] = (kind, kinds.get(kind, {}))
        self._counts: dict[str, dict[int, int]] = {}

    def of(self, properties: Any, style: str) -> str:
        """What stands before the next paragraph, with its indent; empty outside lists."""
        if not self._lists and properties is None:
            return ""
        own = next(children(properties, "numPr"), None)
        inherited = next(children(self._styled.get(style), "numPr"), None)
        number = _setting(own, "numId") or _setting(inherited, "numId")
        depth = _setting(own, "ilvl") or _setting(inherited, "ilvl")
        if number in ("", "0"):
            return ""
        kind, levels = self._lists.get(number, (number, {}))
        at = int(depth) if depth.isdecimal() and int(depth) < 9 else 0
        level = levels.get(at, Level("bullet"))
        counts = self._counts.setdefault(kind, {})
        counts[at] = counts.get(at, level.start - 1) + 1
        for deeper in [each for each in counts if each > at]:
            del counts[deeper]
        if level.shape in ("bullet", "none") or not level.text:
            return f"{'  ' * at}- "

        def shown(place: re.Match[str]) -> str:
            index = int(place[1]) - 1
            other = levels.get(index, Level())
            return _shown(counts.get(index, other.start), other.shape)

        return f"{'  ' * at}{_PLACE.sub(shown, level.text)} "


def _setting(properties: Any, name: str) -> str:
    return attribute(next(children(properties, name), None), "val")


def _levels(kind: Any) -> dict[int, Level]:
    found = {}
    for each in children(kind, "lvl"):
        depth, start = attribute(each, "ilvl"), _setting(each, "start")
        found[int(depth) if depth.isdecimal() else 0] = Level(
            _setting(each, "numFmt") or "decimal",
            _setting(each, "lvlText"),
            int(start) if start.isdecimal() else 1,
        )
    return found


def _shown(number: int, shape: str) -> str:
    if shape in ("lowerLetter", "upperLetter"):
        letter = chr(ord("a") + (number - 1) % 26) * min(9, (number - 1) // 26 + 1)
        return letter.upper() if shape == "upperLetter" else letter
    if shape in ("lowerRoman", "upperRoman") and number < 4000:
        roman = ""
        for value, letters in _ROMAN:
            roman += letters * (number // value)
            number %= value
        return roman.upper() if shape == "upperRoman" else roman
    return str(number)
