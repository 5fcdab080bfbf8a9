"""What the transcript draws of a text: the same however it arrives, within its width, harmless."""

import random
import re

import pytest
from corpus import CORPUS, random_text
from rich.cells import cell_len

from app.tui.glyphs import UNICODE
from app.tui.palette import unstyled
from app.tui.transcript.entries import Reply
from app.tui.transcript.lines import copy_text, wrap
from app.tui.transcript.paint import Painter
from app.tui.transcript.split import LONGEST, Part, Splitter
from app.tui.transcript.stack import Look

CHOSEN = pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS.keys())


def parts_of(text: str, sizes: list[int]) -> list[Part]:
    splitter = Splitter()
    parts: list[Part] = []
    at = 0
    for size in sizes:
        parts += splitter.feed(text[at : at + size])
        at += size
    parts += splitter.feed(text[at:])
    return parts + splitter.finish()


def rows(reply: Reply, look: Look) -> list[str]:
    reply.refresh()
    return [line.text for block in reply.blocks for line in block.painted(look)]


def shown(reply: Reply, look: Look) -> list[str]:
    return [row.rstrip() for row in rows(reply, look)]


def reply_of(text: str, step: int | None = None) -> Reply:
    reply = Reply()
    for at in range(0, len(text), step or max(1, len(text))):
        reply.feed(text[at : at + step] if step else text)
        if step:
            reply.refresh()
    reply.finish()
    return reply


@CHOSEN
def test_a_text_that_arrives_letter_by_letter_is_cut_as_one_that_arrives_at_once(text: str) -> None:
    if len(text) > 4_000:
        sizes = [random.Random(len(text)).randint(1, 40) for _ in range(len(text) // 20)]
    else:
        sizes = [1] * len(text)
    assert parts_of(text, sizes) == parts_of(text, [])


@pytest.mark.parametrize("seed", range(60))
def test_random_markdown_is_cut_the_same_in_any_pieces(seed: int) -> None:
    text = random_text(seed)
    assert parts_of(text, [1] * len(text)) == parts_of(text, [])


@CHOSEN
@pytest.mark.parametrize("width", [20, 80])
def test_streamed_rows_equal_those_of_the_whole_text(text: str, width: int) -> None:
    look = Look(width)
    streamed = rows(reply_of(text, step=37), look)
    assert streamed == rows(reply_of(text), look)


@CHOSEN
@pytest.mark.parametrize("width", [12, 40, 100])
def test_no_row_is_wider_than_the_view(text: str, width: int) -> None:
    for row in rows(reply_of(text), Look(width)):
        assert cell_len(row) <= width, row


@CHOSEN
def test_nothing_that_a_terminal_would_obey_is_drawn(text: str) -> None:
    drawn = "".join(rows(reply_of(text, step=3), Look(60)))
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", drawn)
    drawn.encode("utf-8")


def test_escape_sequences_cut_in_two_are_still_removed() -> None:
    reply = Reply()
    for piece in ("safe \x1b", "[3", "1mred\x1b]52;c;", "ZXZpbA==\x07 end"):
        reply.feed(piece)
    reply.finish()
    assert shown(reply, Look(60)) == ["", "  safe red end"]


def test_the_live_rest_stays_small_whatever_comes() -> None:
    for text in CORPUS.values():
        splitter = Splitter()
        longest = 0
        for at in range(0, len(text), 50):
            splitter.feed(text[at : at + 50])
            longest = max(longest, sum(len(part.source) for part in splitter.live()))
        assert longest <= 2 * LONGEST


def test_a_settled_block_is_painted_once_per_width() -> None:
    reply = Reply()
    reply.feed("first\n\nsecond\n\nthird")
    look = Look(60)
    rows(reply, look)
    first = reply.blocks[0]
    drawn = first.lines
    reply.feed(" more\n\nfourth")
    rows(reply, look)
    assert reply.blocks[0] is first
    assert first.lines is drawn
    rows(reply, Look(30))
    assert first.lines is not drawn


def draw(text: str, width: int = 40) -> list[str]:
    painter = Painter(width, unstyled(), UNICODE)
    return [
        line.text.rstrip()
        for part in parts_of(text, [])
        for line in painter.part(part)
        if line.text.strip()
    ]


def test_lists_are_numbered_on_across_settled_items() -> None:
    assert draw("7. a\n1. b\n1. c") == ["7. a", "8. b", "9. c"]


def test_nested_lists_are_indented_under_their_item() -> None:
    assert draw("- a\n  - b\n    1. c\n- d") == ["• a", "  • b", "    1. c", "• d"]


def test_tasks_show_boxes() -> None:
    assert draw("- [x] done\n- [ ] open") == ["• ☑ done", "• ☐ open"]


def test_a_table_is_aligned_by_cells_not_by_characters() -> None:
    assert draw("| a | n |\n|---|--:|\n| 中文 | 1 |\n| x | 1000 |") == [
        "a    │    n",
        "─────┼─────",
        "中文 │    1",
        "x    │ 1000",
    ]


def test_a_table_wider_than_the_view_wraps_its_cells() -> None:
    drawn = draw("| a | b |\n|---|---|\n| one two three four | five six seven eight |", 24)
    assert max(map(len, drawn)) <= 24
    assert "three" in " ".join(drawn)
    assert "eight" in " ".join(drawn)


def test_a_link_shows_where_it_leads() -> None:
    assert draw("[click](https://example.org/x)") == ["click (https://example.org/x)"]
    assert draw("https://example.org/x.") == ["https://example.org/x."]


def test_only_web_and_mail_links_become_terminal_links() -> None:
    painter = Painter(80, unstyled(), UNICODE)

    def targets(text: str) -> list[str]:
        lines = painter.part(Part(text))
        segments = [segment for line in lines for segment in line.segments]
        return [s.style.link for s in segments if s.style is not None and s.style.link]

    assert targets("[a](https://e.org) https://f.org") == ["https://e.org", "https://f.org"]
    assert targets("[a](file:///etc/passwd) [b](javascript:x) [c](vscode://x)") == []


def test_a_link_defined_later_is_found_when_the_reply_is_complete() -> None:
    drawn = shown(reply_of("See [it][r].\n\n[r]: https://e.org\n", step=4), Look(60))
    assert drawn == ["", "  See it (https://e.org)."]


def test_chinese_breaks_anywhere_but_before_closing_marks() -> None:
    lines = wrap([("一二三四五，六七八九十。", unstyled().text)], 10)
    assert [line.text for line in lines] == ["一二三四", "五，六七八", "九十。"]


def test_copying_wrapped_text_gives_back_what_was_written() -> None:
    text = "A paragraph of some words that is wrapped, 然后是没有空格的中文也要换行。"
    reply = reply_of(text)
    reply.refresh()
    lines = [line for block in reply.blocks for line in block.painted(Look(24))]
    assert len(lines) > 4
    assert copy_text(lines, None, None).strip() == text


def test_copying_code_gives_back_its_indents_and_long_lines() -> None:
    code = "def f():\n    return " + "x + " * 30 + "1\n\ny = 2"
    reply = reply_of(f"```python\n{code}\n```")
    reply.refresh()
    lines = [line for block in reply.blocks for line in block.painted(Look(40))]
    assert copy_text(lines, None, None).strip("\n") == code


def test_thinking_is_one_row_until_it_is_opened() -> None:
    now = [0.0]
    reply = Reply(now=lambda: now[0])
    reply.feed_thinking("first I think\n\nthen again")
    now[0] = 3.0
    assert shown(reply, Look(60))[:2] == ["", "  ▸ thinking for 3.0 s"]
    now[0] = 41.0
    reply.feed("The answer.")
    reply.thinking_tokens = 1902
    reply.finish()
    assert shown(reply, Look(60)) == [
        "",
        "  ▸ thought for 41 s · 1,902 tok",
        "",
        "  The answer.",
    ]
    reply.toggle_thinking()
    opened = shown(reply, Look(60))
    assert "  first I think" in opened
    assert opened.index("  first I think") < opened.index("  The answer.")


def test_a_broken_reply_keeps_what_arrived_and_says_why_and_what_helps() -> None:
    reply = Reply()
    reply.feed("Half an ans")
    reply.finish(reason="The connection was lost.", cure="Ctrl+R asks again.")
    drawn = shown(reply, Look(80))
    assert "  Half an ans" in drawn
    assert "  ! The connection was lost. Ctrl+R asks again." in drawn
