"""Nothing a model or a document says can command the terminal."""

import pytest

from app.core.plain import Plain, plain

HOSTILE = [
    ("a\x1b[31mred\x1b[0mb", "aredb"),
    ("\x1b[2J\x1b[Hgone", "gone"),
    ("\x1b]0;title\x07x", "x"),
    ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]52;c;ZXZpbA==\x07x", "x"),
    ("\x1bPq#0;2;0;0;0\x1b\\x", "x"),
    ("\x9b31mred\x9d0;t\x9cx", "redx"),
    ("\x1bcreset", "reset"),
    ("\x1b(0lines", "lines"),
    ("bell\x07 back\x08 cr\r nul\x00 del\x7f", "bell back cr nul del"),
    ("evil\u202etxt.exe\u2066x\u2069", "eviltxt.exex"),
    ("tab\there\nnew line", "tab\there\nnew line"),
    ("日本語 🙂 שלום", "日本語 🙂 שלום"),
    ("a\x1b", "a"),
    ("a\x1b[31", "a[31"),
    ("\x1b]never ended\nnext line", "]never ended\nnext line"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_sequences_and_controls_are_taken_out(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_result_is_the_same_wherever_the_text_is_cut(text, shown):
    for cut in range(len(text) + 1):
        cleaner = Plain()
        assert cleaner.feed(text[:cut]) + cleaner.feed(text[cut:]) + cleaner.end() == shown
    cleaner = Plain()
    assert "".join(map(cleaner.feed, text)) + cleaner.end() == shown


def test_no_control_character_survives_whatever_comes():
    every = "".join(map(chr, range(0x100))) * 2 + "\x1b" * 3 + "\x1b]" + "x" * 10_000
    for step in (1, 3, 1000):
        cleaner = Plain()
        pieces = [cleaner.feed(every[i : i + step]) for i in range(0, len(every), step)]
        shown = "".join(pieces) + cleaner.end()
        assert all(c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f") for c in shown)


def test_unfinished_sequence_does_not_hold_back_the_answer_for_ever():
    cleaner = Plain()
    cleaner.feed("\x1b]")
    shown = "".join(cleaner.feed("word ") for _ in range(2000))
    assert len(shown) > 4000


def test_plain_text_passes_at_once():
    cleaner = Plain()
    assert cleaner.feed("Hello") == "Hello"
