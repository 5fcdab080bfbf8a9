"""Whether `bench ab` tells truth from noise: a switch that does nothing, and one that costs 10%.

    python tests/bench/calibrate_ab.py MODEL.gguf [--runs 20] [--out FILE]

Each run starts two engines of its own and decides as the command does, the two switches by turns.
Prints one line a run and the counts: "nothing" should be no difference in 20 of 20, "burner" a loss
in 19 of 20. `--out` keeps every reading, and the same call goes on where it was broken off.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from bench_backends import with_burner, with_nothing

from app.bench import ab, tasks
from app.bench.engines import pair_for
from engine_bridge.contract import EngineSpec
from engine_bridge.errors import BridgeError

FIND = {"nothing": with_nothing, "burner": with_burner}
TOKENS = 12
"""Of an answer: short, so that the two sides take turns often."""


async def compare(model: str, toggle: str) -> ab.Comparison:
    spec = EngineSpec(model=model, context_tokens=1024, optimisations={"ngram": False})
    pair = await pair_for(spec, toggle, find=FIND[toggle])
    try:
        settings = ab.Settings(max_tokens=TOKENS)
        return await ab.compare(pair, toggle, "chat", tasks.questions("chat"), settings)
    finally:
        await pair.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = args.out.read_text().splitlines() if args.out and args.out.exists() else []
    runs = [json.loads(line) for line in lines]
    while open_ := [t for t in FIND if sum(run["toggle"] == t for run in runs) < args.runs]:
        toggle = min(open_, key=lambda each: sum(run["toggle"] == each for run in runs))
        began = time.time()
        try:
            comparison = asyncio.run(compare(args.model, toggle))
        except BridgeError as error:
            sys.exit(f"{toggle}: {error}")
        runs.append(run := record(comparison, time.time() - began))
        if args.out:
            with args.out.open("a") as file:
                file.write(json.dumps(run) + "\n")
        low, high = run["interval"]
        print(
            f"{toggle} {sum(each['toggle'] == toggle for each in runs)}: {run['ratio']:.3f}"
            f" [{low:.3f}, {high:.3f}] {run['verdict']} ({run['seconds']} s, {run['turns']} turns)",
            flush=True,
        )
    for toggle in FIND:
        print(toggle, dict(Counter(run["verdict"] for run in runs if run["toggle"] == toggle)))


def record(comparison: ab.Comparison, seconds: float) -> dict[str, Any]:
    """What was decided, and the rates of each prompt, off and on, in tokens per CPU second."""
    found = comparison.effect.ratio()
    assert found is not None
    ratio, interval = found
    rates = [
        [[round(sample.tokens_per_engine_s or 0, 2) for sample in each.side(on)] for on in (0, 1)]
        for each in comparison.answers
    ]
    return {
        "toggle": comparison.toggle,
        "verdict": comparison.effect.outcome().value,
        "ratio": round(ratio, 4),
        "interval": [round(interval.low, 4), round(interval.high, 4)],
        "turns": comparison.turns,
        "seconds": round(seconds),
        "rates": rates,
    }


if __name__ == "__main__":
    main()
