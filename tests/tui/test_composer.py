"""Typing, recalling, pasting, attaching: the box and its chips, without a running engine."""

from pathlib import Path

import pytest
from pilots import running
from textual import events
from textual.command import CommandList, CommandPalette
from textual.widgets import TextArea
from textual.widgets.option_list import Option

from app.core.documents import document_from_bytes
from app.tui.base import Palette
from app.tui.composer.chips import Chip
from app.tui.screens.attach import AttachScreen


async def test_the_box_has_the_focus_and_says_what_it_is_for(home: Path) -> None:
    async with running() as (app, _, composer):
        assert app.focused is composer
        assert composer.placeholder == "Ask anything"


async def test_ctrl_j_breaks_the_line_and_enter_sends_it_whole(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press("a", "ctrl+j", "b")
        assert composer.text == "a\nb"
        await pilot.press("enter")
        assert composer.text == ""
        assert app._chat.transcript.entries[0].text == "a\nb"


async def test_blank_text_is_not_sent(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press("space", "ctrl+j", "enter")
        assert app._chat.transcript.entries == []
        assert composer.text == " \n"


async def test_up_recalls_and_down_comes_back_to_the_draft(home: Path) -> None:
    async with running() as (_, pilot, composer):
        await pilot.press(*"one", "enter", *"two", "enter", *"draft")
        await pilot.press("up")
        assert composer.text == "two"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("up")
        assert composer.text == "one", "there is nothing before the first"
        await pilot.press("down", "down")
        assert composer.text == "draft"


async def test_up_moves_within_several_lines_before_it_recalls(home: Path) -> None:
    async with running() as (_, pilot, composer):
        await pilot.press(*"old", "enter", "x", "ctrl+j", "y")
        await pilot.press("up")
        assert composer.text == "x\ny"
        assert composer.cursor_location[0] == 0
        await pilot.press("up")
        assert composer.text == "old"


async def test_the_box_grows_to_a_third_of_the_screen(home: Path) -> None:
    async with running((80, 30)) as (_, pilot, composer):
        assert composer.region.height == 3
        for _ in range(4):
            await pilot.press("ctrl+j")
        await pilot.pause()
        assert composer.region.height == 7
        for _ in range(20):
            await pilot.press("ctrl+j")
        await pilot.pause()
        assert 8 <= composer.region.height <= 10


async def test_a_small_paste_is_text_without_commands_to_the_terminal(home: Path) -> None:
    async with running() as (_, pilot, composer):
        composer.post_message(events.Paste("a\r\nb\x1b[31mc\x07"))
        await pilot.pause()
        assert composer.text == "a\nbc"


async def test_a_document_can_be_removed(home: Path) -> None:
    document = document_from_bytes(b"x" * 41_000, "a.txt")
    async with running(documents=[document]) as (app, pilot, composer):
        await pilot.pause()
        chip = app.screen.query_one(Chip)
        assert "a.txt" in str(chip.render())
        assert "41 kB" in str(chip.render())
        chip.focus()
        await pilot.press("delete")
        await pilot.pause()
        assert app.conversation.documents == []
        assert not app.screen.query(Chip)
        assert app.focused is composer


async def test_documents_of_the_command_line_are_chips_from_the_start(home: Path) -> None:
    documents = [document_from_bytes(name.encode(), name) for name in ("a.txt", "b\x1b[31m.txt")]
    async with running(documents=documents) as (app, pilot, _):
        await pilot.pause()
        titles = [str(chip.render()) for chip in app.screen.query(Chip)]
        assert [title.split()[1] for title in titles] == ["a.txt", "b.txt"]


@pytest.mark.parametrize("size", [(20, 5), (10, 3), (1, 1), (40, 10), (99, 30), (250, 70)])
async def test_no_size_of_terminal_breaks_the_app(home: Path, size: tuple[int, int]) -> None:
    async with running(size) as (app, pilot, composer):
        await pilot.press(*"hi", "enter")
        await pilot.press("f1", "escape", "f2", "escape")
        await pilot.resize_terminal(200, 50)
        await pilot.resize_terminal(*size)
        await pilot.press("x")
        assert composer.text == "x"
        assert app.is_running


async def test_at_twenty_by_five_one_can_still_type_and_read(home: Path) -> None:
    async with running((20, 5)) as (app, pilot, composer):
        await pilot.press(*"hello", "enter", *"again")
        await pilot.pause()
        assert composer.region.height >= 1
        assert app._chat.transcript.region.height >= 2
        assert composer.region.bottom <= 5


async def test_every_key_that_deletes_does_what_it_does_in_any_text_area(home: Path) -> None:
    bindings = [each for each in TextArea.BINDINGS if each.action.startswith("delete")]
    keys = [key for each in bindings for key in each.key.split(",")]
    assert {"ctrl+k", "ctrl+u", "ctrl+shift+k"} <= set(keys)
    async with running() as (_, pilot, composer):
        plain = TextArea()
        await pilot.app.screen.mount(plain)
        for text in ("", "one\n\n"):
            found = []
            for area in (composer, plain):
                area.focus()
                for key in keys:
                    area.load_text(text)
                    area.move_cursor(area.document.end)
                    await pilot.press(key)
                    found.append((key, area.text, area.cursor_location))
            assert found[: len(keys)] == found[len(keys) :]


async def test_undoing_what_needed_a_scroll_bar_leaves_the_box_as_it_was(home: Path) -> None:
    async with running() as (_, pilot, composer):
        composer.put("\n".join(f"line {number}" for number in range(30)))
        await pilot.pause()
        assert composer.show_vertical_scrollbar
        await pilot.press("ctrl+z")
        assert (composer.text, composer.cursor_location) == ("", (0, 0))
        await pilot.press("a", "ctrl+z", "b")
        assert composer.text == "b"


async def test_a_screen_that_was_left_while_it_looks_for_files_ends_nothing(home: Path) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("ctrl+o")
        screen = app.screen
        assert isinstance(screen, AttachScreen)
        await pilot.press("escape")
        await screen._fill("x")  # what was looked for in a slow folder is found now


async def test_a_page_key_in_a_palette_that_is_not_drawn_yet_ends_nothing(home: Path) -> None:
    async with running() as (app, _, _):
        palette = Palette()
        await app.push_screen(palette)
        commands = palette.query_one(CommandList)
        commands.add_option(Option("Quit"))
        commands.action_first()
        with pytest.raises(KeyError):
            CommandPalette._action_command_list(palette, "page_up")
        palette._action_command_list("page_up")


async def test_the_lowest_screen_stays(home: Path) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press("ctrl+b")
        app.pop_screen()
        app.pop_screen()
        await pilot.press("a")
        assert app.screen is app.chat
        assert composer.text == "a"


async def test_a_document_is_dropped_once_however_often_it_is_asked(home: Path) -> None:
    async with running() as (app, _pilot, _):
        document = document_from_bytes(b"one", "x.txt")
        app.conversation.attach(document)
        app.chat.desk.drop(document)
        app.chat.desk.drop(document)
        app.chat.desk.shift(document, 1)
        assert not app.conversation.documents
