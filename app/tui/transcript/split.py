"""Cuts a growing Markdown text into parts that are settled and a small live rest.

A part is settled when nothing that may still come can change it. Every decision looks at whole
lines from the part's own start only, so a text that arrives letter by letter is cut in the same
places as one that arrives at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 3_000
"""Characters after which even an unfinished block is cut, so that the live rest stays small."""
CODE_LINES = (24, 60)
"""An open code fence is cut at the first blank line after so many lines, or at so many."""


@dataclass(frozen=True, slots=True)
class Part:
    """Markdown that is painted on its own."""

    source: str
    kind: str = "text"
    """`text`, `item` (of a list), `fence` or `table`."""
    number: int | None = None
    """The number of an ordered list's item."""
    gap: bool = True
    """Whether an empty row separates it from what stands before."""
    continues: bool = False
    """True: it goes on where a cut was made inside a block."""
    cut: bool = False
    """True: its block goes on in the next part."""


_START = Part("")


@lru_cache(maxsize=1)
def parser() -> "MarkdownIt":
    """CommonMark with tables and strikethrough."""
    from markdown_it import MarkdownIt  # not needed for the first frame

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


@lru_cache(maxsize=1)
def _outline() -> "MarkdownIt":
    """The same grammar, blocks only."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["inline"])


@dataclass(frozen=True, slots=True)
class _Unit:
    """A block, or an item of a list, by its lines."""

    kind: str
    start: int
    number: int | None = None
    opens: bool = True
    """False for the second and later items of a list."""
    markup: str = ""


def _units(tokens: "list[Token]", carried: Part) -> list[_Unit]:
    units: list[_Unit] = []
    number: int | None = None
    for token in tokens:
        if token.map is None or token.nesting < 0:
            continue
        start = token.map[0]
        if token.level == 0 and token.type == "ordered_list_open":
            number = int(token.attrs.get("start", 1))
            if carried.kind == "item" and not units and carried.number is not None:
                number = carried.number
            opens = True
        elif token.level == 0 and token.type == "bullet_list_open":
            number, opens = None, True
        elif token.level == 1 and token.type == "list_item_open":
            units.append(_Unit("item", start, number, opens))
            number = None if number is None else number + 1
            opens = False
        elif token.level == 0 and token.type == "table_open":
            units.append(_Unit("table", start))
        elif token.level == 0 and token.type == "fence":
            units.append(_Unit("fence", start, markup=token.markup))
        elif token.level == 0:
            units.append(_Unit("text", start))
    return units


class Splitter:
    """Takes a text as it comes; gives its settled parts once and its live rest on demand."""

    def __init__(self) -> None:
        self._rest = ""
        self._carried = _START
        self.references: dict[str, Any] = {}
        """Link definitions met so far; a part may use one that comes later."""

    def feed(self, text: str) -> list[Part]:
        """Add text; returns the parts that are settled now."""
        self._rest += text
        if "\n" not in text and len(self._rest) <= LONGEST:
            return []
        return self._advance(final=False)

    def finish(self) -> list[Part]:
        """The text is complete: returns all that was not settled yet."""
        return self._advance(final=True)

    def live(self) -> list[Part]:
        """The rest as it would be cut if the text ended here."""
        twin = Splitter()
        twin._rest, twin._carried, twin.references = self._rest, self._carried, {**self.references}
        return twin._advance(final=True)

    def _advance(self, final: bool) -> list[Part]:
        parts: list[Part] = []
        while True:
            found, used, carried = self._cut(final)
            parts += found
            self._rest, self._carried = self._rest[used:], carried
            if not used or not self._rest:
                return parts

    def _cut(self, final: bool) -> tuple[list[Part], int, Part]:
        """Parts from the start of the rest, how many characters they use, what carries over."""
        rest = self._rest
        whole = rest if final else rest[: rest.rfind("\n") + 1]
        if len(rest) - len(whole) > LONGEST:
            whole = rest
        lead = self._carried.source  # an opening fence, a table's head
        environment: dict[str, Any] = {"references": self.references}
        units = _units(_outline().parse(lead + whole, environment), self._carried)
        lines = _lines(lead + whole)
        offsets = [0]
        for line in lines:
            offsets.append(offsets[-1] + len(line))
        parts: list[Part] = []
        for index, unit in enumerate(units):
            is_last = index + 1 == len(units)
            stop = len(lines) if is_last else units[index + 1].start
            begin = offsets[unit.start] - len(lead)
            part = self._part(unit, "".join(lines[unit.start : stop]), lines, first=index == 0)
            for piece, length, carried in _pieces(part, unit.markup):
                if piece.cut:
                    return [*parts, piece], begin + length, carried
                if is_last and not final:
                    return parts, begin if index else 0, self._carry(part, index == 0)
                parts.append(piece)
        return parts, len(whole) if final or not units else 0, _START if final else self._carried

    def _part(self, unit: _Unit, source: str, lines: list[str], first: bool) -> Part:
        if first and self._carried is not _START:
            same = self._carried.kind == unit.kind
            return Part(
                source,
                unit.kind,
                unit.number,
                gap=self._carried.gap,
                continues=self._carried.continues and (same or self._carried.kind == "text"),
            )
        blank_before = unit.start > 0 and not lines[unit.start - 1].strip()
        gap = blank_before if unit.kind == "item" and not unit.opens else True
        return Part(source, unit.kind, unit.number, gap=gap)

    def _carry(self, part: Part, first: bool) -> Part:
        """What the rest must know when it is looked at again from this part on."""
        return self._carried if first else replace(part, source="")


def _lines(text: str) -> list[str]:
    """With their ends. Only a line feed ends a line in Markdown, unlike for `str.splitlines`."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _pieces(part: Part, markup: str) -> Iterator[tuple[Part, int, Part]]:
    """The part, or the pieces a long one is cut into: (piece, characters used, carried over)."""
    if part.kind == "fence":
        yield from _fence_piece(part, markup)
        return
    if len(part.source) > LONGEST:
        window = part.source[:LONGEST]
        at = window.rfind("\n", LONGEST // 2) + 1
        if not at and part.kind != "table":
            at = window.rfind(" ", LONGEST // 2) + 1
        at = at or LONGEST
        head = "".join(_lines(part.source)[:2]) if part.kind == "table" else ""
        kind = "table" if part.kind == "table" else "text"
        follows = Part(head, kind, gap=False, continues=True)
        yield replace(part, source=part.source[:at], cut=True), at, follows
        return
    yield part, len(part.source), _START


def _fence_piece(part: Part, markup: str) -> Iterator[tuple[Part, int, Part]]:
    opener, *lines = _lines(part.source) or [""]
    closing = re.compile(rf" {{0,3}}{re.escape(markup[0])}{{{len(markup)},}}[ \t]*\n?")
    body = next((n for n, line in enumerate(lines) if closing.fullmatch(line)), len(lines))
    least, most = CODE_LINES
    at = None
    for number in range(least, min(body, most) - 1):
        if not lines[number].strip() and lines[number + 1][:1].strip():
            at = number + 1
            break
    if at is None and body >= most:
        at = most
    if at is None:
        yield part, len(part.source), _START
        return
    source = opener + "".join(lines[:at])
    follows = Part(opener, "fence", gap=False, continues=True)
    yield replace(part, source=source, cut=True), len(source), follows
