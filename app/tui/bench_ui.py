"""What the transcript costs, in CPU seconds of one run; `ling-chat bench ui` prints it.

Everything is measured in this process on a screen that nobody sees, drawing included. Times of two
runs or two machines cannot be compared; the ratios of one run can.
"""

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

from textual import events
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Markdown, TextArea

from app.tui.transcript.entries import Entry, Reply, UserEntry
from app.tui.transcript.view import Transcript

SIZE = (120, 36)
PIECE = 12
"""Characters of a flush: what a fast model says in 50 ms."""
FLUSHES = 60
RATE, PER_TOKEN = 150, 4
"""Tokens a second of the stream beside which keys are typed, and characters of a token."""
SAMPLE = """## Section {n}

A paragraph with **bold**, *emphasis*, `code` and [a link](https://example.org/{n}) that goes on for
long enough to be wrapped on the screen, as paragraphs of answers usually do. 中文也在其中。

1. First point of the list, $x_{n}$
2. Second point
   - nested under it

```python
def f{n}(x: int) -> int:
    return x + {n}  # a comment
```

| a | b |
|---|---|
| {n} | value |

"""


def sample(length: int) -> str:
    """Markdown of this many characters that ends somewhere in a block."""
    text, number = "", 0
    while len(text) < length:
        text += SAMPLE.replace("{n}", str(number))
        number += 1
    return text[:length]


def conversation(messages: int) -> list[Entry]:
    """So many messages as they come out of the store: questions and answers in turn."""
    entries: list[Entry] = []
    for number in range(messages // 2):
        entries.append(UserEntry(f"Question {number}, of some length and with 中文 in it?"))
        entries.append(Reply.stored(sample(400 + 37 * (number % 40))))
    return entries


class Editor(TextArea):
    """Tells when what was typed is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._letters = 0
        self._drawn = asyncio.Event()

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if len(self.text) >= self._letters:
            self._drawn.set()
        return strip

    async def key_ms(self) -> float:
        """Wall ms from a letter's arrival to its drawing."""
        self._letters = len(self.text) + 1
        self._drawn.clear()
        began = time.perf_counter()
        self.app.post_message(events.Key("x", "x"))
        await self._drawn.wait()
        return 1000 * (time.perf_counter() - began)


class Stage(App[None]):
    """One widget on an empty screen, drawn as the app draws it."""

    CSS_PATH = str(resources.files("app.tui") / "transcript/transcript.tcss")

    def __init__(self, is_peer: bool = False) -> None:
        super().__init__()
        self._is_peer = is_peer
        self.transcript, self.markdown, self.editor = Transcript(), Markdown(), Editor()

    def compose(self) -> ComposeResult:
        if self._is_peer:
            with VerticalScroll():
                yield self.markdown
        else:
            yield self.transcript
            self.editor.styles.height = 3
            yield self.editor


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage of what was built before is no cost of what is measured."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def _cpu_ms(work: Callable[[], Awaitable[object]]) -> float:
    began = time.process_time()
    await work()
    return 1000 * (time.process_time() - began)


async def _median_flush_ms(pilot: Pilot[None], flush: Callable[[str], Awaitable[object]]) -> float:
    """Of one flush with its drawing, without what the measuring costs."""
    text = "\n\n" + sample(PIECE * FLUSHES)

    async def one(piece: str) -> None:
        await flush(piece)
        await pilot.pause()

    with _no_collection():
        costs = [
            await _cpu_ms(lambda at=at: one(text[at : at + PIECE]))  # type: ignore[misc]
            for at in range(0, len(text), PIECE)
        ]
        idle = [await _cpu_ms(pilot.pause) for _ in range(20)]
    return statistics.median(costs) - statistics.median(idle)


def _fill(view: Transcript, length: int) -> Reply:
    reply = Reply()
    view.append(reply)
    text = sample(length)
    for at in range(0, length, 2_000):
        reply.feed(text[at : at + 2_000])
        view.flush()
    return reply


async def flush_ms(length: int) -> float:
    """CPU ms of a flush of 12 characters at the end of a reply of `length` characters."""
    app = Stage()
    async with app.run_test(size=SIZE) as pilot:
        reply = _fill(app.transcript, length)
        await pilot.pause()

        async def flush(piece: str) -> None:
            reply.feed(piece)
            app.transcript.flush()

        return await _median_flush_ms(pilot, flush)


async def peer_flush_ms(length: int) -> float:
    """The same of Textual's own Markdown widget."""
    app = Stage(is_peer=True)
    async with app.run_test(size=SIZE) as pilot:
        await app.markdown.update(sample(length))
        await pilot.pause()

        async def flush(piece: str) -> None:
            await app.markdown.append(piece)
            app.query_one(VerticalScroll).scroll_end(animate=False)

        return await _median_flush_ms(pilot, flush)


async def resize_ms(length: int) -> float:
    """CPU ms from a new width until the screen shows it, with a reply of `length` characters."""
    app = Stage()
    async with app.run_test(size=SIZE) as pilot:
        _fill(app.transcript, length).finish()
        app.transcript.flush()
        await pilot.pause(0.5)
        costs = []
        for width in (100, 80, 120):
            gc.collect()
            costs.append(await _cpu_ms(lambda width=width: pilot.resize_terminal(width, SIZE[1])))  # type: ignore[misc]
            await pilot.pause(0.5)
        return statistics.median(costs)


async def open_ms(messages: int) -> float:
    """CPU ms from the turns of a stored session to its end on the screen."""
    app = Stage()
    async with app.run_test(size=SIZE) as pilot:
        entries_first = conversation(4)
        app.transcript.load(entries_first)  # parsers and styles are there
        await pilot.pause()

        async def show() -> None:
            app.transcript.load(conversation(messages))
            await pilot.pause()

        gc.collect()
        return await _cpu_ms(show)


@contextmanager
def _busy_cores() -> Iterator[None]:
    """Every core has other work, as when an engine runs on them."""
    work = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(work) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


async def busy_key_ms(messages: int, seconds: float) -> dict[str, float]:
    """`key_ms` while all cores are busy."""
    with _busy_cores():
        return await key_ms(messages, seconds)


async def key_ms(messages: int, seconds: float) -> dict[str, float]:
    """Wall ms from a key to its painted letter, while a reply streams beside `messages` others."""
    app = Stage()
    async with app.run_test(size=SIZE) as pilot:
        app.transcript.load(conversation(messages))
        reply = Reply()
        app.transcript.append(reply)
        app.editor.focus()
        await pilot.pause()
        text, at = sample(int(seconds * RATE * PER_TOKEN) + PER_TOKEN), 0
        times: list[float] = []
        began = time.perf_counter()
        next_key = began + 0.2
        while (now := time.perf_counter()) - began < seconds:
            due = int((now - began) * RATE) * PER_TOKEN
            if due > at:
                reply.feed(text[at:due])
                app.transcript.touch()
                at = due
            if now >= next_key:
                times.append(await app.editor.key_ms())
                next_key = now + 0.1
            await asyncio.sleep(1 / RATE)
        cut = statistics.quantiles(times, n=20)
        return {"p50": statistics.median(times), "p95": cut[-1]}


async def memory_mb(tokens: int) -> dict[str, float]:
    """MB by which a session of `tokens` tokens grows the process after its first quarter, when the
    lines that are kept have their number, and the MB of text that come in meanwhile."""
    import psutil

    process = psutil.Process()
    app = Stage()
    async with app.run_test(size=SIZE) as pilot:
        at_quarter = 0.0
        replies = 40
        for number in range(replies):
            app.transcript.append(UserEntry(f"question {number}"))
            _fill(app.transcript, tokens * PER_TOKEN // replies).finish()
            app.transcript.flush()
            await pilot.pause()
            if number == replies // 4 - 1:
                gc.collect()
                at_quarter = process.memory_info().rss
        gc.collect()
        grown = (process.memory_info().rss - at_quarter) / 1e6
        text = sum(len(e.text.encode()) for e in app.transcript.entries if isinstance(e, Reply))
        return {"grown": grown, "text": 0.75 * text / 1e6}


async def _alone(tokens: int) -> dict[str, float]:
    """`memory_mb` in a process of its own: one that had more before would not be seen to grow."""
    code = (
        "import asyncio, json; from app.tui.bench_ui import memory_mb;"
        f" print(json.dumps(asyncio.run(memory_mb({tokens}))))"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    return dict(json.loads(out))


async def measure(tell: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """All of it. `tell` is told what is being measured; `quick` leaves the slow peer out."""
    found: dict[str, Any] = {}

    async def take(name: str, work: Awaitable[Any]) -> Any:
        tell(name)
        found[name] = await work
        return found[name]

    small = await take("flush_2000_ms", flush_ms(2_000))
    large = await take("flush_100000_ms", flush_ms(100_000))
    found["flush_growth"] = large / small
    if not quick:
        peer = await take("textual_markdown_flush_30000_ms", peer_flush_ms(30_000))
        found["flush_share_of_textual_markdown"] = large / peer
    await take("resize_50000_ms", resize_ms(50_000))
    await take("open_2000_messages_ms", open_ms(2_000))
    seconds = 3.0 if quick else 10.0
    await take("key_to_paint_ms", key_ms(200, seconds))
    keys = await take("key_to_paint_on_busy_cores_ms", busy_key_ms(200, seconds))
    found["key_to_paint_p95_ms"] = keys["p95"]
    await take("memory_of_200000_tokens_mb", _alone(20_000 if quick else 200_000))
    return found


TARGETS: dict[str, float] = {
    "flush_growth": 2.0,
    "flush_share_of_textual_markdown": 1 / 20,
    "resize_50000_ms": 150.0,
    "open_2000_messages_ms": 300.0,
    "key_to_paint_p95_ms": 50.0,
}
"""What each figure is to be at most."""
