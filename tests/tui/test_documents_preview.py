"""The preview: what the model sees, found, gone to, and harmless, at any length."""

from dataclasses import replace
from pathlib import Path

import pytest
from pilots import drawn, running, told, until
from rich.segment import Segment
from textual.pilot import Pilot
from textual.widgets import Input, Static

from app.core.documents import Document, document_from_bytes
from app.tui.app import LingChat
from app.tui.composer.chips import Chip
from app.tui.screens.preview import PreviewScreen
from app.tui.shelf.pieces import Folded, Pieces, Text
from app.tui.transcript.stack import Look

PAGE = "The tenant pays 租金 on the first of the month, and keeps the place in order.\n" * 30


def book(pages: int) -> Document:
    texts = [f"Chapter {number}\n{PAGE}" for number in range(1, pages + 1)]
    starts = [sum(map(len, texts[:at])) for at in range(pages)]
    text = "".join(texts)
    return Document("lease.pdf", text, "", "0" * 64, len(text), "pdf", tuple(starts), "A note.")


async def opened(pilot: Pilot[None], app: LingChat, document: Document) -> PreviewScreen:
    screen = PreviewScreen(document, app.glyphs)
    await app.push_screen(screen)
    await until(pilot, lambda: screen._view.text.starts, "the text")
    return screen


def head(screen: PreviewScreen) -> str:
    return str(screen.query_one("#head", Static).render())


async def test_enter_on_a_chip_shows_what_the_model_sees(home: Path) -> None:
    document = document_from_bytes(
        "alpha\x1b[31m\x1b]0;title\x07 beta\x9b2J\n".encode(), "a\x1b[2J.txt"
    )
    async with running(documents=[document]) as (app, pilot, _):
        await until(pilot, lambda: app.screen.query(Chip), "a chip")
        app.screen.query_one(Chip).focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen), "the preview")
        screen = app.screen
        assert isinstance(screen, PreviewScreen)
        await until(pilot, lambda: drawn(screen._view)[0], "the text")
        assert drawn(screen._view)[:3] == ['<document title="a.txt">', "alpha beta", "</document>"]
        assert "\x1b" not in head(screen)
        await pilot.press("escape")
        assert app.screen is app._chat


async def test_one_goes_to_pages_and_sees_which_one_it_is(home: Path) -> None:
    async with running((100, 30)) as (app, pilot, _):
        screen = await opened(pilot, app, book(40))
        assert "40 pages" in head(screen)
        assert "A note." in head(screen)
        await pilot.press("g", *"17", "enter")
        assert drawn(screen._view)[:2] == ["[p.17]", "Chapter 17"]
        assert "p.17" in head(screen)
        await pilot.press("pageup")
        assert "p.16" in head(screen)
        await pilot.press("end")
        assert "</document>" in drawn(screen._view)
        await pilot.press("home")
        assert drawn(screen._view)[0].startswith("<document")
        await pilot.press("g", *"99", "enter")
        assert "no such place" in told(app)


async def test_the_head_names_the_page_that_was_pointed_at(home: Path) -> None:
    document = book(5)
    async with running() as (app, pilot, _):
        screen = PreviewScreen(document, app.glyphs, document.pages[3])
        await app.push_screen(screen)
        await until(pilot, lambda: "p.4" in head(screen), "the page of the place")
        assert any("Chapter 4" in row for row in drawn(screen._view))
        assert "Chapter 4" not in drawn(screen._view)[0]
        await pilot.press("end")
        await until(pilot, lambda: "p.5" in head(screen), "the page in view")
        texts = "".join(f"Page {number}\n" for number in range(1, 4))
        short = replace(book(1), text=texts, pages=(0, 7, 14))
        screen = await opened(pilot, app, short)
        await pilot.press("g", "3", "enter")
        await until(pilot, lambda: "p.3" in head(screen), "a page that is no first row")


async def test_without_pages_one_goes_to_lines(home: Path) -> None:
    lines = "\n".join(f"this is line {number} of the text, not short" for number in range(1, 400))
    async with running((100, 30)) as (app, pilot, _):
        screen = await opened(pilot, app, document_from_bytes(lines.encode(), "a.txt"))
        await pilot.press("g", *"250", "enter")
        assert drawn(screen._view)[0] == "this is line 250 of the text, not short"
        assert head(screen).endswith("l.250"), "the line itself, not that of the mark above"
        await pilot.press("home")
        await until(pilot, lambda: head(screen).endswith("l.1"), "the first line")
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: head(screen).endswith("l.3"), "the third line")


async def test_searching_finds_as_one_types_and_goes_round(home: Path) -> None:
    async with running((100, 30)) as (app, pilot, _):
        screen = await opened(pilot, app, book(30))
        await pilot.press("slash", *"CHAPTER 12")
        assert "Chapter 12" in drawn(screen._view)
        count = screen.query_one("#count", Static)
        await until(pilot, lambda: str(count.render()) == "1 of 1", "the count")
        await pilot.press("enter", "slash", *"chapter 2", "enter")
        await until(pilot, lambda: "of 11" in str(count.render()), "chapters 2 and 20 to 29")
        first = screen._view.found.at
        await pilot.press("n")
        assert screen._view.found.at > first
        await pilot.press("N")
        assert screen._view.found.at == first
        for _ in range(11):
            await pilot.press("n")
        assert screen._view.found.at == first, "around the end"
        await pilot.press("slash", *"nowhere")
        await until(pilot, lambda: str(count.render()) == "not found", "the count")
        await pilot.press("escape")
        assert not screen.query_one("#line").display or not screen.query_one(Input).has_focus
        assert app.screen is screen


async def test_a_paste_is_read_from_its_token(home: Path) -> None:
    from textual import events

    async with running() as (app, pilot, composer):
        composer.post_message(events.Paste("secret\n" * 2000))
        await pilot.pause()
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen), "the preview")
        screen = app.screen
        assert isinstance(screen, PreviewScreen)
        await until(pilot, lambda: drawn(screen._view)[1:2] == ["secret"], "the paste")


@pytest.mark.parametrize("width", [20, 80])
def test_every_row_says_where_it_begins(width: int) -> None:
    text = Text.of(book(3).text + "x" * 9000 + "\n\n" + "词" * 9000)
    pieces = Pieces(text)
    look = Look(width=width)
    for offset in range(0, len(text.text), 97):
        row = pieces.row_of(offset, look)
        begin = pieces.offset_at(row)
        assert begin <= offset
        line = pieces.stack.line(row)
        assert line is not None
        assert text.text[begin : begin + 5].startswith(line.text[:5].rstrip()[:5])


def test_pieces_hold_the_whole_text() -> None:
    text = Text.of("a\n" * 10_000 + "b" * 50_000)
    ranges = [text.piece(index) for index in range(len(text.starts))]
    assert "".join(text.text[start:end] for start, end in ranges) == text.text
    assert max(end - start for start, end in ranges) <= 4096


def test_only_what_is_in_view_is_wrapped() -> None:
    text = Text.of("The quick brown fox.\n" * 100_000)
    pieces = Pieces(text)
    look = Look(width=80)
    pieces.stack.paint(0, 40, look, 0)
    pieces.row_of(1_000_000, look)
    painted = [block for block in pieces.stack.blocks if block.lines]
    assert len(painted) <= 3
    assert all(isinstance(s, Segment) for s in painted[0].lines[0].segments)


def test_folding_keeps_every_character_in_its_place() -> None:
    text = "İstanbul ΑΣ ẞ 词" * 3
    assert len(Folded.of(text)) == len(text)
