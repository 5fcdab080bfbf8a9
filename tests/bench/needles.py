"""How often a model finds a fact in a long document: ten facts at ten depths, one question each.

    python tests/bench/needles.py [--model qwen2.5-coder-0.5b] [--tokens 2048] [--seeds 1]

A hit is an answer that holds the planted code. The document is read once; each question is a
conversation of its own and finds it in the engine's cache. That the facts reach the model is
tested elsewhere (tests/needle): a miss here is the model's.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from own_home import own_home

sys.path.insert(0, str(Path(__file__).parents[1] / "needle"))


async def measure(model: str, tokens: int, seeds: int) -> dict[str, object]:
    from needle_documents import haystack

    from app.core.chat.conversation import Conversation, Parameters
    from app.core.shelf.counting import Counter
    from engine_bridge.contract import EngineSpec
    from engine_bridge.engine import open_engine, wait_until_ready

    spec = EngineSpec(model=model, context_tokens=tokens + 1024)
    engine = await open_engine(spec)
    counter, rows = Counter(), []
    try:
        await engine.start(spec)
        await wait_until_ready(engine)
        for seed in range(1, seeds + 1):
            document, needles = haystack(tokens, seed)
            for needle in needles:
                talk = Conversation(parameters=Parameters(max_tokens=24, temperature=0))
                talk.counter = counter
                talk.attach(document)
                async for _ in talk.ask(needle.question, engine):
                    pass
                answer = talk.turns[-1]
                rows.append(
                    {
                        "seed": seed,
                        "depth": needle.depth,
                        "hit": needle.code in answer.text,
                        "asked": needle.code,
                        "answered": answer.text.strip()[:60],
                        "prompt": answer.timings.prompt_tokens,
                        "cached": answer.timings.cached_tokens,
                        "ttft_s": round(answer.timings.ttft_s, 2),
                    }
                )
                print(rows[-1], file=sys.stderr)
    finally:
        await engine.stop()
        await engine.close()
    hits = sum(row["hit"] for row in rows)
    return {"model": model, "tokens": tokens, "hits": hits, "of": len(rows), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    with own_home():
        print(json.dumps(asyncio.run(measure(given.model, given.tokens, given.seeds)), indent=1))


if __name__ == "__main__":
    main()
