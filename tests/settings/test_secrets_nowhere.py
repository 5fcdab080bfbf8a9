"""A secret is where it is kept, and nowhere else: not in a file, a log, an argv or an export."""

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import psutil
import pytest

from engine_bridge import secrets
from engine_bridge.models.registry import HubSource
from engine_bridge.models.sources import hub_remote

TOKEN, KEY = "hf_verysecrettoken", "sk-verysecretkey"


class Server(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that wants the key and streams one word."""

    seen: ClassVar[list[str]] = []
    argvs: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._answer(b'{"object": "list", "data": [{"id": "m", "object": "model"}]}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Server.argvs += [
            " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])
        ]
        self._answer(
            b'data: {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}\n\n'
            b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
            b"data: [DONE]\n\n",
            "text/event-stream",
        )

    def _answer(self, body: bytes, kind: str = "application/json") -> None:
        Server.seen.append(self.headers.get("Authorization", ""))
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self.send_error(401, f"no such key: {self.headers.get('Authorization')}")
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "app", *arguments]
    env = {key: value for key, value in os.environ.items() if key != "HF_TOKEN"}
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=False, env=env)


def test_a_secret_is_in_no_file_but_its_own(home: Path, url: str) -> None:
    said = [
        run("key", "hub", given=TOKEN),
        run("key", url, given=KEY),
        run("ask", "--url", url, "-v", "--json", "Is it secret?"),
        run("--plain", "--url", url, given="Is it secret?\n/engine\n"),
        run("sessions", "export", "--format", "json"),
        run("key", "http://127.0.0.1:1", given=KEY),
        run("ask", "--url", "http://127.0.0.1:1", "--debug", "Is it secret?"),
        run("doctor"),
        run("engine", "logs"),
    ]
    assert f"Bearer {KEY}" in Server.seen
    assert '"Yes."' in said[2].stdout, said[2].stderr
    doctor = said[7].stdout
    assert "a key for the model hub is in" in doctor
    own = secrets.file()
    assert own.stat().st_mode & 0o077 == 0
    assert TOKEN in own.read_text()
    for each in said:
        assert TOKEN not in each.stdout + each.stderr
        assert KEY not in each.stdout + each.stderr
    assert Server.argvs
    assert not any(TOKEN in each or KEY in each for each in Server.argvs)
    files = [each for each in home.rglob("*") if each.is_file() and each != own]
    assert any(each.name == "sessions.db" for each in files)
    for each in files:
        data = each.read_bytes()
        assert TOKEN.encode() not in data, each
        assert KEY.encode() not in data, each


def test_doctor_tells_a_file_of_secrets_that_others_can_read(home: Path) -> None:
    run("key", "hub", given=TOKEN)
    secrets.file().chmod(0o644)
    found = run("doctor")
    assert found.returncode == 1
    assert f"chmod 600 {secrets.file()}" in found.stdout
    assert run("key", "hub", "--forget").returncode == 0
    assert "no key for the model hub" in run("doctor").stdout


def test_a_download_takes_the_hubs_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    source = HubSource(kind="hub", repo="a/b", file="c.gguf", revision="main")
    assert "Authorization" not in hub_remote(source, 1, None).headers
    secrets.store(secrets.HUB_TOKEN, TOKEN)
    remote = hub_remote(source, 1, None)
    assert remote.headers["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in repr(remote)
