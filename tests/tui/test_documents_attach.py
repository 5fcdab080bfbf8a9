"""Getting documents in: /attach, @path, the dialog, folders; and what goes wrong, in a sentence."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from pilots import running, titles, told, until
from textual import events
from textual.widgets import Input

from app.tui.composer.chips import Chip, ReadingChip
from app.tui.composer.offers import (
    Wanted,
    below,
    dropped,
    fitting,
    inside,
    mention,
    mentions,
    wanted,
)
from app.tui.screens.attach import AttachScreen, FolderScreen


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which one stands, with a file that git ignores."""
    root = tmp_path / "project"
    (root / "docs" / "old").mkdir(parents=True)
    (root / "docs" / "lease agreement.txt").write_text("rent " * 40)
    (root / "docs" / "old" / "notes.md").write_text("# Notes\n")
    (root / "租金.txt").write_text("第一条 租金\n")
    (root / "secret.log").write_text("x")
    (root / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("/", Wanted("command", "", 0)),
        ("/at", Wanted("command", "at", 0)),
        ("/attach do", Wanted("path", "do", 8)),
        ("/new x", None),
        ("/etc/hosts", None),
        ("see @do", Wanted("mention", "do", 4)),
        ('see @"lease a', Wanted("mention", "lease a", 4)),
        ("me@example", None),
        ("plain", None),
    ],
)
def test_what_is_being_typed(before: str, expected: Wanted | None) -> None:
    assert wanted(before, is_first_row=True) == expected
    if expected is None or expected.kind != "mention":
        assert wanted(before, is_first_row=False) is None, "commands stand in the first row"


def test_a_path_with_spaces_can_be_mentioned_and_is_found_again() -> None:
    text = f"compare {mention('a b.txt')} and {mention('c.txt')}, mail me@x.org"
    assert text.startswith('compare @"a b.txt" and @c.txt')
    assert mentions(text) == ["a b.txt", "c.txt"]


def test_the_likeliest_path_comes_first() -> None:
    paths = ["src/table/lease_old.py", "docs/lease.txt", "l/e/a/s/e.txt", "docs/", "other.txt"]
    assert fitting("lease", paths)[:2] == ["docs/lease.txt", "src/table/lease_old.py"]
    assert fitting("lease", paths)[2:] == ["l/e/a/s/e.txt"]
    assert fitting("docs", paths)[0] == "docs/"


def test_a_folder_lists_folders_first_and_hidden_names_only_when_asked(tmp_path: Path) -> None:
    root = tmp_path / "x"
    (root / "b").mkdir(parents=True)
    for name in ("a.txt", ".hidden", "C.txt", "c\nommand.txt", "c\x1b[31m.txt"):
        (root / name).touch()
    assert inside(f"{root}/") == [f"{root}/b/", f"{root}/a.txt", f"{root}/C.txt"]
    assert inside(f"{root}/c") == [f"{root}/C.txt"]
    assert inside(f"{root}/.h") == [f"{root}/.hidden"]
    assert inside(f"{root}/none/") == []
    assert sorted(below(root)) == ["C.txt", "a.txt"]


def test_every_name_that_can_be_typed_is_offered_and_no_other(tmp_path: Path) -> None:
    good = ["报告　终稿.pdf", "Screen 9.41\u202fAM.png", "a\u00a0b.txt", "mi\u200crooz\u200d.txt"]
    for name in (*good, "a\u2028b", "a\x85b", "a\u202eb", "a\nb"):
        (tmp_path / name).touch()
    with open(bytes(tmp_path) + b"/a\xff.txt", "wb"):
        pass
    assert sorted(below(tmp_path)) == sorted(good)
    assert sorted(inside(f"{tmp_path}/")) == sorted(f"{tmp_path}/{name}" for name in good)
    assert [mentions(f"Read {mention(name)} now") for name in good] == [[name] for name in good]


async def test_attach_completes_a_path_and_reads_the_file(home: Path, folder: Path) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press(*"/at")
        await until(pilot, lambda: composer.is_offering, "the commands")
        await pilot.press("tab")
        assert composer.text == "/attach "
        await pilot.press(*"lease")
        await until(pilot, lambda: composer.is_offering, "the files")
        await pilot.press("enter")
        await until(pilot, lambda: titles(app), "a document")
        assert titles(app) == ["lease agreement.txt"]
        assert composer.text == ""
        assert app._chat.transcript.entries == [], "a command is not a message"
        await until(pilot, lambda: app.screen.query(Chip), "a chip")


async def test_a_file_after_at_is_attached_and_stays_in_the_sentence(
    home: Path, folder: Path
) -> None:
    async with running() as (app, pilot, composer):
        await pilot.press(*"see @lea")
        await until(pilot, lambda: composer.is_offering, "the files")
        await pilot.press("enter", *"now")
        assert composer.text == 'see @"docs/lease agreement.txt" now'
        await until(pilot, lambda: titles(app) == ["lease agreement.txt"], "a document")
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert titles(app) == ["lease agreement.txt"], "once"
        composer.insert("and @租金.txt, or @nobody?")
        await pilot.press("enter")
        await until(pilot, lambda: len(titles(app)) == 2, "the other document")


async def test_ignored_files_are_not_offered_and_escape_closes_the_list(
    home: Path, folder: Path
) -> None:
    async with running() as (_, pilot, composer):
        await pilot.press(*"@secret")
        await pilot.pause(0.5)
        assert not composer.is_offering
        await pilot.press("ctrl+u", *"@notes")
        await until(pilot, lambda: composer.is_offering, "a file")
        await pilot.press("escape")
        assert not composer.is_offering
        await pilot.press("enter")
        assert composer.text == "", "Enter sends again"


async def test_a_folder_is_shown_before_it_goes_in(home: Path, folder: Path) -> None:
    async with running() as (app, pilot, composer):
        composer.insert("/attach docs/")
        await pilot.press("escape", "enter")
        await until(pilot, lambda: isinstance(app.screen, FolderScreen), "the preview")
        await pilot.press("escape")
        await until(pilot, lambda: not app._chat.desk.is_reading, "the end")
        assert titles(app) == []
        composer.insert("/attach docs/")
        await pilot.press("escape", "enter")
        await until(pilot, lambda: isinstance(app.screen, FolderScreen), "the preview")
        shown = " ".join(str(label.render()) for label in app.screen.query("Label"))
        assert "2 files" in shown
        assert "tokens" in shown
        await pilot.press(*"Who", "space", *"pays")
        app.screen.post_message(events.Paste(" now"))
        await until(pilot, lambda: composer.text == "Who pays now", "what was typed meanwhile")
        await pilot.press("enter")
        await until(pilot, lambda: titles(app), "a document")
        assert len(app.conversation.documents[0].pages) == 2


async def test_the_dialog_completes_and_attaches(home: Path, folder: Path) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, AttachScreen), "the dialog")
        await pilot.press(*"notes")
        await pilot.pause(0.3)
        await pilot.press("tab")
        assert app.screen.query_one(Input).value == "docs/old/notes.md"
        await pilot.press("enter")
        await until(pilot, lambda: titles(app) == ["notes.md"], "a document")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, AttachScreen), "the dialog")
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app._chat


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/my\\ file.pdf ", "/a/my file.pdf"),
        ("'/a/my file.pdf'", "/a/my file.pdf"),
        ("file:///a/b.pdf", "/a/b.pdf"),
        ("/a/b.pdf and more", None),
        ("a/b.pdf", None),
        ("/a\n/b", None),
        ("'/a", None),
    ],
)
def test_a_file_dropped_on_the_terminal_is_a_path(text: str, path: str | None) -> None:
    assert dropped(text) == path


async def test_a_dropped_file_is_attached(home: Path, folder: Path) -> None:
    async with running() as (app, pilot, composer):
        composer.post_message(events.Paste(f"'{folder}/docs/lease agreement.txt'"))
        await until(pilot, lambda: titles(app) == ["lease agreement.txt"], "a document")
        composer.post_message(events.Paste("/no/such/file"))
        await pilot.pause(0.2)
        assert len(titles(app)) == 1
        assert not told(app)


async def test_a_question_about_what_cannot_be_read_is_given_back(home: Path, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    async with running() as (app, pilot, composer):
        composer.insert("what does @broken.pdf say?")
        await pilot.press("enter")
        await until(pilot, lambda: "broken.pdf" in told(app), "the reason")
        await until(pilot, lambda: composer.text, "the question")
        assert composer.text == "what does @broken.pdf say?"
        assert app._chat.transcript.entries == []


async def test_what_cannot_be_read_is_told_in_a_sentence(home: Path, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    async with running() as (app, pilot, composer):
        for name in ("missing.txt", "~nobody-of-this-name/x", "broken.pdf", "http://127.0.0.1:9/x"):
            app._notifications.clear()
            composer.insert(f"/attach {name}")
            await pilot.press("enter")
            await until(pilot, lambda: told(app), name)
            assert name in told(app)
            assert "Traceback" not in told(app)
        assert titles(app) == []
        assert not app._chat.desk.is_reading


async def test_a_word_that_is_no_command_is_not_sent(home: Path) -> None:
    async with running() as (app, pilot, composer):
        composer.insert("/atach x")
        await pilot.press("enter")
        await pilot.pause()
        assert composer.text == "/atach x"
        assert "/attach" in told(app)
        await pilot.press("home", "space", "enter")
        await pilot.pause()
        assert app._chat.transcript.entries[0].text == "/atach x"
        composer.insert("/etc/hosts is what?")
        await pilot.press("enter")
        await pilot.pause()
        assert app._chat.transcript.entries[1].text == "/etc/hosts is what?"


async def test_escape_gives_up_reading_and_a_question_waits_for_it(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()
    listener = await asyncio.start_server(lambda r, w: reached.set(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with running() as (app, pilot, composer):
        composer.insert(f"/attach http://127.0.0.1:{port}/slow")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.query(ReadingChip), "a chip")
        await asyncio.wait_for(reached.wait(), 10)
        composer.insert("what is it?")
        await pilot.press("enter")
        assert app._chat.transcript.entries[0].waits == "sent when its documents are read"
        await pilot.press("escape")
        await until(pilot, lambda: not app._chat.desk.is_reading, "the end of reading")
        await until(pilot, lambda: not app.screen.query(ReadingChip), "no chip")
        assert titles(app) == []
    listener.close()
