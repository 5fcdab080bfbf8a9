"""`ling-chat ask -f`: papers, folders and addresses, and what the answer says of them."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
import real_files as real
from own_engine import KEY, running_engine

from app.cli import documents as cli_documents
from app.core.chat.conversation import Conversation, Turn
from app.core.documents import read_document


@pytest.fixture(scope="module")
def engine(smol):
    with running_engine(smol) as running:
        yield running


@pytest.fixture(autouse=True)
def own_home(home):
    """No settings, keys or engine of the user's."""


@pytest.fixture
def at(engine, monkeypatch):
    monkeypatch.setenv("LING_CHAT_API_KEY", KEY)
    return ("--url", engine.url, "--temperature", "0", "--max-tokens", "12")


async def ask(*args, stdin=b""):
    """Exit code, standard output and standard error."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "ask", *args),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(stdin), 90)
    assert "Traceback" not in err.decode()
    return process.returncode, out, err.decode()


async def test_several_documents_are_read_with_progress_and_answers_are_checked(at, tmp_path):
    real.pdf(tmp_path / "lease.pdf", pages=2)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Roof\n")
    (tmp_path / "notes" / "b.py").write_text("print('b')\n")
    (tmp_path / "alt.txt").write_bytes((real.CHINESE * 8).encode("gb18030"))
    names = ("lease.pdf", "notes", "alt.txt")
    files = [part for name in names for part in ("-f", str(tmp_path / name))]
    code, out, err = await ask("When was it signed?", "-v", "--json", *files, *at)
    assert code == 0, err
    found = json.loads(out)
    assert isinstance(found["citations"], list)
    assert isinstance(found["quotes_not_found"], list)
    assert found["timings"]["prompt_tokens"] > 150
    assert "lease.pdf · 2 pages · " in err
    assert "notes/ · 2 files · " in err
    assert "alt.txt · gb18030 · " in err
    assert "reading the prompt: 100%" in err


async def test_pages_of_a_document_go_in_and_the_rest_of_it_does_not(at, tmp_path):
    name = "odd:2-3 name.pdf"
    real.pdf(tmp_path / name, pages=4)
    (tmp_path / "plain.txt").write_text("".join(f"Line {n}.\n" for n in range(1, 900)))
    files = ("-f", str(tmp_path / name), "-f", str(tmp_path / "plain.txt"))
    ranges = ("--pages", "2-3", "--pages", "-4")
    code, out, err = await ask("What?", "-v", "--json", *files, *ranges, *at)
    assert code == 0, err
    assert f"{name} · 2 pages · " in err
    assert f"{name}: Pages 2 to 3." in err
    assert "plain.txt: Lines 1 to 4." in err
    assert json.loads(out)["timings"]["prompt_tokens"] < 400


@pytest.mark.parametrize(
    ("pages", "sentence"),
    [
        (("3-9",), "lease.pdf: There is no 3-9. There are 1 to 4.\n"),
        (("0",), "lease.pdf: There is no 0. There are 1 to 4.\n"),
        (("4-2",), "lease.pdf: There is no 4-2. There are 1 to 4.\n"),
        (("²",), "lease.pdf: “²” is no range of pages. Write it like 3-12.\n"),
        (("-",), "lease.pdf: “-” is no range of pages. Write it like 3-12.\n"),
        (("1", "2"), "There are more ranges of pages than documents. Give --pages once"),
    ],
)
async def test_pages_that_are_not_there_cost_one_line(pages, sentence, tmp_path):
    real.pdf(tmp_path / "lease.pdf", pages=4)
    ranges = [part for one in pages for part in ("--pages", one)]
    code, out, err = await ask("What?", "-f", str(tmp_path / "lease.pdf"), *ranges)
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert sentence in err


async def test_a_paper_may_come_from_a_pipe(at, tmp_path):
    data = real.pdf(tmp_path / "lease.pdf").read_bytes()
    code, out, err = await ask("When was it signed?", "--json", *at, stdin=data)
    assert code == 0, err
    assert json.loads(out)["timings"]["prompt_tokens"] > 60


async def test_what_is_missing_of_a_document_is_said_even_where_nobody_watches(at, tmp_path):
    real.eml(tmp_path / "letter.eml")
    code, _, err = await ask("Who wrote?", "-f", str(tmp_path / "letter.eml"), *at)
    assert code == 0
    assert err.startswith("letter.eml: 1 attachment was not read")


async def test_bytes_that_are_no_text_can_be_sent_from_everywhere(at, tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("a menu")
    odd = os.fsdecode(b"s\xe9")
    code, out, err = await ask(odd, "-f", str(tmp_path), "--system", odd, "--stop", odd, *at)
    assert (code, err) == (0, "")
    assert out


@pytest.mark.parametrize(
    ("name", "make", "code", "sentence"),
    [
        ("a.pdf", lambda path: real.pdf(path, password="x"), 2, "a.pdf is encrypted."),
        ("no\n\x1b[31mfile.txt", lambda path: None, 2, "/no file.txt. Check the path."),
        ("b.docx", lambda path: path.write_bytes(b"PK\3\4rubbish"), 1, "b.docx is damaged"),
    ],
)
async def test_a_bad_document_costs_one_line_and_no_engine(name, make, code, sentence, tmp_path):
    make(tmp_path / name)
    status, out, err = await ask("What is it?", "-f", str(tmp_path / name))
    assert (status, out) == (code, b"")
    assert err.count("\n") == 1
    assert sentence in err


def test_citations_and_false_quotes_become_json_and_lines(tmp_path):
    conversation = Conversation(turns=[Turn("user", "When?")])
    conversation.attach(read_document(real.pdf(tmp_path / "lease.pdf")))
    conversation.turns.append(
        Turn(
            "assistant",
            "It “was signed on 14 March 2031” [lease.pdf p.2] and “was burned soon afterwards”"
            " [lease p.9].",
        )
    )
    sources = cli_documents.check(conversation)
    assert cli_documents.as_object(sources) == {
        "citations": [
            {"text": "[lease.pdf p.2]", "document": "lease.pdf", "page": 2, "line": None,
             "found": True},
            {"text": "[lease p.9]", "document": "lease.pdf", "page": 9, "line": None,
             "found": False},
        ],
        "quotes_not_found": ["was burned soon afterwards"],
    }  # fmt: skip
    assert cli_documents.doubts(sources) == [
        "not in the documents: “was burned soon afterwards”",
        "no such place: [lease p.9]",
    ]
