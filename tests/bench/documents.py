"""How long documents feel in the app: pastes, the preview, completion; no engine is needed.

    python tests/bench/documents.py

First, in a real pseudo-terminal: the time from the first byte of a paste to its token on the
screen, and the app's CPU seconds, with our driver and with Textual's own. Then, in this process:
for how long each step holds the UI loop at most, in milliseconds of its thread's CPU time, so that
other programs do not count. Run it on an idle machine.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pexpect
import psutil

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
SLOW = 1_000_000
"""Characters beyond which Textual's own driver is not waited for."""
LINE = "The tenant pays 租金 on the first day of each month, and keeps the place in order. "
FILES = 50_000
APP = """
import sys
from app.core.settings.file import Settings
from app.tui.app import LingChat
from app.tui.driver import Driver
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine
app = LingChat(HostedEngine(lease=True), EngineSpec(), settings=Settings(), start=False)
if sys.argv[1] == "ours":
    app.driver_class = Driver
app.run()
"""


def paste(size: int, driver: str) -> tuple[float, float]:
    """Seconds from the first byte to the token on the screen, and the app's CPU seconds."""
    text = (LINE + "\r") * (size // (len(LINE) + 1) + 1)
    data = f"\x1b[200~{text[:size]}\x1b[201~".encode()
    app = pexpect.spawn(sys.executable, ["-c", APP, driver], dimensions=(36, 120), timeout=120)
    app.expect(b"sk anything")
    time.sleep(1.5)  # what is done after the first frame
    assert app.pid is not None
    process = psutil.Process(app.pid)
    before, began = sum(process.cpu_times()[:2]), time.perf_counter()
    while data:
        data = data[os.write(app.child_fd, data) :]
    app.expect(rb"\[pasted: [\d,]+ lines? #1\]")
    took = time.perf_counter() - began
    cpu = sum(process.cpu_times()[:2]) - before
    app.send("\x11")
    app.expect(pexpect.EOF)
    app.close()
    return took, cpu


@asynccontextmanager
async def watched(name: str) -> AsyncIterator[None]:
    """Print for how long the block held the loop at most, and how long it took."""
    worst, began = 0.0, time.perf_counter()

    async def beat() -> None:
        nonlocal worst
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            worst = max(worst, time.thread_time() - before)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0.005)
    try:
        yield
        await asyncio.sleep(0.005)
    finally:
        heart.cancel()
    took = time.perf_counter() - began
    print(f"{name:36} {worst * 1000:6.0f} ms at a time {took:8.2f} s in all")


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def steps(folder: Path) -> None:
    from textual import events

    from app.core.documents import Document
    from app.tui.app import LingChat
    from app.tui.screens.preview import PreviewScreen
    from engine_bridge.contract import EngineSpec
    from engine_bridge.host.client import HostedEngine

    page = (LINE * 3 + "\n") * 10
    text = page * (SIZES[-1] // len(page)) + "\na needle\n"
    pages = tuple(range(0, len(text) - len(page), len(page)))
    book = Document("book.pdf", text, "", "0" * 64, len(text), "pdf", pages)
    app = LingChat(HostedEngine(lease=True), EngineSpec(), start=False)
    async with app.run_test(size=(120, 36)) as pilot:
        composer = app._chat.composer
        await asyncio.sleep(4)  # all that is done after the start

        async def press(*keys: str) -> None:
            for key in keys:
                app.post_message(events.Key(key, key if len(key) == 1 else None))
                await asyncio.sleep(0.02)

        async with watched("key, nothing attached"):
            await press(*"hello world")
        async with watched("10 MB pasted"):
            composer.post_message(events.Paste(text))
            await until(lambda: "[pasted:" in composer.text)
        async with watched("10 MB sent as a document"):
            await press("enter")
            await until(lambda: app.conversation.documents)
            await asyncio.sleep(1.0)
        screen = PreviewScreen(book, app.glyphs)
        async with watched("10 MB opened in the preview"):
            app.push_screen(screen)
            await until(lambda: screen._view.text.starts)
            await asyncio.sleep(0.1)
        async with watched("40 pages down"):
            await press(*["pagedown"] * 40)
        async with watched("to the end and back"):
            await press("end", "home")
        async with watched("a search that runs to the end"):
            await press("slash", *"a needle")
            await asyncio.sleep(0.3)
        async with watched("a search with 120,000 matches"):
            await press("enter", "slash", *"the", "enter", "n", "n")
            await asyncio.sleep(0.3)
        async with watched("to page 1,000"):
            await press("g", *"1000", "enter")
        await app.pop_screen()
        os.chdir(folder)
        async with watched(f"@ in a repository of {FILES:,} files"):
            await press("ctrl+u", "@", *"m42f7")
            await until(lambda: composer.is_offering)
        async with watched("another letter"):
            await press("_")
            await until(lambda: composer.is_offering)
        await pilot.pause()


def repository(root: Path) -> Path:
    for number in range(FILES // 100):
        folder = root / f"src{number % 20}" / f"module_{number}"
        folder.mkdir(parents=True)
        for file in range(100):
            (folder / f"file_{file}_part.py").touch()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            os.environ[f"XDG_{kind}_HOME"] = f"{home}/{kind.lower()}"
        print("pasted        ours                     Textual's own driver")
        for size in SIZES:
            ours = paste(size, "ours")
            theirs = paste(size, "textual") if size <= SLOW else None
            line = f"{size / 1e6:5.2f} MB  {ours[0]:6.2f} s  {ours[1]:6.2f} s CPU"
            if theirs:
                line += f"   {theirs[0]:6.2f} s  {theirs[1]:6.2f} s CPU"
            print(line, flush=True)
        run: Awaitable[None] = steps(repository(Path(home, "repository")))
        asyncio.run(asyncio.wait_for(run, 120))
    if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        print("the machine was busy: take these figures for upper bounds")


if __name__ == "__main__":
    main()
