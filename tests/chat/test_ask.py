"""`ling-chat ask` from end to end: real processes, the real engine, real pipes."""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest
from chat_wire import WHOLE, Reply, chunk, http, wire

from engine_bridge.chat.flavour import LLAMA_SERVER
from engine_bridge.chat.server import confirm_idle

TIMINGS = {
    "prompt_tokens": int,
    "cached_tokens": int,
    "completion_tokens": int,
    "ttft_s": float,
    "queue_s": float,
    "prefill_s": float,
    "first_token_s": float,
    "prefill_tokens_per_s": float,
    "decode_tokens_per_s": float,
    "thought_s": type(None),
    "thought_tokens": type(None),
    "accept_length": (float, type(None)),
}


@pytest.fixture(autouse=True)
def own_home(home):
    """No settings, keys or engine of the user's."""


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "app", "ask", *args]


async def ask(*args: str, stdin: bytes | None = None) -> tuple[int, bytes, str]:
    """Exit code, standard output and standard error; stdin is /dev/null unless given."""
    process = await asyncio.create_subprocess_exec(
        *command(*args),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(stdin), 90)
    assert "Traceback" not in err.decode()
    return process.returncode or 0, out, err.decode()


@pytest.fixture
def at(real_engine, key) -> tuple[str, ...]:
    return ("--url", real_engine.url, "--temperature", "0", "--max-tokens", "12")


async def test_answer_goes_to_stdout_and_nothing_to_a_piped_stderr(at):
    code, out, err = await ask("Say hello.", *at)
    assert code == 0
    assert out.strip()
    assert out.endswith(b"\n")
    assert err == ""


async def test_verbose_shows_prefill_and_figures_on_stderr(at):
    code, _, err = await ask("Say hello.", "-v", *at)
    assert code == 0
    assert "reading the prompt: 100%" in err
    assert "tok/s" in err


async def test_json_is_one_object_with_the_documented_fields(at):
    code, out, _ = await ask("Say hello.", "--json", *at)
    assert code == 0
    found = json.loads(out)
    assert set(found) == {"text", "reasoning", "finish_reason", "timings"}
    assert found["text"]
    assert found["finish_reason"] in ("stop", "length")
    assert set(found["timings"]) == set(TIMINGS)
    assert all(isinstance(found["timings"][name], kind) for name, kind in TIMINGS.items())


async def test_document_is_taken_from_a_file_and_from_a_pipe(at, tmp_path, real_engine):
    words = "The keeper's parrot is called Quinoa. " * 10
    (tmp_path / "keeper.txt").write_text(words)
    asked = ("What is the parrot called?", "--json", *at)
    from_file = json.loads((await ask(*asked, "-f", str(tmp_path / "keeper.txt")))[1])
    from_pipe = json.loads((await ask(*asked, stdin=words.encode()))[1])
    without = json.loads((await ask(*asked))[1])
    for found in (from_file, from_pipe):
        assert found["timings"]["prompt_tokens"] > without["timings"]["prompt_tokens"] + 50


async def test_pipe_without_a_prompt_is_the_prompt(at):
    code, out, _ = await ask("--json", *at, stdin=b"Say hello.")
    given = await ask("Say hello.", "--json", *at)
    assert code == 0
    assert json.loads(out)["text"] == json.loads(given[1])["text"]


async def test_legacy_encoding_on_stdin_is_read(at):
    code, out, _ = await ask("Résumé?", *at, stdin="Déjà vu à l'été. ".encode("latin-1") * 5)
    assert code == 0
    assert out.strip()


@pytest.mark.parametrize(
    ("args", "stdin", "sentence"),
    [
        ((), None, "There is no prompt"),
        ((), b"  \n", "There is no prompt"),
        (("  ",), None, "The prompt is empty"),
        (("Hi", "-f", "missing.txt"), None, "There is no file missing.txt"),
        (("Hi",), b"\x7fELF\2\1\1\0", "standard input is a program"),
        (("Hi", "--url", "ftp://h"), None, "not the URL of a web server"),
        (("Hi", "--engine", "attach"), None, "Give its URL"),
        (("Hi", "--engine", "warp"), None, "warp"),
        (("Hi", "--max-tokens", "0"), None, "max-tokens"),
        (("Hi", "--temperature", "nan"), None, "The temperature is no number"),
        (("Hi", "--stop", ""), None, "The text given to --stop is empty"),
        (("Hi", "-f", ""), None, "The name of a document is empty"),
    ],
)
async def test_wrong_usage_is_one_sentence_and_exit_2(args, stdin, sentence):
    code, out, err = await ask(*args, stdin=stdin)
    assert (code, out) == (2, b"")
    assert sentence in err


async def test_no_server_is_exit_3():
    code, out, err = await ask("Hi", "--url", "127.0.0.1:9")
    assert (code, out) == (3, b"")
    assert err.count("\n") == 1
    assert "connection refused" in err


async def test_prompt_too_long_is_exit_2_with_the_numbers_and_cures(at):
    code, out, err = await ask("Hi", *at, stdin=b"word " * 3000)
    assert (code, out) == (2, b"")
    assert "the context of 2,048 holds" in err
    assert "eave out standard input" in err


async def test_broken_stream_prints_what_arrived_says_why_and_exits_1():
    cut = Reply([http(headers="Content-Length: 9999\r\n"), chunk(content="Once upon")])
    models = {"/v1/models": b'{"data":[{"id":"m"}]}'}
    async with wire(cut, routes=models) as server:
        code, out, err = await ask("Hi", "--url", server.url)
        assert (code, out) == (1, b"Once upon\n")
        assert "closed the connection" in err
        code, out, err = await ask("Hi", "--json", "--url", server.url)
    found = json.loads(out)
    assert code == 1
    assert found["text"] == "Once upon"
    assert found["finish_reason"] is None
    assert "closed the connection" in found["error"]
    assert "closed the connection" in err


async def test_killed_engine_is_exit_1_with_what_arrived(fresh_engine, key):
    process = await asyncio.create_subprocess_exec(
        *command("Tell a long story.", "--url", fresh_engine.url, "--max-tokens", "1500"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first = await process.stdout.read(10)
    os.kill(fresh_engine.process.pid, signal.SIGKILL)
    out, err = await process.communicate()
    assert process.returncode == 1
    assert first + out
    assert b"before the answer was complete" in err


async def test_interrupt_stops_the_engine_and_exits_130(real_engine, key):
    process = await asyncio.create_subprocess_exec(
        *command("Tell a long story.", "--url", real_engine.url, "--max-tokens", "1500"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    await process.stdout.read(10)
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=10)


async def test_closed_pipe_ends_quietly_and_stops_the_engine(real_engine, key):
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *command("Tell a long story.", "--url", real_engine.url, "--max-tokens", "1500"),
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert await asyncio.to_thread(os.read, reader, 5)
    os.close(reader)
    _, err = await process.communicate()
    assert process.returncode == 0
    assert err == b""
    assert await confirm_idle(real_engine.endpoint, LLAMA_SERVER, within_s=10)


async def test_answer_cannot_command_the_terminal_and_json_is_ascii():
    hostile = chunk(content="a\x1b[2") + chunk(content="Jb\x1b]0;t\x07\u202ec") + WHOLE
    models = {"/v1/models": b'{"data":[{"id":"m"}]}'}
    async with wire(Reply([http(hostile)]), routes=models) as server:
        _, out, _ = await ask("Hi", "--url", server.url)
        assert out == b"abcHi\n"
        _, out, _ = await ask("Hi", "--json", "--url", server.url)
    assert out.isascii()
    assert b"\x1b" not in out
    assert json.loads(out)["text"] == "a\x1b[2Jb\x1b]0;t\x07\u202ecHi"


async def test_locale_that_cannot_write_the_answer_loses_only_its_letters(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    models = {"/v1/models": b'{"data":[{"id":"m"}]}'}
    async with wire(Reply([http(chunk(content="é ok", finish="stop"))]), routes=models) as server:
        code, out, _ = await ask("Hi", "--url", server.url)
    assert (code, out) == (0, b"? ok\n")


async def test_key_is_in_no_output(real_engine, key):
    code, out, err = await ask("Hi", "--url", real_engine.url, "--max-tokens", "2", "-v")
    assert code == 0
    assert key not in out.decode() + err


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
async def test_terminal_sees_progress_then_the_answer_alone(term, at, monkeypatch):
    monkeypatch.setenv("TERM", term)
    screen, terminal = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *command("Say hello to everybody.", *at),
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = await asyncio.to_thread(_read_all, screen)
    assert await process.wait() == 0
    assert b"reading the prompt" in shown
    assert b"tok/s" in shown
    redrawn = re.search(rb"reading the prompt: 100%[^\r\n]*\r\x1b\[K", shown)
    assert (redrawn is not None) == (term != "dumb")


def _read_all(descriptor: int) -> bytes:
    shown = b""
    try:
        while piece := os.read(descriptor, 4096):
            shown += piece
    except OSError:
        pass  # Linux ends a terminal with EIO
    os.close(descriptor)
    return shown
