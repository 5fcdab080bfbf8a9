"""The shelf's file: what is put there comes back, also in another process, and makes room."""

import time
import zlib
from contextlib import closing

import pytest

from app.core.citations import check_answer
from app.core.context.parts import part
from app.core.database import open_database
from app.core.documents import Document, document_from_bytes
from app.core.shelf.store import MIGRATIONS, ShelfStore, digest


def paper(name: str, text: str = "") -> Document:
    return document_from_bytes((text or f"What {name} says. " * 40).encode(), f"{name}.txt")


@pytest.fixture
def shelf(home, tmp_path):
    store = ShelfStore.open(tmp_path / "shelf.db")
    yield store
    store.close()


def test_document_comes_back_whole_after_the_store_was_closed(home, tmp_path):
    text = "Über die Lüge 日本語\ud800 🙂\n" * 50
    given = Document("a “b”.pdf", text, "", "ab" * 32, len(text), "pdf", (0, 120, 300), "1 page.")
    first = ShelfStore.open(tmp_path / "shelf.db")
    first.add(given)
    first.close()
    second = ShelfStore.open(tmp_path / "shelf.db")
    assert second.get(given.sha256) == given
    assert second.entries()[0].pages == 3
    second.close()


def test_part_of_a_document_still_knows_its_pages_and_lines_after_a_restart(home, tmp_path):
    lines = document_from_bytes("".join(f"Line {n}.\n" for n in range(1, 200)).encode(), "a.txt")
    paged = Document("b.pdf", "one\ntwo\nthree\n", "", "b" * 64, 14, "pdf", (0, 4, 8))
    given = [part(lines, 101, 150), part(paged, 2, 3)]
    first = ShelfStore.open(tmp_path / "shelf.db")
    for document in given:
        first.add(document)
    first.close()
    second = ShelfStore.open(tmp_path / "shelf.db")
    kept = [second.get(document.sha256) for document in given]
    second.close()
    assert kept == given
    line, page = check_answer("[a.txt l.120], [b.pdf p.3]", kept).citations
    assert kept[0].text[line.offset :].startswith("Line 120.")
    assert kept[1].text[page.offset :].startswith("three")


def test_shelf_of_an_older_version_is_taken_over(home, tmp_path):
    with closing(open_database(tmp_path / "shelf.db", MIGRATIONS[:1])) as old, old.transaction():
        row = ("a" * 64, "a.txt", "text", "utf-8", "", 2, "[]", zlib.compress(b"hi"), 10, 1.0, 1.0)
        old.execute("INSERT INTO document VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
    store = ShelfStore.open(tmp_path / "shelf.db")
    assert store.get("a" * 64) == Document("a.txt", "hi", "utf-8", "a" * 64, 2)
    store.close()


def test_same_content_is_kept_once_and_its_use_is_noted(shelf):
    shelf.add(paper("a"))
    shelf.add(paper("b"))
    time.sleep(0.01)
    shelf.add(paper("a"))
    assert [each.title for each in shelf.entries()] == ["a.txt", "b.txt"]
    time.sleep(0.01)
    shelf.get(paper("b").sha256)
    assert [each.title for each in shelf.entries()] == ["b.txt", "a.txt"]


def test_removed_document_is_gone(shelf):
    shelf.add(paper("a"))
    assert shelf.remove(paper("a").sha256)
    assert not shelf.remove(paper("a").sha256)
    assert shelf.get(paper("a").sha256) is None
    assert shelf.entries() == ()


def test_what_was_not_used_for_longest_makes_room_and_is_named(home, tmp_path):
    texts = {
        name: "".join(chr(0x4E00 + (i * 7919 + ord(name)) % 9000) for i in range(3000))
        for name in "abcd"
    }
    size = 0
    probe = ShelfStore.open(tmp_path / "probe.db")
    probe.add(paper("a", texts["a"]))
    size = probe.stored_bytes()
    probe.close()
    store = ShelfStore.open(tmp_path / "shelf.db", limit_bytes=int(2.5 * size))
    assert store.add(paper("a", texts["a"])) == ()
    assert store.add(paper("b", texts["b"])) == ()
    gone = store.add(paper("c", texts["c"]), keep={paper("a", texts["a"]).sha256})
    assert [each.title for each in gone] == ["b.txt"]
    assert {each.title for each in store.entries()} == {"a.txt", "c.txt"}
    gone = store.add(paper("d", "".join(texts.values())))
    assert [each.title for each in gone] == ["a.txt", "c.txt"]
    assert [each.title for each in store.entries()] == ["d.txt"]  # itself never
    store.close()


def test_counts_are_kept_by_text_and_tokenizer(home, tmp_path):
    store = ShelfStore.open(tmp_path / "shelf.db")
    store.remember_tokens(digest("some text"), "m:1", 2)
    store.remember_tokens(digest("some text"), "m:2", 3)
    store.close()
    again = ShelfStore.open(tmp_path / "shelf.db")
    assert again.tokens(digest("some text"), "m:1") == 2
    assert again.tokens(digest("some text"), "m:2") == 3
    assert again.tokens(digest("some text!"), "m:1") is None
    again.close()


def test_two_windows_share_one_shelf(home, tmp_path):
    one, other = (ShelfStore.open(tmp_path / "shelf.db") for _ in range(2))
    one.add(paper("a"))
    other.add(paper("b"))
    assert {each.title for each in one.entries()} == {"a.txt", "b.txt"}
    one.close()
    other.close()
