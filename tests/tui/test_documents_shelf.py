"""The shelf: beside the conversation where there is room, a page of its own elsewhere."""

from pathlib import Path

import pytest
from pilots import running, titles, told, until

from app.core.documents import Document, Progress, document_from_bytes
from app.tui.glyphs import UNICODE
from app.tui.screens.kept import KeptScreen
from app.tui.screens.preview import PreviewScreen
from app.tui.screens.shelf import ShelfScreen
from app.tui.shelf.rows import Row, progress_text
from app.tui.shelf.shelf import Shelf


def documents(*names: str) -> list[Document]:
    return [document_from_bytes(f"{name} says so".encode(), name) for name in names]


def shown(shelf: Shelf) -> list[str]:
    return [str(shelf.get_option_at_index(at).prompt) for at in range(shelf.option_count)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Row(documents("a.txt")[0]), ["cold"]),
        (
            Row(documents("a.txt")[0], 9000, 32_768, "warm", 1.0),
            ["9,000 tok", "warm", "27% of 32K"],
        ),
        (Row(documents("a.txt")[0], 4, 32_768, "warming", 0.43, 6.0), ["43%", "0:06 left"]),
    ],
)
def test_a_row_tells_state_tokens_and_share(row: Row, words: list[str]) -> None:
    told = f"{row.sign(UNICODE)} {row.size()} {row.state()} {row.of_context()}"
    assert all(word in told for word in words)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (None, "reading"),
        (Progress("reading", 12, 48), "reading 12 of 48 pages"),
        (Progress("recognising", 1, 1), "recognising 1 of 1 page"),
        (Progress("reading", 3, 9, "files"), "reading 3 of 9 files"),
        (Progress("fetching", 2_000_000, 0, "bytes"), "fetching 2 MB"),
    ],
)
def test_reading_says_how_far_it_is(progress: Progress | None, text: str) -> None:
    assert progress_text(progress) == text


async def test_a_wide_screen_keeps_the_shelf_open(home: Path) -> None:
    async with running((160, 40), documents=documents("a.txt", "合同.txt", "c.txt")) as (
        app,
        pilot,
        composer,
    ):
        shelf = app._chat._shelf
        await until(pilot, lambda: len(shown(shelf)) == 3, "the shelf")
        assert "合同.txt" in shown(shelf)[1]
        assert not app.screen.query("Chip"), "what is on the shelf needs no chip"
        await pilot.press("f4")
        assert app.focused is shelf
        await pilot.press("down", "shift+down")
        assert titles(app) == ["a.txt", "c.txt", "合同.txt"], "nothing of it is read yet"
        await pilot.press("delete")
        await until(pilot, lambda: len(shown(shelf)) == 2, "one less")
        assert titles(app) == ["a.txt", "c.txt"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen), "the preview")
        await pilot.press("escape", "f4")
        assert app.focused is composer
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: len(app.screen.query("Chip")) == 2, "chips")
        assert not app.screen.query_one("#side").display


async def test_what_the_engine_has_read_keeps_its_place(home: Path) -> None:
    from app.core.chat.conversation import Turn

    async with running((160, 40), documents=documents("a.txt", "b.txt")) as (app, pilot, _):
        shelf = app._chat._shelf
        await until(pilot, lambda: len(shown(shelf)) == 2, "the shelf")
        app.conversation.turns.append(Turn("user", "who?"))
        await pilot.press("f4", "shift+down")
        assert titles(app) == ["a.txt", "b.txt"]
        await until(pilot, lambda: "in this order" in told(app), "the reason")


async def test_a_document_of_an_earlier_session_is_taken_from_a_page_of_its_own(
    home: Path,
) -> None:
    async with running(documents=documents("lease.txt", "notes.txt")) as (app, pilot, _):
        context = app._chat.desk.context
        await until(pilot, lambda: context.store and len(context.store.entries()) == 2, "kept")
    async with running() as (app, pilot, _):
        await until(pilot, lambda: app._chat.desk.context.store, "the store")
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ShelfScreen), "the shelf")
        await pilot.press("escape")
        app._chat.desk.add_kept()
        await until(pilot, lambda: isinstance(app.screen, KeptScreen), "the kept ones")
        await pilot.press(*"LEA")
        await pilot.press("enter")
        await until(pilot, lambda: titles(app) == ["lease.txt"], "the document")
        assert app.conversation.documents[0].text == "lease.txt says so"
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ShelfScreen), "the shelf")
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, KeptScreen), "the kept ones")
        await pilot.press("ctrl+d")
        store = app._chat.desk.context.store
        assert store is not None
        await until(pilot, lambda: [e.title for e in store.entries()] == ["lease.txt"], "one less")
