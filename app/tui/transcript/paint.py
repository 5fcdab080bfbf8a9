"""Paints a part of Markdown as lines."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.style import Style

from app.tui.glyphs import Glyphs
from app.tui.palette import Palette
from app.tui.transcript.code import paint_code
from app.tui.transcript.grammar import parser
from app.tui.transcript.lines import Line, Run, cells, wrap
from app.tui.transcript.split import Part
from app.tui.transcript.table import Columns, paint_table

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

PROSE = 100
"""Prose is wrapped at so many cells even where there is more room: longer rows are hard to read."""
_URL = re.compile(r"https?://[^\s<>\"'`)\]}，。；、）】]+")
_LINK = re.compile(
    _URL.pattern
    + r"|[\[【［][^\[\]【】［］\n]{0,200}?\b(?:pp?|ll?|pages?|lines?|slides?|sheets?)\.?\s?\d+"
    r"[^\[\]【】［］\n]{0,80}[\]】］]",
    re.IGNORECASE,
)
"""An address, or a place in a document as in [lease.pdf p.4]."""
_TASK = re.compile(r"\[([ xX])\] ")
_SAFE_LINK = re.compile(r"(https?://|mailto:)[\x21-\x7e]+", re.IGNORECASE)


class Painter:
    """Paints at one width with one palette. `references` are link definitions of the whole text."""

    def __init__(
        self, width: int, palette: Palette, glyphs: Glyphs, references: dict[str, Any] | None = None
    ) -> None:
        self.width = width
        self.palette = palette
        self.glyphs = glyphs
        self.references = references if references is not None else {}

    def _tree(self, source: str) -> "SyntaxTreeNode":
        from markdown_it.tree import SyntaxTreeNode  # not needed for the first frame

        # A copy: painting must not define links, cutting the text does.
        return SyntaxTreeNode(parser().parse(source, {"references": dict(self.references)}))

    def columns(self, part: Part) -> Columns:
        """How wide the columns of a part that is a table want to be."""
        return Columns().take(
            [row for node in self._tree(part.source).children[:1] for row in self._rows(node)]
        )

    def part(self, part: Part, columns: Columns | None = None) -> list[Line]:
        """The part's lines, an empty one first where a gap belongs. `columns` are those of the
        whole table of which the part is a piece."""
        lines: list[Line] = []
        for number, node in enumerate(self._tree(part.source).children):
            if number or (part.gap and not part.continues):
                lines.append(self._empty(()))
            if node.type == "fence":
                lines += self._code(node, (), part.continues, part.cut)
            elif node.type == "table":
                lines += self._table(node, (), part.continues, part.cut, columns)
            elif part.kind == "item" and node.type in ("bullet_list", "ordered_list"):
                lines += self._list(node, (), part.number)
            else:
                lines += self._block(node, (), ())
        if part.cut and part.kind in ("text", "item") and lines:
            # The cut is ours: what is copied goes on in the next part.
            lines[-1].joint = part.source[len(part.source.rstrip(" ")) :]
        return lines

    def _empty(self, lead: Sequence[Run]) -> Line:
        return Line([Segment(text, style) for text, style in lead], gutter=sum(map(_length, lead)))

    def _blocks(
        self, nodes: Sequence["SyntaxTreeNode"], first: Sequence[Run], rest: Sequence[Run]
    ) -> list[Line]:
        """Blocks inside a container: an empty row between two only where the source has one."""
        lines: list[Line] = []
        end: int | None = None
        for node in nodes:
            if end is not None and node.map and node.map[0] > end:
                lines.append(self._empty(rest))
            lines += self._block(node, rest if lines else first, rest)
            end = _last_line(node)
        return lines or [self._empty(first)]

    def _block(  # noqa: PLR0911  (one return per kind of block)
        self, node: "SyntaxTreeNode", first: Sequence[Run], rest: Sequence[Run]
    ) -> list[Line]:
        palette = self.palette
        match node.type:
            case "paragraph":
                return self._prose(self._inline(node, palette.text), first, rest)
            case "heading":
                style = palette.heading
                if node.tag == "h1":
                    style += Style(underline=True)
                elif node.tag not in ("h2", "h3"):
                    style = palette.strong
                return self._prose(self._inline(node, style), first, rest)
            case "bullet_list" | "ordered_list":
                return self._list(node, first, None, rest)
            case "blockquote":
                bar = [(f"{self.glyphs.quote} ", palette.accent)] if self._is_shallow(rest) else []
                return self._blocks(node.children, [*first, *bar], [*rest, *bar])
            case "math_block":
                return self._formula(node, first, rest)
            case "fence" | "code_block":
                lines = self._code(node, rest)
                if first != rest:  # a bullet stands on its own row before code
                    lines.insert(0, self._empty(first))
                return lines
            case "table":
                return self._table(node, rest)
            case "hr":
                room = min(self.width, PROSE) - sum(len(text) for text, _ in first)
                return wrap([(self.glyphs.rule * max(3, room), palette.rule)], self.width, first)
            case _:
                text = node.content.rstrip("\n") if node.content else ""
                return self._prose([(text, palette.muted)], first, rest)

    def _is_shallow(self, lead: Sequence[Run]) -> bool:
        """Whether there is room for one more level beside what stands before the text."""
        return cells(lead) < self.width // 2

    def _formula(
        self, node: "SyntaxTreeNode", first: Sequence[Run], rest: Sequence[Run]
    ) -> list[Line]:
        style = self.palette.text
        if node.info == "open":  # its end has not come, or never will
            return self._prose([(f"{node.markup}{node.content}", style)], first, rest)
        margin = ("  ", style)
        runs = [(_readable(node.content), style)]
        return self._prose(runs, [*first, margin], [*rest, margin])

    def _prose(self, runs: Sequence[Run], first: Sequence[Run], rest: Sequence[Run]) -> list[Line]:
        return wrap(runs, min(self.width, PROSE), first, rest)

    def _list(
        self,
        node: "SyntaxTreeNode",
        first: Sequence[Run],
        number: int | None,
        rest: Sequence[Run] = (),
    ) -> list[Line]:
        ordered = node.type == "ordered_list"
        if number is None:
            number = int(node.attrs.get("start", 1))
        widest = len(str(number + len(node.children) - 1))
        lines: list[Line] = []
        end: int | None = None
        for item in node.children:
            mark = f"{number:>{widest}}. " if ordered else f"{self.glyphs.bullet} "
            if end is not None and item.map and item.map[0] > end:
                lines.append(self._empty(rest))
            lead = rest if lines else (first or rest)
            marks, inner = [(mark, self.palette.accent)], [(" " * len(mark), self.palette.text)]
            lines += self._blocks(
                item.children,
                [*lead, *(marks if self._is_shallow(lead) else [])],
                [*rest, *(inner if self._is_shallow(rest) else [])],
            )
            end = _last_line(item)
            number += 1
        return lines

    def _code(
        self,
        node: "SyntaxTreeNode",
        lead: Sequence[Run],
        continues: bool = False,
        cut: bool = False,
    ) -> list[Line]:
        language = node.info.split()[0] if node.type == "fence" and node.info.split() else ""
        code = node.content.rstrip("\n") if not cut else node.content.removesuffix("\n")
        return paint_code(
            code, language, self.width, self.palette, lead, top=not continues, bottom=not cut
        )

    def _table(
        self,
        node: "SyntaxTreeNode",
        lead: Sequence[Run],
        continues: bool = False,
        cut: bool = False,
        columns: Columns | None = None,
    ) -> list[Line]:
        rows = self._rows(node)
        styles = [
            str(cell.attrs.get("style", "")) for cell in node.children[0].children[0].children
        ]
        aligns = [style.rpartition(":")[2] for style in styles]
        return paint_table(
            rows,
            aligns,
            columns or Columns().take(rows),
            self.width,
            self.palette,
            self.glyphs,
            lead,
            not continues,
            cut,
        )

    def _rows(self, node: "SyntaxTreeNode") -> list[list[list[Run]]]:
        rows: list[list[list[Run]]] = []
        for row in (row for section in node.children for row in section.children):
            tint = self.palette.strong if not rows else self.palette.text
            rows.append([self._inline(cell, tint) for cell in row.children])
        return rows

    def _inline(self, node: "SyntaxTreeNode", style: Style) -> list[Run]:
        runs: list[Run] = []
        for inline in node.children:
            self._walk(inline.children, style, runs)
        if runs and (task := _TASK.match(runs[0][0])) and node.parent:
            done = task[1] != " "
            sign = self.glyphs.checked if done else self.glyphs.unchecked
            tint = self.palette.good if done else self.palette.muted
            runs[0:1] = [(f"{sign} ", tint), (runs[0][0][task.end() :], runs[0][1])]
        return runs

    def _walk(self, nodes: Sequence["SyntaxTreeNode"], style: Style, runs: list[Run]) -> None:
        for node in nodes:
            match node.type:
                case "text":
                    runs += self._bare_links(node.content, style)
                case "softbreak" | "hardbreak":  # models break lines where they mean it
                    runs.append(("\n", style))
                case "code_inline":
                    runs.append((node.content, self.palette.code))
                case "math_inline":
                    runs.append((_readable(node.content), style))
                case "strong":
                    self._walk(node.children, style + Style(bold=True), runs)
                case "em":
                    self._walk(node.children, style + Style(italic=True), runs)
                case "s":
                    self._walk(node.children, style + Style(strike=True), runs)
                case "link":
                    self._link(node, runs)
                case "image":
                    alt = node.content or "image"
                    runs.append((f"[{alt}]", self.palette.muted))
                    self._target(str(node.attrs.get("src", "")), alt, runs)
                case "html_inline" if re.fullmatch(r"<br\s*/?>", node.content, re.IGNORECASE):
                    runs.append(("\n", style))
                case _:
                    runs.append((node.content, self.palette.muted))

    def _link(self, node: "SyntaxTreeNode", runs: list[Run]) -> None:
        target = str(node.attrs.get("href", ""))
        inner: list[Run] = []
        self._walk(node.children, self.palette.link, inner)
        text = "".join(run[0] for run in inner)
        link = Style(link=target) if _SAFE_LINK.fullmatch(target) else Style()
        runs += [(piece, style + link) for piece, style in inner]
        self._target(target, text, runs)

    def _target(self, target: str, text: str, runs: list[Run]) -> None:
        """Where a link leads, where its text does not say so: nobody clicks blindly."""
        if target and target.removeprefix("mailto:") != text:
            runs.append((f" ({target})", self.palette.muted))

    def _bare_links(self, text: str, style: Style) -> list[Run]:
        runs: list[Run] = []
        at = 0
        for url in _LINK.finditer(text):
            address = url.group().rstrip(".,:;!?")
            runs.append((text[at : url.start()], style))
            if address[0] in "[【［":
                cite = Style.from_meta({"@click": ("screen.cite", (address,))})
                runs.append((address, self.palette.link + cite))
                at = url.start() + len(address)
                continue
            link = Style(link=address) if _SAFE_LINK.fullmatch(address) else Style()
            runs.append((address, self.palette.link + link))
            at = url.start() + len(address)
        runs.append((text[at:], style))
        return [run for run in runs if run[0]]


def _length(run: Run) -> int:
    return len(run[0])


@lru_cache(maxsize=512)
def _readable(formula: str) -> str:
    from app.core.latex import readable  # its library is read when the first formula comes

    return readable(formula)


def _last_line(node: "SyntaxTreeNode") -> int | None:
    """The line after the node's last line that is not empty; a list item's map covers the empty
    lines after it, its last block's does not."""
    while node.children and node.type in ("bullet_list", "ordered_list", "list_item"):
        node = node.children[-1]
    return node.map[1] if node.map else None


def preload() -> None:
    """Import the parsers, which the first frame does without."""
    from app.tui.transcript.code import lexer_for

    parser()
    lexer_for("python")
