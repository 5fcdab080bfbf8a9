"""What the app sends to the terminal: bytes a second while a reply streams and while idle.

    python tests/bench/bytes.py [--rate 50] [--seconds 15] [--sizes 80x24 120x36 200x50]
                                [--terms xterm-256color xterm linux] [--through "ssh -t HOST"]

Starts the real app in a pseudo-terminal, attached to a server of this script that streams words
at a steady rate, here and as over SSH. A "frame" is what the app writes within one update (DEC
mode 2026 brackets it), or, where what is in between does not pass that on, what comes without a
pause of GAP_S. `--through` is a command that runs what follows it in a terminal of its own (ssh,
mosh, screen, tmux): then what that sends is counted. A line of 9,600 bit/s carries 960 bytes a
second, 56,000 carries 5,600.
"""

import argparse
import contextlib
import itertools
import json
import os
import pty
import random
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

GAP_S = 0.015
FRAME, ASKED, ANSWER = b"\x1b[?2026h", b"\x1b[?2026$p", "\x1b[?2026;2$y"
WORDS = [
    "the",
    "ship",
    "sailed",
    "over",
    "a",
    "calm",
    "sea",
    "while",
    "its",
    "crew",
    "slept",
    "and",
    "the",
    "captain",
    "wrote",
    "letters",
    "home",
]


class Server(BaseHTTPRequestHandler):
    """Streams words, paragraphs and a list now and then, as fast as `rate` says."""

    rate: ClassVar[float] = 50.0

    def do_GET(self) -> None:
        self._begin("application/json")
        self.wfile.write(b'{"object": "list", "data": [{"id": "paced", "object": "model"}]}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._begin("text/event-stream")
        choose, began = random.Random(1), time.monotonic()
        try:
            for number in itertools.count(1):
                time.sleep(max(0.0, began + number / self.rate - time.monotonic()))
                end = "\n\n" if number % 60 == 0 else "\n- " if number % 20 == 0 else " "
                delta = {"content": choose.choice(WORDS) + end}
                piece = {"choices": [{"index": 0, "delta": delta}]}
                self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
                self.wfile.flush()
        except OSError:
            return

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be silent."""


class Terminal:
    """A pseudo-terminal that keeps what it gets, and can show a frame at once."""

    step_s, patience_s = 0.1, 30.0

    def __init__(self, argv: list[str], columns: int, rows: int, env: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        self.bursts, self._last = 0, 0.0
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)

    def read(self, seconds: float) -> bytes:
        """What comes within this time."""
        found, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                found += os.read(self.master, 1 << 16)
                now = time.monotonic()
                self.bursts += now - self._last > GAP_S
                self._last = now
                if ASKED in found[-200:]:
                    self.write(ANSWER)  # yes, it can show a frame at once
        return found

    def until(self, text: bytes) -> bytes:
        """What comes until this text has come. Raises TimeoutError."""
        seen, end = b"", time.monotonic() + self.patience_s
        while text not in seen:
            if time.monotonic() > end:
                raise TimeoutError(f"{text!r} did not appear in {seen[-2000:]!r}")
            seen += self.read(self.step_s)
        return seen

    def write(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.write("\x11")  # the app may live in a server of its own
            self.read(2)
        self.process.terminate()
        self.process.wait(10)
        os.close(self.master)


@contextmanager
def serving(rate: float) -> Iterator[str]:
    Server.rate = rate
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def measure(
    url: str, size: str, way: str, seconds: float, colours: str, term: str, through: str
) -> None:
    columns, rows = map(int, size.split("x"))
    env = {k: v for k, v in os.environ.items() if k not in ("SSH_CONNECTION", "SSH_TTY", "TMUX")}
    env |= {"TERM": term, "COLORTERM": colours, "LING_CHAT_LANGUAGE": "en"}
    if not colours:
        del env["COLORTERM"]
    if way == "SSH":
        env["SSH_CONNECTION"] = "192.0.2.1 50000 192.0.2.2 22"
    argv = [*shlex.split(through), sys.executable, "-m", "app", "--url", url]
    terminal = Terminal(argv, columns, rows, env)
    try:
        began = time.monotonic()
        terminal.until(b"Type a question")
        start_s = time.monotonic() - began
        terminal.read(3)
        idle = terminal.read(seconds)
        terminal.write("Tell me a story.\r")
        terminal.read(3)
        terminal.bursts = 0
        streaming = terminal.read(seconds)
        frames = streaming.count(FRAME) or terminal.bursts
        terminal.write("\x1b")
        terminal.read(3)
        after = terminal.read(seconds)
    finally:
        terminal.close()
    print(
        f"{size:>8}  {way:<8}{term:<16}{colours or 'no COLORTERM':<13}"
        f"{len(idle) / seconds:>10,.0f}{len(streaming) / seconds:>12,.0f}"
        f"{frames / seconds:>10.1f}{len(streaming) / max(1, frames):>10,.0f}"
        f"{len(after) / seconds:>10,.0f}   first frame {start_s:.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=50.0, help="tokens/s")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--sizes", nargs="*", default=["80x24", "120x36", "200x50"])
    parser.add_argument("--colours", nargs="*", default=["truecolor", ""])
    parser.add_argument("--terms", nargs="*", default=["xterm-256color"])
    parser.add_argument("--through", default="", help="a command in whose terminal the app runs")
    args = parser.parse_args()
    print(
        f"{'size':>8}  {'line':<8}{'TERM':<16}{'colours':<13}{'idle B/s':>10}{'stream B/s':>12}"
        f"{'frames/s':>10}{'B/frame':>10}{'idle B/s':>10}"
    )
    with serving(args.rate) as url, tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            os.environ[f"XDG_{kind}_HOME"] = f"{home}/{kind.lower()}"
        name = args.through.split(" ")[0].rpartition("/")[2]
        ways = [name[:7]] if name else ["here", "SSH"]
        for each in itertools.product(args.terms, args.colours, args.sizes, ways):
            term, colours, size, way = each
            measure(url, size, way, args.seconds, colours, term, args.through)


if __name__ == "__main__":
    main()
