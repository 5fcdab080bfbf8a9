"""Formulas, money, tables in pieces, emphasis beside Chinese, and text from right to left."""

import pytest
from rich.segment import Segment
from textual.strip import Strip

from app.core.latex import readable
from app.tui.glyphs import UNICODE
from app.tui.palette import unstyled
from app.tui.transcript.entries import Reply
from app.tui.transcript.lines import isolated
from app.tui.transcript.paint import Painter
from app.tui.transcript.split import Part, Splitter
from app.tui.transcript.stack import Look


def draw(text: str, width: int = 60) -> list[str]:
    splitter = Splitter()
    parts = splitter.feed(text) + splitter.finish()
    painter = Painter(width, unstyled(), UNICODE)
    lines = [line for part in parts for line in painter.part(part)]
    return [line.text.rstrip() for line in lines if line.text.strip()]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{a+b}{c}", "(a+b)/c"),
        (r"\frac{1}{2\pi}", "1/(2π)"),
        (r"x^{10}+y_i^2", "x¹⁰+yᵢ²"),
        (r"e^{-x^2}", "e^(-x²)"),
        (r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}", "∑ᵢ₌₁ⁿ i = n(n+1)/2"),
        (r"\sqrt[3]{x+1} \leq \sqrt{2}", "∛(x+1) ≤ √2"),
        (r"\begin{aligned}a&=b\\c&=d\end{aligned}", "a = b\nc = d"),
        (r"\{x \mid x > 0\}", "{x | x > 0}"),
        ("50%", "50%"),
        (r"\binom{n}{k}", "C(n, k)"),
        (r"\unknownmacro{x}", r"\unknownmacro x"),
        (r"\frac{1", r"\frac{1"),
        ("{" * 3000, "{" * 3000),
    ],
)
def test_latex_becomes_text_that_keeps_its_meaning(latex: str, text: str) -> None:
    assert readable(latex) == text


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("so $x_i^2$ and \\(y\\) and $$z$$ are", "so xᵢ² and y and z are"),
        ("from $5 to $6, or US$7 and 8$", "from $5 to $6, or US$7 and 8$"),
        ("it costs $5 for one and 6$ for all", "it costs $5 for one and 6$ for all"),
        ("$PATH:$HOME and `$x$`", "$PATH:$HOME and $x$"),
        ("设$x^2$为", "设x²为"),
        ("a \\$ b \\$ c", "a $ b $ c"),
        ("half $x^2", "half $x^2"),
    ],
)
def test_formulas_are_told_from_money_and_variables(text: str, row: str) -> None:
    assert draw(text) == [row]


def test_a_formula_of_its_own_keeps_what_looks_like_markdown() -> None:
    assert draw("Then:\n$$\na\n+ b_1\n= \\frac{c}{d}\n$$\nand\n\\[ x*y*z \\]") == [
        "Then:",
        "  a + b₁ = c/d",
        "and",
        "  x*y*z",
    ]


def test_a_formula_that_never_ends_stays_as_it_was_written() -> None:
    assert draw("$$\nx_1\n\nafter") == ["$$", "x_1", "after"]


def test_emphasis_works_beside_chinese_punctuation() -> None:
    painter = Painter(60, unstyled(), UNICODE)
    for text in ("**重点：**后面", "前面**“引用”**后面", "**重点：**Euler"):
        assert "*" not in painter.part(Part(text))[-1].text


def rows_of(reply: Reply, width: int = 60) -> list[str]:
    reply.refresh()
    look = Look(width)
    return [line.text.rstrip() for block in reply.blocks for line in block.painted(look)]


def test_the_pieces_of_a_long_table_share_their_columns_while_it_streams() -> None:
    rows = [f"| {n} | {'w' * (1 + n // 8)} |" for n in range(200)]
    reply = Reply()
    look = Look(60)
    reply.feed("| n | text |\n|---|---|\n")
    for row in rows:
        reply.feed(row + "\n")
        reply.refresh()
        drawn = [line.text for block in reply.blocks for line in block.painted(look)]
        assert len({text.index("│") for text in drawn if "│" in text}) == 1
    assert len(reply._answer.settled) > 1
    reply.finish()
    drawn = [row for row in rows_of(reply) if "│" in row]
    assert len(drawn) == 201
    assert drawn[-1] == f"  199 │ {'w' * 25}"


def test_the_rest_of_a_cut_row_stays_in_its_column() -> None:
    text = "| a | b | c |\n|---|---|---|\n| 1 | " + "long " * 2_000 + "| end |\n"
    reply = Reply()
    reply.feed(text)
    reply.finish()
    ends = [row for row in rows_of(reply) if "end" in row]
    assert len(ends) == 1
    assert ends[0].split("│")[2].strip() == "end"
    words = " ".join(row.split("│")[1] for row in rows_of(reply) if row.count("│") == 2)
    assert words.split().count("long") == 2_000


def test_a_table_with_more_columns_than_fit_becomes_a_list_under_its_names() -> None:
    head = "|" + "|".join(f"col{n}" for n in range(20)) + "|"
    text = f"{head}\n{'|---' * 20}|\n|{'|'.join(str(n) for n in range(20))}|\n"
    assert draw(text, 40)[:2] == ["col0: 0", "col1: 1"]


def test_text_from_right_to_left_leaves_what_stands_beside_it_in_its_place() -> None:
    strip = isolated(Strip([Segment("שלום"), Segment(" │ 53")], 9))
    assert strip.text == "שלום\u200e │ 53"
    assert strip.cell_length == 9
    plain = Strip([Segment("中文 and text")])
    assert isolated(plain) is plain
