"""Cuts a growing Markdown text into parts that are settled and a small live rest.

A part is settled when nothing that may still come can change it. Every decision looks at whole
lines from the part's own start only, so a text that arrives letter by letter is cut in the same
places as one that arrives at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.tui.transcript.grammar import outline

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST = 3_000
"""Characters after which even an unfinished block is cut, so that the live rest stays small."""
CODE_LINES = (24, 60)
"""An open code fence is cut at the first blank line after so many lines, or at so many."""
TABLE = 1_000
"""Characters of rows after which a table is cut at the end of a row; its pieces share columns."""
LEAD = 800
"""Characters of a table's head or a fence's first line above which it is cut like any text: the
lead is read again with every piece."""


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
    lead: int = 0
    """How many characters of `source` repeat what stands before the cut: a table's head, a fence's
    first line."""

    @property
    def written(self) -> str:
        """The source without what is repeated."""
        return self.source[self.lead :]


_START = Part("")


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
        units = _units(outline().parse(lead + whole, environment), self._carried)
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
            for piece, length, carried in _pieces(part, unit.markup, lead if index == 0 else ""):
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
                lead=len(self._carried.source) if same else 0,
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


def _pieces(part: Part, markup: str, lead: str) -> Iterator[tuple[Part, int, Part]]:
    """The part, or the piece a long one begins with: (piece, characters used, carried over).

    `lead` is what was carried to the part's start.
    """
    lines = _lines(part.source)
    if part.kind == "fence" and len(lines[0]) <= LEAD:
        yield _fence_piece(part, markup, lines)
    elif part.kind == "table" and len(lead or "".join(lines[:2])) <= LEAD:
        yield _table_piece(part, lead or "".join(lines[:2]))
    elif len(part.source) > LONGEST:
        window = part.source[:LONGEST]
        at = window.rfind("\n", LONGEST // 2) + 1 or window.rfind(" ", LONGEST // 2) + 1 or LONGEST
        kind = part.kind if part.kind == "item" else "text"
        follows = Part("", "text", gap=False, continues=True)
        yield _cut_at(replace(part, kind=kind), at, follows)
    else:
        yield part, len(part.source), _START


def _cut_at(part: Part, at: int, follows: Part) -> tuple[Part, int, Part]:
    return replace(part, source=part.source[:at], cut=True), at, follows


def _table_piece(part: Part, lead: str) -> tuple[Part, int, Part]:
    """Cut between two rows; only a row that is longer than all limits is cut itself, and its rest
    stays in its column."""
    source, least = part.source, len(lead)
    head = "".join(_lines(source)[:2])
    if len(source) <= least + TABLE:
        return part, len(source), _START
    at = source.rfind("\n", least, least + TABLE) + 1
    at = at or source.find("\n", least + TABLE, least + LONGEST) + 1
    if at:
        return _cut_at(part, at, Part(head, "table", gap=False, continues=True))
    if len(source) <= least + LONGEST:
        return part, len(source), _START
    at = source.rfind(" ", least + LONGEST // 2, least + LONGEST) + 1 or least + LONGEST
    row = source[source.rfind("\n", 0, at) + 1 : at].strip()
    done = len(re.findall(r"(?<!\\)\|", row)) - row.startswith("|")
    row_head = head + "|" + " |" * min(done, head.count("|")) + " "
    return _cut_at(part, at, Part(row_head, "table", gap=False, continues=True))


def _fence_piece(part: Part, markup: str, source_lines: list[str]) -> tuple[Part, int, Part]:
    opener, *lines = source_lines or [""]
    closing = re.compile(rf" {{0,3}}{re.escape(markup[0])}{{{len(markup)},}}[ \t]*\n?")
    body = next((n for n, line in enumerate(lines) if closing.fullmatch(line)), len(lines))
    at = _code_end(lines[:body], lines[body : body + 1])
    if at is None:
        return part, len(part.source), _START
    return _cut_at(part, len(opener) + at, Part(opener, "fence", gap=False, continues=True))


def _code_end(lines: list[str], closing: list[str]) -> int | None:
    """After how many characters to cut the code, None to leave it whole."""
    least, most = CODE_LINES
    used = 0
    for number, line in enumerate(lines):
        if used + len(line) > LONGEST:
            return used or LONGEST
        used += len(line)
        if number + 1 == most and (closing or number + 1 < len(lines)):
            return used
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if number >= least and not line.strip() and following[:1].strip():
            return used
    return None
