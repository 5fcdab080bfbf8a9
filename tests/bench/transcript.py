"""What drawing a streamed reply costs: per flush at several lengths, and beside Textual's Markdown.

Run it: python tests/bench/transcript.py
Everything is CPU time within this one run; only the ratios mean something.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from importlib import resources

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown

from app.tui.transcript.entries import Reply
from app.tui.transcript.view import Transcript

SAMPLE = """## Section {n}

A paragraph with **bold**, *emphasis*, `code` and [a link](https://example.org/{n}) that goes on for
long enough to be wrapped on the screen, as paragraphs of answers usually do. 中文也在其中。

1. First point of the list
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
PIECE = 12
"""Characters per flush: what a fast model says in 50 ms."""
FLUSHES = 60


def sample(length: int) -> str:
    """Markdown of this many characters that ends inside a paragraph."""
    text = ""
    number = 0
    while len(text) < length + 2_000:
        text += SAMPLE.format(n=number)
        number += 1
    return text[:length]


def tail() -> str:
    """What is streamed on top: the same for every length."""
    return "\n\n" + sample(PIECE * FLUSHES)


class Bench(App[None]):
    CSS_PATH = str(resources.files("app.tui") / "transcript/transcript.tcss")

    def __init__(self, other: bool = False) -> None:
        super().__init__()
        self._other = other

    def compose(self) -> ComposeResult:
        if self._other:
            with VerticalScroll():
                yield Markdown()
        else:
            yield Transcript()


async def _measure(flush: Callable[[str], Awaitable[None]]) -> float:
    """Median CPU milliseconds of a flush, drawing included."""
    text = tail()
    costs = []
    for at in range(0, len(text), PIECE):
        began = time.process_time()
        await flush(text[at : at + PIECE])
        costs.append(1000 * (time.process_time() - began))
    return statistics.median(costs)


async def ours(length: int) -> float:
    app = Bench()
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.query_one(Transcript)
        reply = Reply()
        view.append(reply)
        for at in range(0, length, 2_000):
            reply.feed(sample(length)[at : at + 2_000])
            view.flush()
        await pilot.pause()

        async def flush(piece: str) -> None:
            reply.feed(piece)
            view.flush()
            await pilot.pause()

        return await _measure(flush)


async def idle() -> float:
    """What the measuring itself costs."""
    app = Bench()
    async with app.run_test(size=(120, 36)) as pilot:

        async def flush(_piece: str) -> None:
            await pilot.pause()

        return await _measure(flush)


async def textuals(length: int) -> float:
    app = Bench(other=True)
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.query_one(Markdown)
        await view.update(sample(length))
        await pilot.pause()

        async def flush(piece: str) -> None:
            await view.append(piece)
            app.query_one(VerticalScroll).scroll_end(animate=False)
            await pilot.pause()

        return await _measure(flush)


async def main() -> None:
    base = await idle()
    figures = {f"ours_{length}": await ours(length) - base for length in (2_000, 10_000, 100_000)}
    figures["textual_10000"] = await textuals(10_000) - base
    print(
        json.dumps(
            {
                **{f"{name}_ms": round(value, 2) for name, value in figures.items()},
                "growth_2k_to_100k": round(figures["ours_100000"] / figures["ours_2000"], 2),
                "times_cheaper_than_textual_at_10k": round(
                    figures["textual_10000"] / figures["ours_10000"], 1
                ),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
