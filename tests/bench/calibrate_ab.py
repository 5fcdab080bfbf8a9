"""Whether `bench ab` tells truth from noise: a switch that does nothing, and one that costs 10%.

    python tests/bench/calibrate_ab.py MODEL.gguf [--runs 20] [--only nothing|burner] [--out FILE]

Each run starts two engines of its own and decides as the command does. Prints one line a run and
the counts: "nothing" should be no difference in 20 of 20, "burner" a loss in 19 of 20. `--out`
keeps every reading, for tests/benchmarks/recorded_noise.jsonl.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from bench_backends import with_burner, with_nothing

from app.bench import ab, tasks
from app.bench.engines import pair_for
from engine_bridge.contract import EngineSpec
from engine_bridge.errors import BridgeError

FIND = {"nothing": with_nothing, "burner": with_burner}


async def compare(model: str, toggle: str) -> ab.Comparison:
    spec = EngineSpec(model=model, context_tokens=1024, optimisations={"ngram": False})
    pair = await pair_for(spec, toggle, find=FIND[toggle])
    try:
        settings = ab.Settings(max_tokens=48)
        return await ab.compare(pair, toggle, "chat", tasks.questions("chat"), settings)
    finally:
        await pair.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", choices=list(FIND))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    for toggle in [args.only] if args.only else list(FIND):
        counts: Counter[str] = Counter()
        for run in range(args.runs):
            began = time.time()
            try:
                comparison = asyncio.run(compare(args.model, toggle))
            except BridgeError as error:
                print(f"{toggle} {run}: {error}", flush=True)
                continue
            ratio, interval = comparison.ratio() or (0.0, None)
            assert interval is not None
            verdict = ab.outcome(ratio, interval)
            counts[verdict.value] += 1
            span = f"[{interval.low:.3f}, {interval.high:.3f}]"
            readings = sum(len(each.off) for each in comparison.answers)
            took = f"{time.time() - began:.0f} s, {readings} readings a side"
            print(f"{toggle} {run}: {ratio:.4f} {span} {verdict.value} ({took})", flush=True)
            if args.out:
                record(args.out, toggle, comparison)
        print(f"{toggle}: {dict(counts)}", flush=True)


def record(path: Path, toggle: str, comparison: ab.Comparison) -> None:
    """One line of JSON: the rates of each prompt, off and on."""
    rates = [
        [[sample.tokens_per_engine_s for sample in each.side(on)] for on in (False, True)]
        for each in comparison.answers
    ]
    with path.open("a") as file:
        run = {"toggle": toggle, "generations": comparison.generations, "rates": rates}
        file.write(json.dumps(run) + "\n")


if __name__ == "__main__":
    main()
