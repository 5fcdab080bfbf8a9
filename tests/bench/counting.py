"""What an exact count costs by the length of the text, and how long it holds up the event loop.

    python tests/bench/counting.py [--model smollm2-135m]

For 10 KB to 10 MB: seconds of the bare request to the engine's tokenizer, of the count as the app
does it, and of the same count asked again; MB a second; and the longest that a timer of 5 ms on the
same event loop was late meanwhile.
"""

import argparse
import asyncio
import json
import time

import httpx
from own_home import own_home

SIZES = (10_000, 100_000, 1_000_000, 4_000_000, 10_000_000)
SENTENCE = "In room {n} the clerk keeps {m} ledgers, which nobody has opened since day {d}.\n"


def text_of(size: int) -> str:
    lines = [SENTENCE.format(n=n, m=n * 7 % 91, d=n * 13 % 365) for n in range(size // 60)]
    return "".join(lines)[:size]


class Lag:
    """The longest that the event loop was held up, in seconds."""

    async def __aenter__(self) -> "Lag":
        self.longest = 0.0
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0.02)
        self.longest = 0.0
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.02)
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            self.longest = max(self.longest, time.perf_counter() - began - 0.005)


async def measure(model: str) -> list[dict[str, object]]:
    from app.core.shelf.counting import Counter
    from engine_bridge.contract import EngineSpec
    from engine_bridge.engine import open_engine, wait_until_ready

    spec = EngineSpec(model=model, context_tokens=2048)
    engine = await open_engine(spec)
    rows = []
    try:
        await engine.start(spec)
        await wait_until_ready(engine)
        at = engine.endpoint
        for size in SIZES:
            text = text_of(size)
            body = json.dumps({"content": text, "parse_special": True}).encode()
            began = time.perf_counter()
            async with httpx.AsyncClient(timeout=300) as http:
                bare = await http.post(f"{at.base_url}/tokenize", content=body, headers=at.headers)
            bare_s = time.perf_counter() - began
            counter = Counter()
            async with Lag() as lag:
                began = time.perf_counter()
                tokens = await counter.text(text, engine)
                count_s = time.perf_counter() - began
            began = time.perf_counter()
            assert await counter.text(text, engine) == tokens
            again_s = time.perf_counter() - began
            assert tokens == bare.content.count(b",") + 1
            rows.append(
                {
                    "bytes": size,
                    "tokens": tokens,
                    "bare_s": round(bare_s, 3),
                    "count_s": round(count_s, 3),
                    "MB_per_s": round(size / count_s / 1e6, 2),
                    "again_s": round(again_s, 4),
                    "loop_late_ms": round(1000 * lag.longest, 1),
                }
            )
    finally:
        await engine.stop()
        await engine.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2-135m")
    given = parser.parse_args()
    with own_home():
        for row in asyncio.run(measure(given.model)):
            print(json.dumps(row))


if __name__ == "__main__":
    main()
