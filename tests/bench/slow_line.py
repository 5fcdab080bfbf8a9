"""How the app feels on a slow line: from a key to its letter, and from Esc to the end of a reply.

    python tests/bench/slow_line.py [--lines 1200 2400 9600] [--rate 50] [--keys 20]
                                    [--sizes 80x24 120x36]

Starts the real app as over SSH in a pseudo-terminal that takes so many bytes a second and answers
questions once it has read them, attached to the server of bytes.py, and types a letter every two
seconds while words stream. The bytes are those of the streaming.
"""

import argparse
import itertools
import os
import random
import select
import statistics
import sys
import tempfile
import time

from bytes import ANSWER, ASKED, Terminal, serving

STEP_S = 0.02
KEY_EVERY_S = 2.0
WELL, IT_IS = b"\x1b[5n", "\x1b[0n"
LETTERS = "éßøñ"
"""In neither the interface, nor the story, nor an escape sequence."""


class SlowTerminal(Terminal):
    """Reads `line` bytes a second."""

    step_s, patience_s = STEP_S, 60.0

    def __init__(self, line: int, argv: list[str], size: str, env: dict[str, str]) -> None:
        columns, rows = map(int, size.split("x"))
        super().__init__(argv, columns, rows, env)
        self._line, self._free_at, self._tail = line, 0.0, b""

    def read(self, seconds: float) -> bytes:
        found, end = b"", time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if now < self._free_at or not select.select([self.master], [], [], STEP_S)[0]:
                time.sleep(STEP_S / 4)
                continue
            piece = os.read(self.master, max(1, int(self._line * STEP_S)))
            self._free_at = max(self._free_at, now - STEP_S) + len(piece) / self._line
            found += piece
            seen = self._tail + piece
            for asked, answer in ((ASKED, ANSWER), (WELL, IT_IS)):
                if asked in seen:
                    self.write(answer)
                    seen = seen.rpartition(asked)[2]
            self._tail = seen[-8:]
        return found


def measure(url: str, line: int, size: str, keys: int) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("SSH_TTY", "TMUX", "STY")}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LING_CHAT_LANGUAGE": "en"}
    env["SSH_CONNECTION"] = "192.0.2.1 50000 192.0.2.2 22"
    terminal = SlowTerminal(line, [sys.executable, "-m", "app", "--url", url], size, env)
    times: list[float] = []
    try:
        terminal.until(b"Type a question")
        terminal.read(5)
        terminal.write("Tell me a story.\r")
        terminal.read(10)
        began, sent, choose = time.monotonic(), 0, random.Random(1)
        for number in range(keys):
            sent += len(terminal.read(max(0.0, began + number * KEY_EVERY_S - time.monotonic())))
            letter, pressed = choose.choice(LETTERS), time.monotonic()
            terminal.write(letter)
            sent += len(terminal.until(letter.encode()))
            times.append(time.monotonic() - pressed)
        speed = sent / (time.monotonic() - began)
        pressed = time.monotonic()
        terminal.write("\x1b")
        terminal.until(b"Stopped")
        stopped = time.monotonic() - pressed
    finally:
        terminal.close()
    p95 = statistics.quantiles(times, n=20)[-1]
    print(
        f"{line:>8}{size:>9}{statistics.median(times):>11.2f}{p95:>9.2f}{max(times):>9.2f}"
        f"{stopped:>9.2f}{speed:>9,.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, nargs="*", default=[1200, 2400, 9600])
    parser.add_argument("--rate", type=float, default=50.0, help="tokens/s")
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--sizes", nargs="*", default=["80x24"])
    args = parser.parse_args()
    print(
        f"{'line B/s':>8}{'size':>9}{'key p50 s':>11}{'p95 s':>9}{'max s':>9}{'Esc s':>9}{'B/s':>9}"
    )
    with serving(args.rate) as url, tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            os.environ[f"XDG_{kind}_HOME"] = f"{home}/{kind.lower()}"
        for line, size in itertools.product(args.lines, args.sizes):
            measure(url, line, size, args.keys)


if __name__ == "__main__":
    main()
