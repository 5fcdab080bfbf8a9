"""The session store: what is written is found again, whatever happens in between."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.chat.tree import Origin
from app.core.documents import document_from_bytes
from app.core.sessions.store import Incoming, SessionStore
from engine_bridge.chat.events import Text, Timings
from engine_bridge.errors import BridgeError, UsageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[SessionStore]:
    store = SessionStore.open(path)
    yield store
    store.close()


def say(talk: Conversation, question: str, answer: str = "Yes.", **more) -> Turn:
    """A question and its answer, as `ask` would add them."""
    talk._append(Turn("user", question))
    reply = Turn("assistant")
    talk._append(reply)
    reply.text, reply.finish_reason = answer, "stop"
    for name, value in more.items():
        setattr(reply, name, value)
    if talk.watcher:
        talk.watcher.ended(reply)
    return reply


def put(store: SessionStore, *questions: str, title: str = "") -> str:
    talk = Conversation()
    for question in questions:
        say(talk, question)
    return store.put([Incoming(talk, title)])[0]


def cut_off(path: Path, code: str, *arguments: str) -> str:
    """Run code in a process of its own, which is killed when it says `NOW` and what follows is
    its last word."""
    head = f"""
        import asyncio, sys, time
        from pathlib import Path
        from app.core.chat.conversation import Conversation, Turn
        from app.core.sessions.store import SessionStore
        store = SessionStore.open(Path({str(path)!r}))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("NOW"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    return line.removeprefix("NOW").strip()


def test_everything_of_a_session_comes_back(store):
    talk = Conversation(system="Be brief.", preset="writer", model="m")
    talk.parameters = Parameters(temperature=0.6, stop=("END",), thinking=False)
    talk.attach(report := document_from_bytes(b"The bridge is blue.", "report.txt"))
    session = store.begin(talk)
    timings = Timings(prompt_tokens=10, cached_tokens=3, decode_tokens_per_s=51.5, by_engine=True)
    origin = Origin("llamacpp", "smol", {"flash-attention": "verified"})
    first = say(talk, "One?", reasoning="Hm.", timings=timings, origin=origin, note="A note.")
    talk._leave(first)
    say(talk, "One, again?", broken="It broke.", finish_reason="")
    session.close()
    again = store.resume(session.key[:4], {report.sha256: report}.get)
    assert not again.notice
    for name in ("turns", "others", "documents", "system", "model", "preset", "parameters"):
        was, now = getattr(talk, name), getattr(again.conversation, name)
        for turn in was if name in ("turns", "others") else ():
            turn.chosen = ""
        assert now == was, name
    info = store.find(session.key)
    assert (info.title, info.messages, info.model) == ("One?", 4, "smol")


def test_looking_at_a_session_does_not_count_as_a_change_but_settings_do(store):
    key = put(store, "One")
    store._db.execute("UPDATE session SET changed = 1.0")
    store.resume(key).close()
    assert store.find(key).changed == 1.0
    session = store.resume(key)
    session.conversation.system = "Be brief."
    session.conversation.documents.append(document_from_bytes(b"Blue.", "report.txt"))
    session.close()
    assert store.find(key).changed > 1.0
    assert store.load(key).system == "Be brief."
    assert [title for _sha256, title in store.documents(key)] == ["report.txt"]


def test_a_session_without_a_message_is_not_listed(store):
    session = store.begin(Conversation())
    session.changed()
    store.flush()
    assert store.recent() == []
    assert store.count() == 0


async def test_a_real_reply_is_in_the_file_while_it_streams(store, attached):
    talk = Conversation(parameters=Parameters(max_tokens=250, temperature=0))
    session = store.begin(talk)
    seen = []
    async with attached() as engine:
        async for event in talk.ask("Tell a long story about a fox.", engine):
            if isinstance(event, Text):
                pieces = store._reading.execute("SELECT sum(length(text)) FROM piece").fetchone()[0]
                seen.append(pieces or 0)
    assert len(set(seen)) > 2, "it was written once only"
    assert seen == sorted(seen)
    store.flush()
    assert store._reading.execute("SELECT count(*) FROM piece").fetchone()[0] == 0
    stored = store.load(session.key).turns[-1]
    assert stored.text == talk.turns[-1].text
    assert stored.timings == talk.turns[-1].timings
    assert stored.origin.engine == "llama-server"


KILLED = """
    talk = Conversation()
    store.begin(talk)
    talk._append(Turn("user", "Count."))
    answer = Turn("assistant")
    talk._append(answer)
    began = time.monotonic()
    count = 0
    while time.monotonic() - began < 1.5:
        count += 1
        answer.text += f"{count} "
        talk.watcher.grew(answer)
        time.sleep(0.005)
    print("NOW", count, flush=True)
    while True:
        count += 1
        answer.text += f"{count} "
        talk.watcher.grew(answer)
        time.sleep(0.005)
"""


def test_a_killed_process_loses_less_than_a_second(path):
    count = int(cut_off(path, KILLED))
    store = SessionStore.open(path)
    assert "1 reply was cut" in store.notice
    (info,) = store.recent()
    question, answer = store.load(info.key).turns
    assert question.text == "Count."
    assert "ended before the reply did" in answer.broken
    kept = [int(word) for word in answer.text.split()]
    assert kept == list(range(1, len(kept) + 1))
    assert len(kept) > count / 2  # at the time of the kill it ran for 1.5 s
    assert [hit.turn for hit in store.search("2 3 4")] == [answer.id]
    assert answer.is_cut
    store.close()
    again = SessionStore.open(path)
    assert not again.notice
    again.close()


def test_a_reply_that_grows_in_another_window_is_left_to_it(path):
    code = KILLED.replace('print("NOW"', 'print("started"')
    head = "import sys, time; from pathlib import Path\n"
    head += "from app.core.chat.conversation import Conversation, Turn\n"
    head += "from app.core.sessions.store import SessionStore\n"
    head += f"store = SessionStore.open(Path({str(path)!r}))\n"
    other = subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code)], stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()
    try:
        store = SessionStore.open(path)
        assert not store.notice
        session = store.resume(store.recent()[0].key)
        assert "Another window" in session.notice
        seen = session.conversation.turns[-1].text
        assert seen.startswith("1 2 3 ")
        mine = say(session.conversation, "And here?")
        store.flush()
        time.sleep(0.9)
        loaded = store.load(session.key)
        grown = next(t for t in (*loaded.turns, *loaded.others) if t.text.startswith("1 2 3 "))
        assert len(grown.text) > len(seen)
        assert not grown.broken
        assert mine.id in {turn.id for turn in (*loaded.turns, *loaded.others)}
        store.close()
    finally:
        other.kill()
        other.wait()


def test_two_windows_in_one_session_lose_nothing(path):
    one, two = SessionStore.open(path), SessionStore.open(path)
    first = one.begin(Conversation())
    say(first.conversation, "Question.")
    one.flush()
    second = two.resume(first.key)
    assert "Another window" in second.notice
    say(first.conversation, "From one.")
    say(second.conversation, "From two.")
    first.close()
    second.close()
    loaded = one.load(first.key)
    asked = {turn.text for turn in (*loaded.turns, *loaded.others) if turn.role == "user"}
    assert asked == {"Question.", "From one.", "From two."}
    branch = next(turn for turn in loaded.others if turn.role == "user")
    assert len(loaded.siblings(branch)) == 2
    assert not two.resume(first.key).notice
    one.close()
    two.close()


def test_a_reply_that_goes_on_in_two_windows_becomes_two(path):
    one, two = SessionStore.open(path), SessionStore.open(path)
    first = one.begin(Conversation())
    say(first.conversation, "Tell.", "once upon", finish_reason="length")
    one.flush()
    second = two.resume(first.key)
    for session, more in ((first, " a time"), (second, " a hill")):
        answer = session.conversation.turns[-1]
        answer.text += more
        session.grew(answer)
        session.store.flush()
    for session in (second, first):
        session.ended(session.conversation.turns[-1])
        session.store.flush()
    loaded = one.load(first.key)
    answers = loaded.siblings(loaded.turns[-1])
    assert sorted(turn.text for turn in answers) == ["once upon a hill", "once upon a time"]
    one.close()
    two.close()


def test_a_reply_that_went_on_is_found_by_its_new_end_only_once(store):
    talk = Conversation()
    session = store.begin(talk)
    answer = say(talk, "Tell.", "once upon", finish_reason="length")
    store.flush()
    answer.text += " a zebra"
    talk.watcher.grew(answer)
    talk.watcher.ended(answer)
    store.flush()
    assert [hit.turn for hit in store.search("zebra")] == [answer.id]
    assert store.load(session.key).turns[-1].text == "once upon a zebra"
    rows = store._reading.execute("SELECT rowid FROM found WHERE found MATCH 'once'").fetchall()
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("缓", True),
        ("缓存", True),
        ("前缀缓存", True),
        ("存前", False),
        ("prefix", True),
        ("PREF", True),
        ("cafe", True),
        ("café", True),
        ("engine cache", True),
        ("engine tree", False),
        ("c++", True),
        ("사과", True),
        ("มะ", True),
        ("100%", True),
        ('"quoted', True),
        ("AND", False),
        ("*", False),
        ("", False),
        ("NEAR(", False),
        ("\0", False),
        ("\ud800", False),
    ],
)
def test_search_finds_words_of_any_script(store, query, finds):
    put(
        store,
        "What is a prefix cache of an engine? 什么是前缀缓存?",
        'Written in C++ at the café, 100% "quoted" 사과나무 มะม่วง',
    )
    put(store, "Something else entirely", "天气怎么样")
    hits = store.search(query)
    # No message holds both words of "engine tree", which are in none together.
    assert bool(hits) == finds
    for hit in hits:
        for start, end in hit.snippet.marks:
            assert hit.snippet.text[start:end]


def test_search_shows_the_place_and_the_title(store):
    key = put(store, "word " * 200 + "needle here " + "word " * 200, title="Haystack")
    other = put(store, "About a needle", title="A needle’s eye")
    trash = put(store, "needle")
    store.delete(trash)
    title, place = store.search("needle")
    assert (title.session.key, title.turn) == (other, "")
    assert place.session.key == key
    start, end = place.snippet.marks[0]
    assert place.snippet.text[start:end] == "needle"
    assert place.snippet.text.startswith("…word")
    assert len(place.snippet.text) < 200
    turns = store.load(key).turns
    assert place.turn == turns[0].id
    assert len(store.search("needle", limit=1)) == 1


def test_sessions_are_renamed_deleted_restored_and_purged(store):
    keys = [put(store, f"Question {number}") for number in range(3)]
    assert [info.key for info in store.recent()] == keys[::-1]
    assert [info.key for info in store.recent(limit=1, offset=1)] == [keys[1]]
    store.rename(keys[0], "  A new\nname ")
    assert store.find(keys[0]).title == "A new name"
    store.rename(keys[0], "by the model", by="model")
    assert store.find(keys[0]).title == "A new name"
    with pytest.raises(UsageError, match="at least one"):
        store.rename(keys[0], " ")
    store.delete(keys[0])
    assert store.count() == 2
    assert [info.key for info in store.recent(deleted=True)] == [keys[0]]
    store.restore(keys[0])
    assert store.count() == 3
    store.delete(keys[0])
    assert store.purge() == 0
    assert store.purge(older_than_days=0) == 1
    with pytest.raises(UsageError, match="no session"):
        store.find(keys[0])
    assert store.search("Question")[0].session.key in keys[1:]
    store._db.execute("INSERT INTO found (found) VALUES ('integrity-check')")


def test_a_key_may_be_shortened_while_it_is_the_only_one(store):
    keys = [put(store, "x") for _ in range(40)]
    assert store.find(keys[0][:7] if sum(k[:7] == keys[0][:7] for k in keys) == 1 else keys[0])
    begins = [key[0] for key in keys]
    double = next(letter for letter in begins if begins.count(letter) > 1)
    with pytest.raises(UsageError, match="More than one"):
        store.find(double)
    with pytest.raises(UsageError, match="no session"):
        store.find("")


def test_a_document_that_is_gone_is_told_and_not_forgotten(store):
    talk = Conversation()
    talk.attach(report := document_from_bytes(b"Blue.", "report.txt"))
    session = store.begin(talk)
    say(talk, "Which colour?")
    session.close()
    again = store.resume(session.key, {}.get)
    assert "report.txt" in again.notice
    say(again.conversation, "And now?")
    again.close()
    assert store.load(session.key, {report.sha256: report}.get).documents == [report]


def test_odd_text_and_big_text_are_stored(store):
    big = "汉字 and words. " * 350_000  # 5 MB of characters, 10 MB of bytes
    talk = Conversation()
    session = store.begin(talk)
    say(talk, "nul \0 and \ud83d lone", answer=big)
    say(talk, "\0")
    session.close()
    turns = store.load(session.key).turns
    assert turns[0].text == "nul \ufffd and \ufffd lone"
    assert turns[1].text == big
    assert turns[2].text == "\ufffd"
    assert len(store.search("lone")[0].snippet.text) < 200


def test_a_damaged_row_is_left_out_and_told(path):
    store = SessionStore.open(path)
    key = put(store, "One", "Two")
    store.close()
    db = sqlite3.connect(path)
    db.execute("UPDATE message SET role = x'00ff', timings = '{{{' WHERE text = 'One'")
    db.execute("UPDATE message SET timings = '{\"by_engine\": tru', origin = '7' WHERE id = 2")
    db.commit()
    db.close()
    store = SessionStore.open(path)
    session = store.resume(key)
    assert "1 damaged message" in session.notice
    assert [turn.text for turn in session.conversation.turns] == ["Yes.", "Two", "Yes."]
    store.close()


def test_a_file_cut_at_every_page_opens_and_tells_what_was_kept(tmp_path):
    path = tmp_path / "sessions.db"
    store = SessionStore.open(path)
    for number in range(12):
        put(store, f"Question {number} " + "about the bridge " * 40, title=f"Title {number}")
    store.close()
    whole = path.read_bytes()
    assert len(whole) % 4096 == 0
    kept = []
    for size in range(4096, len(whole), 4096):
        each = tmp_path / str(size) / "sessions.db"
        each.parent.mkdir()
        each.write_bytes(whole[:size])
        store = SessionStore.open(each)
        assert "was damaged" in store.notice
        messages = store._reading.execute("SELECT count(*) FROM message").fetchone()[0]
        infos = store.recent()
        assert sum(len(store.load(info.key).turns) for info in infos) == messages
        if messages:
            assert sum(info.messages for info in infos) == messages
        kept.append(messages)
        key = put(store, "It still works")
        assert store.search("still works")[0].session.key == key
        store.close()
    assert kept[-1] >= 20
    assert kept == sorted(kept)


def test_a_file_that_is_locked_keeps_all_until_it_is_free(path):
    store = SessionStore.open(path)
    store._db.execute("PRAGMA busy_timeout = 50")
    told = []
    store.on_problem = told.append
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    session = store.begin(Conversation())
    say(session.conversation, "Kept?")
    with pytest.raises(BridgeError, match="locked by another program"):
        store.flush()
    assert [problem.reason for problem in told if problem]
    other.execute("ROLLBACK")
    store.flush()
    assert told[-1] is None
    assert [turn.text for turn in store.load(session.key).turns] == ["Kept?", "Yes."]
    store.close()


def test_a_full_disk_is_told_and_nothing_is_lost_once_there_is_room(path):
    store = SessionStore.open(path)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    session = store.begin(Conversation())
    say(session.conversation, "Big? " * 10_000, "Yes. " * 10_000)
    with pytest.raises(BridgeError, match="is full"):
        store.flush()
    store._db.execute("PRAGMA max_page_count = 100000")
    store.flush()
    assert len(store.load(session.key).turns[-1].text) == 50_000
    store.close()


def test_many_processes_write_at_once(path):
    SessionStore.open(path).close()
    code = (
        "import sys; from pathlib import Path\n"
        "from app.core.chat.conversation import Conversation, Turn\n"
        "from app.core.sessions.store import SessionStore, Incoming\n"
        f"store = SessionStore.open(Path({str(path)!r}))\n"
        "for i in range(10):\n"
        "    s = store.begin(Conversation(turns=[Turn('user', f'{sys.argv[1]} {i}')]))\n"
        "    s.close()\n"
        "store.close()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(3)]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    store = SessionStore.open(path)
    assert store.count() == 30
    assert store._db.execute("SELECT count(*) FROM window").fetchone()[0] == 1
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_file_is_private(store, path):
    put(store, "secret")
    for each in path.parent.iterdir():
        assert each.stat().st_mode & 0o077 == 0, each


def test_what_was_waiting_is_written_at_the_end(path):
    store = SessionStore.open(path)
    session = store.begin(Conversation())
    say(session.conversation, "Last words")
    store.close()
    with contextlib.closing(SessionStore.open(path)) as again:
        assert len(again.load(session.key).turns) == 2
