"""ling-chat side by side with oterm and parllama: the CPU of a streamed reply, and key latency.

    python tests/bench/peers.py [--folder DIR] [--tokens 1500] [--rate 60] [--only NAME ...]

Each peer is installed from PyPI into an environment of its own in DIR, started in a pseudo-terminal
of 120x36, and given the same reply by the same server: a **replay**, which knows Ollama's and
OpenAI's protocols and streams a fixed text at a fixed rate, so that no model's speed or words
differ. While the reply streams, a letter is typed four times a second. A peer that could not be
driven is told as such. Run it on an idle machine; only the ratios of one run mean something.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pexpect
import psutil
from keys import LINE, LOOK_BACK, echo

from app.tui.bench_ui import sample

ROWS, COLUMNS = 36, 120
KEY_EVERY_S = 0.25
LETTERS = "éßøñ"
MODEL = "replay:latest"
DETAILS = {
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "1B",
    "quantization_level": "Q4_0",
    "parent_model": "",
}


class Replay(ThreadingHTTPServer):
    """Streams the same text to whoever asks, four characters a token."""

    daemon_threads = True

    def __init__(self, tokens: int, rate: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        text = sample(4 * tokens)
        self.tokens = [text[at : at + 4] for at in range(0, len(text), 4)]
        self.rate = rate
        self.began, self.ended = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Replay

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, found: Any, code: int = 200) -> None:
        body = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        model = {"name": MODEL, "model": MODEL, "size": 1, "digest": "0" * 64, "details": DETAILS}
        found = {
            "/api/tags": {"models": [model | {"modified_at": "2026-01-01T00:00:00Z"}]},
            "/api/version": {"version": "0.12.0"},
            "/api/ps": {"models": []},
            "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]},
            "/health": {"status": "ok"},
        }.get(self.path)
        self._answer(found or {}, 200 if found else 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path == "/api/show":
            info = {"general.architecture": "llama", "llama.context_length": 8192}
            self._answer({"details": DETAILS, "model_info": info, "capabilities": ["completion"]})
        elif self.path in ("/api/chat", "/v1/chat/completions"):
            self._stream(self.path == "/api/chat", bool(body.get("stream", True)))
        else:
            self._answer({}, 404)

    def _stream(self, ollama: bool, streams: bool) -> None:
        if not streams:
            message = {"role": "assistant", "content": "Title"}
            self._answer({"model": MODEL, "message": message, "done": True})
            return
        self.send_response(200)
        kind = "application/x-ndjson" if ollama else "text/event-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.server.began.set()
        began = time.monotonic()
        for number, token in enumerate(self.server.tokens):
            self.wfile.write(self._piece(ollama, token))
            time.sleep(max(0.0, began + number / self.server.rate - time.monotonic()))
        self.wfile.write(self._end(ollama))
        self.close_connection = True
        self.server.ended.set()

    def _piece(self, ollama: bool, token: str) -> bytes:
        if ollama:
            message = {"role": "assistant", "content": token}
            found = {"model": MODEL, "created_at": "2026-01-01T00:00:00Z", "message": message}
            return json.dumps(found | {"done": False}).encode() + b"\n"
        choice = {"index": 0, "delta": {"role": "assistant", "content": token}}
        found = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
        return b"data: " + json.dumps(found | {"choices": [choice]}).encode() + b"\n\n"

    def _end(self, ollama: bool) -> bytes:
        if ollama:
            message = {"role": "assistant", "content": ""}
            found = {"model": MODEL, "created_at": "2026-01-01T00:00:00Z", "message": message}
            return json.dumps(found | {"done": True, "done_reason": "stop"}).encode() + b"\n"
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        found = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
        return (
            b"data: " + json.dumps(found | {"choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"
        )


def click(column: int, row: int) -> str:
    """A press and release of the mouse, as terminals send it."""
    return f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"


@dataclass
class Peer:
    """How an app is started and brought to the point where a question can be typed."""

    name: str
    argv: Callable[[Path, str], list[str]]
    environment: Callable[[Path, str], dict[str, str]]
    prepare: Callable[[Path], None]
    ready: str
    """What its screen shows when it has started."""
    steps: list[str | float] = field(default_factory=list)
    """What is typed then, and seconds to wait."""
    send: str = "\r"


def _oterm_files(home: Path) -> None:
    (home / "config.json").write_text('{"splash-screen": false}')


def _parllama_files(home: Path) -> None:
    config = {"provider": "Ollama", "model_name": MODEL, "temperature": 0.5, "num_ctx": 2048}
    found = {"last_llm_config": config, "show_first_run": False, "use_last_tab_on_startup": False}
    (home / "settings.json").write_text(json.dumps(found))


PEERS = [
    Peer(
        "ling-chat",
        lambda _home, url: [sys.executable, "-m", "app", "--engine", "attach", "--url", url],
        lambda _home, _url: {},
        lambda _home: None,
        "sk anything",
        [2.0],
    ),
    Peer(
        "oterm",
        lambda home, _url: [str(home.parent / "oterm-env/bin/oterm")],
        lambda home, url: {"OTERM_DATA_DIR": str(home), "OLLAMA_URL": url, "OLLAMA_HOST": url},
        _oterm_files,
        "new chat",
        [
            *[2.0, "\x0e", 3.0, "\r", 1.0, "\r", 1.0, "\t", MODEL, 1.0, "\t", 0.5, "\x1b[B", "\r"],
            *[1.0, click(12, 32), 3.0],
        ],
    ),
    Peer(
        "parllama",
        lambda home, url: [
            *[str(home.parent / "parllama-env/bin/parllama"), "-d", str(home), "-u", url],
            *["-s", "chat", "-p", "0", "--use-last-tab-on-startup", "0"],
        ],
        lambda _home, url: {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OLLAMA_HOST": url},
        _parllama_files,
        "Type a message",
        [6.0, "\r", 2.0, click(20, 34), 1.0],
        click(108, 34),
    ),
]


def install(name: str, folder: Path) -> None:
    """Into an environment of its own, byte-compiled as pip does it."""
    place = folder / f"{name}-env"
    if place.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--compile", name]
    subprocess.run(pip, check=True)


def cpu_seconds(pid: int) -> float:
    """Of a process and its children."""
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


class Counted:
    """What an app writes to its terminal, counted."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, text: str) -> None:
        self.bytes += len(text.encode("utf-8", "replace"))

    def flush(self) -> None:
        pass


def measure(peer: Peer, folder: Path, tokens: int, rate: float) -> dict[str, float]:
    """One streamed reply. Raises pexpect.TIMEOUT or TimeoutError where the app does not follow."""
    server = Replay(tokens, rate)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = folder / f"{peer.name}-home"
    home.mkdir(exist_ok=True)
    peer.prepare(home)
    environment = os.environ | {"HOME": str(home), "TERM": "xterm-256color"}
    environment |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA")}
    environment |= peer.environment(home, server.url)
    argv = peer.argv(home, server.url)
    app = pexpect.spawn(
        argv[0],
        argv[1:],
        dimensions=(ROWS, COLUMNS),
        encoding="utf-8",
        env=environment,
        timeout=90,
    )
    app.delaybeforesend = None
    counted = Counted()
    try:
        app.expect_exact(peer.ready)
        for step in peer.steps:
            if isinstance(step, str):
                app.send(step)
            _read(app, step if isinstance(step, float) else 0.3)
        app.send("Tell me everything.")
        _read(app, 0.5)
        app.send(peer.send)
        if not server.began.wait(20):
            raise TimeoutError("it asked the server for nothing")
        app.logfile_read = counted  # type: ignore[assignment]
        before, began = cpu_seconds(app.pid or 0), time.monotonic()
        times = _type(app, server.ended, 2 * tokens / rate + 60)
        _read(app, 2.0)
        spent = cpu_seconds(app.pid or 0) - before
        cut = statistics.quantiles(times, n=20) if len(times) > 1 else [float("nan")]
        return {
            "cpu_s_per_1000_tokens": 1000 * spent / tokens,
            "key_p50_ms": statistics.median(times) if times else float("nan"),
            "key_p95_ms": cut[-1],
            "kB_per_1000_tokens": counted.bytes / tokens,
            "keys": len(times),
            "late_s": time.monotonic() - began - 2.0 - tokens / rate,
        }
    finally:
        app.terminate(force=True)
        server.shutdown()
        server.server_close()


def _read(app: "pexpect.spawn[str]", seconds: float) -> None:
    """Take what the app writes, so that it is never kept waiting."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(pexpect.TIMEOUT):
            app.read_nonblocking(65536, timeout=0.1)


def _type(app: "pexpect.spawn[str]", ended: threading.Event, most_s: float) -> list[float]:
    """Type letters until the reply has ended; the ms each took to appear."""
    times: list[float] = []
    typed, until = "", time.monotonic() + most_s
    while not ended.is_set() and time.monotonic() < until:
        if len(typed) == LINE:
            app.send("\x7f" * LINE)
            typed = ""
            _read(app, 1.0)
        typed += LETTERS[len(typed) * 7 % len(LETTERS)] if len(typed) % 3 else LETTERS[0]
        took = echo(app, typed)
        if took is not None and len(typed) >= LOOK_BACK:
            times.append(1000 * took)
        _read(app, KEY_EVERY_S)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "ling-peers")
    parser.add_argument("--tokens", type=int, default=1500)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=[peer.name for peer in PEERS])
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for peer in PEERS:
        if peer.name not in args.only:
            continue
        if peer.name != "ling-chat":
            install(peer.name, args.folder)
        try:
            found = measure(peer, args.folder.resolve(), args.tokens, args.rate)
            rows.append((peer.name, found, ""))
        except (pexpect.ExceptionPexpect, TimeoutError) as error:
            rows.append((peer.name, {}, f"could not be driven: {str(error).splitlines()[0]}"))
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{args.tokens} tokens at {args.rate:g}/s, Textual {version('textual')}, load {load}")
    heads = ("CPU s/1000 tok", "key p50 ms", "key p95 ms", "kB/1000 tok", "late s")
    print(f"{'':12}" + "".join(f"{head:>16}" for head in heads))
    for name, found, problem in rows:
        if problem:
            print(f"{name:12}{problem}")
            continue
        figures = [found["cpu_s_per_1000_tokens"], found["key_p50_ms"], found["key_p95_ms"]]
        figures += [found["kB_per_1000_tokens"], found["late_s"]]
        print(f"{name:12}" + "".join(f"{figure:16.2f}" for figure in figures))


if __name__ == "__main__":
    main()
