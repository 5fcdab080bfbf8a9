"""A long paste is a token at its place in the sentence, and a document once it is sent."""

from pathlib import Path

import pytest
from pilots import running
from textual import events
from textual.pilot import Pilot

from app.core.chat.prompt import document_prompt
from app.core.documents import Document
from app.tui.composer.composer import Composer
from app.tui.composer.pastes import LARGE_PASTE
from app.tui.driver import PasteParser

LONG = "line\n" * LARGE_PASTE
TOKEN = f"[pasted: {LARGE_PASTE:,} lines #1]"
START, END = "\x1b[200~", "\x1b[201~"


@pytest.mark.parametrize("size", [3, 5, 6, 7, 8, 11, 4095])
def test_the_parser_takes_pastes_whole_and_keys_around_them(size: int) -> None:
    first = "eins\r\x00zwei 你好 \x1b[31m[201~ " * 3
    data = f"{START}{first}{END}ab{START}x{END}\x1b[A"
    parser = PasteParser()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [event for piece in pieces for event in parser.feed(piece)]
    assert [event.text for event in found if isinstance(event, events.Paste)] == [
        first.replace("\x00", ""),
        "x",
    ]
    assert [event.key for event in found if isinstance(event, events.Key)] == ["a", "b", "up"]


async def paste(pilot: Pilot[None], composer: Composer, text: str) -> None:
    composer.post_message(events.Paste(text))
    await pilot.pause()


async def test_a_long_paste_stands_in_the_sentence_and_is_sent_as_a_document(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press(*"see ")
        await paste(pilot, composer, LONG.replace("\n", "\r"))
        await pilot.press(*" ok")
        assert composer.text == f"see {TOKEN} ok"
        assert app.conversation.documents == [], "what is not sent is not attached"
        await pilot.press("enter")
        await pilot.pause()
        (document,) = app.conversation.documents
        assert document.text == LONG
        assert app._chat.transcript.entries[0].text == f"see {TOKEN} ok"
        assert document_prompt(document).startswith(f'<document title="{TOKEN[1:-1]}">')


async def test_the_token_is_drawn_apart_from_the_text(home: Path) -> None:
    async with running() as (_, pilot, composer):
        await pilot.press(*"see [pasted: 3 lines #9] ")
        await paste(pilot, composer, LONG)
        spans = {
            segment.style.color
            for segment in composer.render_line(0)
            if segment.style and segment.text.strip()
        }
        assert len(spans) >= 2, "and a token of no paste is only text"
        assert len(composer.get_line(0).spans) == 1


@pytest.mark.parametrize(
    "keys",
    [
        ["backspace"],
        ["left", "delete"],
        ["ctrl+w"],
        ["left", "right", "backspace"],
        ["shift+left", "x", "backspace"],
    ],
)
async def test_a_token_goes_as_one_piece_and_comes_back(home: Path, keys: list[str]) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press(*"a ")
        await paste(pilot, composer, LONG)
        await pilot.press(*keys)
        assert composer.text == "a "
        for _ in range(3):
            await pilot.press("ctrl+z")
        await pilot.press("ctrl+shift+z")
        await pilot.press("enter")
        await pilot.pause()
        sent = app._chat.transcript.entries[0].text
        assert len(app.conversation.documents) == (TOKEN in sent)


async def test_typing_inside_a_token_goes_behind_it(home: Path) -> None:
    async with running() as (_, pilot, composer):
        await paste(pilot, composer, LONG)
        composer.move_cursor((0, 5))
        await pilot.press("x")
        assert composer.text == f"{TOKEN}x"


async def test_tokens_are_found_again_when_a_message_is_recalled(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await paste(pilot, composer, LONG)
        await paste(pilot, composer, LONG + "more")
        await paste(pilot, composer, LONG)
        second = TOKEN.replace("8,192", "8,193").replace("#1", "#2")
        assert composer.text == TOKEN + second + TOKEN, "the same text is the same paste"
        await pilot.press("enter", *"x", "up")
        assert composer.text == TOKEN + second + TOKEN
        await pilot.press("backspace", "backspace")
        assert composer.text == TOKEN
        await pilot.press("enter")
        await pilot.pause()
        assert len(app.conversation.documents) == 2


async def test_pastes_of_an_earlier_session_are_known_and_their_numbers_taken(home: Path) -> None:
    old = Document("pasted: 2 lines #7", "a\nb", "utf-8", "0" * 64, 3)
    async with running(documents=[old]) as (app, pilot, composer):
        await paste(pilot, composer, LONG)
        assert composer.text.endswith("#8]")
        await pilot.press("ctrl+u", *"[pasted: 2 lines #7] again")
        assert [token.number for token in composer.pastes.tokens(composer.text)] == [7]
        assert await composer.pastes.documents(composer.text) == [old]
        assert app.conversation.documents == [old]


async def test_what_cannot_be_stored_is_replaced(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await paste(pilot, composer, "\ud800" + LONG)
        await pilot.press("enter")
        await pilot.pause()
        app.conversation.documents[0].text.encode()


async def test_a_message_taken_back_takes_its_pastes_along(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await paste(pilot, composer, LONG)
        await pilot.press("enter")
        await pilot.pause()
        assert len(app.conversation.documents) == 1
        await pilot.press("escape")
        await pilot.pause()
        assert composer.text == TOKEN
        assert app.conversation.documents == []
