"""`ling-chat sessions` and `ask --continue`, as a shell sees them."""

import contextlib
import io
import json
import subprocess
import sys

import pytest
from own_engine import KEY

from app.cli import main
from app.core.chat.conversation import Conversation, Turn
from app.core.documents import document_from_bytes
from app.core.sessions.store import SessionStore
from app.core.shelf.store import ShelfStore


@pytest.fixture(autouse=True)
def own_home(home, monkeypatch):
    """No settings, keys or engine of the user's."""
    monkeypatch.setenv("LING_CHAT_API_KEY", KEY)


def run(*args: str, stdin: str = "", code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of `ling-chat ARGS`."""
    if not stdin and args[0] == "sessions":
        return _run_here(args, code)
    done = subprocess.run(
        [sys.executable, "-m", "app", *args],
        input=stdin.encode() if stdin else None,
        stdin=None if stdin else subprocess.DEVNULL,
        capture_output=True,
        timeout=90,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    assert done.returncode == code, err
    return out, err


def _run_here(args: tuple[str, ...], code: int) -> tuple[str, str]:
    """The same without a process of its own, which takes a second."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main.run(list(args))
    assert ended.value.code == code, err.getvalue()
    return out.getvalue(), err.getvalue()


@pytest.fixture
def at(real_engine) -> tuple[str, ...]:
    return ("--url", real_engine.url, "--temperature", "0", "--max-tokens", "4")


def listed(*args: str) -> list[dict]:
    return json.loads(run("sessions", "list", "--json", *args)[0])


def test_ask_stores_nothing_unless_told_and_then_goes_on(at, tmp_path):
    run("ask", "Say hello.", *at)
    assert listed() == []
    document = tmp_path / "bridge.txt"
    document.write_text("The bridge is blue. It opened in 1932. " * 20)
    first, _ = run("ask", "--save", "Which colour?", "-f", str(document), *at)
    (info,) = listed()
    assert (info["title"], info["messages"]) == ("Which colour?", 2)
    second, _ = run("ask", "And when?", "--json", *at, "--continue")
    answer = json.loads(second)
    assert answer["timings"]["cached_tokens"] > 100  # the document and the first answer
    run("ask", "--continue", info["id"][:5], *at, "--preset", "reader", stdin="Really?")
    (info,) = listed()
    assert info["messages"] == 6
    shown, _ = run("sessions", "show", info["id"][:5])
    for text in ("# Which colour?", "- bridge.txt", "And when?", "Really?", first.strip()):
        assert text in shown
    exported = json.loads(run("sessions", "show", "--json")[0])["sessions"][0]
    assert (exported["preset"], exported["parameters"]["temperature"]) == ("reader", 0)
    assert [turn["origin"]["engine"] for turn in exported["turns"][1::2]] == ["llama-server"] * 3
    assert all(turn["timings"]["decode_tokens_per_s"] for turn in exported["turns"][1::2])
    assert "no preset" in run("ask", "Hi", "--preset", "none", *at, code=2)[1]
    assert "no session" in run("ask", "--continue", "zzz", "x", *at, code=2)[1]


def test_a_session_that_goes_on_has_its_documents_and_tells_what_is_not_in_them(at):
    """The small model says again what it said, so an answer with a false place and quote comes."""
    said = "“The bridge was red for ten years” [bridge.txt l.900]"
    asked, answered = ("user", "What colour?"), ("assistant", said)
    talk = Conversation(
        [Turn(role, text, finish_reason="stop") for role, text in [asked, answered] * 3]
    )
    document = document_from_bytes(b"The bridge is blue. It opened in 1932. " * 20, "bridge.txt")
    talk.attach(document)
    with contextlib.closing(ShelfStore.open()) as shelf:
        shelf.add(document)
    with contextlib.closing(SessionStore.open()) as store:
        store.begin(talk).close()
    out, err = run("ask", "What colour?", *at[:-1], "40", "-v", "--continue")
    assert out.strip() == said
    assert "no such place: [bridge.txt l.900]" in err
    assert "not in the documents: “The bridge was red for ten years”" in err
    answer = json.loads(run("ask", "What colour?", "--json", *at[:-1], "40", "--continue")[0])
    assert [each["found"] for each in answer["citations"]] == [False]
    assert answer["quotes_not_found"] == ["The bridge was red for ten years"]

    with contextlib.closing(ShelfStore.open()) as shelf:
        assert shelf.remove(document.sha256)
    out, err = run("ask", "What colour?", "--json", *at, "--continue")
    assert "No longer on the shelf; attach again: bridge.txt." in err
    assert "citations" not in json.loads(out)


def test_a_session_is_found_renamed_deleted_and_brought_back(tmp_path):
    assert run("sessions", "list") == ("", "")
    assert "no session yet" in run("sessions", "show", code=2)[1]
    run("sessions", "import", str(_export(tmp_path)))
    (info,) = listed()
    key = info["id"]
    assert "缓存" in run("sessions", "search", "缓存")[0]
    (hit,) = json.loads(run("sessions", "search", "--json", "blue")[0])
    start, end = hit["marks"][0]
    assert hit["snippet"][start:end] == "blue"
    run("sessions", "search", "purple", code=1)
    run("sessions", "rename", key[:4], "Another name")
    assert "Another name" in run("sessions", "list")[0]
    assert f"restore {key}" in run("sessions", "delete", key)[1]
    assert listed() == []
    assert len(listed("--deleted")) == 1
    run("sessions", "restore", "last", code=2)
    run("sessions", "restore", key)
    assert len(listed()) == 1
    run("sessions", "delete", key, "--now")
    assert listed("--deleted") == []


def test_what_is_exported_can_be_imported_and_read_elsewhere(tmp_path):
    run("sessions", "import", str(_export(tmp_path)))
    out = tmp_path / "all.json"
    run("sessions", "export", "--all", "-o", str(out))
    assert run("sessions", "import", "--json", str(out))[0].count('"') == 2
    one, two = json.loads(run("sessions", "export", "--all", "--format", "json")[0])["sessions"]
    for each in (one, two):
        each.pop("key")
    assert one == two
    page = tmp_path / "page.html"
    run("sessions", "export", "-o", str(page))
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o077 == 0
    assert "cannot be written" in run("sessions", "export", "-o", "/nowhere/x.md", code=1)[1]


def test_a_bad_file_imports_nothing_and_says_why(tmp_path):
    good, bad = _export(tmp_path), tmp_path / "bad.json"
    bad.write_text('{"format": "ling-chat-sessions", "version": 1, "sessions": [{"turns": [7]}]}')
    _, err = run("sessions", "import", str(good), str(bad), code=2)
    assert err.count("\n") == 1
    assert "damaged" in err
    assert listed() == []


def test_text_of_a_model_cannot_command_the_terminal(tmp_path):
    path = _export(tmp_path, answer="\x1b[2J gone \x1b]0;title\x07 blue")
    run("sessions", "import", str(path))
    for args in (("show",), ("list",), ("search", "gone"), ("export", "--format", "html")):
        assert "\x1b" not in run("sessions", *args)[0]


def _export(folder, answer="It is blue. 前缀缓存"):
    turns = [
        {"id": "a", "role": "user", "text": "Which colour?", "created": 1.0},
        {"id": "b", "parent": "a", "role": "assistant", "text": answer, "created": 2.0},
        {"id": "c", "parent": "a", "role": "assistant", "text": "Or red.", "created": 3.0},
    ]
    session = {"title": "Colours", "turns": turns, "leaf": "b", "created": 5.0, "changed": 6.0}
    path = folder / "export.json"
    path.write_text(
        json.dumps({"format": "ling-chat-sessions", "version": 1, "sessions": [session]})
    )
    return path


def test_sessions_need_no_screen():
    """Nothing of Textual is loaded, whatever a command imports when it runs."""
    code = (
        "import sys, app.cli.sessions, app.cli.keeping, app.core.chat.presets\n"
        "import app.core.sessions.importing, app.core.sessions.export, app.core.sessions.titles\n"
        "assert not {'textual', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
