"""Ling-3.0-flash's optimisations on one GPU, run by the product's own host, profile and plugin.

    matrix.py OUT RUN[@ATTENTION]... [--within SECONDS] [--bridge RUN...] [--then COMMAND]

For a machine with SGLang but without the weights: the model has Ling's dimensions and random
weights, so times, memory and shapes are real and text is not; the accept length is what SGLang is
told to simulate. Nothing else differs from a user's start: flags, environment, plugin and polling
are the product's; `@triton` names an attention backend the way a user would.

Each run leaves OUT/RUN.json, written after every step, and OUT/RUN.log. The same call again goes on
where the time of the last one ended. At the end one table is printed of everything in OUT. Only
ratios within one visit mean anything.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
for folder in (ROOT, ROOT / "tests" / "sglang_plugin"):
    sys.path.insert(0, str(folder))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
import tiny_models  # noqa: E402

from engine_bridge import paths  # noqa: E402
from engine_bridge.backends.sglang.backend import EXTRA  # noqa: E402
from engine_bridge.backends.sglang.profile import attention_of  # noqa: E402
from engine_bridge.backends.sglang.switches import (  # noqa: E402
    FP8_HEAD,
    HUMMING,
    NEXTN,
    OF_THE_PLUGIN,
    SPLIT,
)
from engine_bridge.contract import EngineSpec  # noqa: E402
from engine_bridge.engine import wait_until_ready  # noqa: E402
from engine_bridge.host import statefile  # noqa: E402
from engine_bridge.host.client import HostedEngine  # noqa: E402

SIMULATE = {"SGLANG_SIMULATE_ACC_LEN": "", "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token"}
LEAST_S = 130.0
"""No engine is started with less time left: an H200 takes 90 s to start one, 25 to measure."""
GONE_S = 25.0
PAIRS = 5
"""Of generations with and without the bridge, one after the other."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is on, the accept length to simulate, and whether the model has its SwiGLU limits."""

    on: frozenset[str] = frozenset()
    accept: float | None = None
    limits: bool = True


ALL = frozenset({HUMMING, FP8_HEAD, NEXTN, SPLIT})
RUNS = {
    "none": Run(),
    "humming": Run(frozenset({HUMMING})),
    "humming-fp8": Run(frozenset({HUMMING, FP8_HEAD})),
    "humming-nextn": Run(ALL - {FP8_HEAD}, 2.68),
    "all": Run(ALL, 2.68),
    "all-3.90": Run(ALL, 3.90),
    "unsplit": Run(ALL - {SPLIT}, 2.68),
    "unclamped": Run(frozenset({HUMMING}), limits=False),
}


@dataclass
class Book:
    """What one run showed, in its file after every step."""

    path: Path
    seen: dict[str, Any] = field(default_factory=dict)

    def note(self, **facts: Any) -> None:
        self.seen |= facts
        self.path.write_text(json.dumps(self.seen, indent=1))


@dataclass(frozen=True, slots=True)
class Client:
    """Sends token ids to one engine and times what comes back."""

    http: httpx.AsyncClient
    engine: HostedEngine
    vocabulary: int
    chosen: random.Random

    def prompt(self, tokens: int) -> list[int]:
        """Ids never used before, so that no prefix is cached."""
        most = self.vocabulary
        return [self.chosen.randrange(most // 4, most * 3 // 4) for _ in range(tokens)]

    async def generate(self, ids: list[int], tokens: int) -> dict[str, Any]:
        """One streamed answer: TTFT (s), decode tokens/s, time of a round (ms), accept length."""
        sampling = {"max_new_tokens": tokens, "temperature": 0.6, "top_p": 0.95, "top_k": 20,
                    "ignore_eos": True}  # fmt: skip
        body = {"input_ids": ids, "sampling_params": sampling, "stream": True}
        first, last = 0.0, ""
        begin = time.perf_counter()
        async with self.http.stream("POST", "/generate", json=body) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    first = first or time.perf_counter()
                    last = line
        seconds = time.perf_counter() - first
        meta = json.loads(last[6:])["meta_info"]
        made = meta["completion_tokens"]
        drafted = meta.get("spec_verify_ct")
        rounds = drafted or made - 1
        return {
            "ttft_s": round(first - begin, 3),
            "tokens_per_s": round((made - 1) / seconds, 2),
            "round_ms": round(1000 * seconds / rounds, 3),
            "accept_length": round(made / drafted, 3) if drafted else None,
        }


def configure(run: Run, attention: str) -> None:
    """The environment of the host to come: what a machine without the weights needs, no more."""
    named = f"--attention-backend {attention} " if attention else ""
    os.environ[EXTRA] = f"{named}--load-format dummy"
    for name, value in SIMULATE.items():
        os.environ.pop(name, None)
        if run.accept is not None:
            os.environ[name] = value or str(run.accept)


def model_folder(run: Run) -> Path:
    """Ling's dimensions under its own name; without limits under another."""
    config = dict(tiny_models.LING_FLASH)
    if not run.limits:
        config["expert_swiglu_limit_list"] = [0] * 42
    name = "Ling-3.0-flash-fp4" if run.limits else "Ling-3.0-flash-fp4-unclamped"
    return tiny_models.write(paths.state_dir() / "matrix-models" / name, config)


async def measure(book: Book, name: str, client: Client, options: argparse.Namespace) -> None:
    """Everything one ready engine is asked for."""
    engine = client.engine
    status = engine.status
    state = statefile.read()
    assert state is not None
    book.note(
        ready_s=status.start_s,
        phases=[phase.model_dump(mode="json") for phase in status.phases],
        command=state.engine_command,
        proof_at_start=[each.model_dump(mode="json") for each in status.optimisations],
        prompts={},
        live={},
    )
    if name in options.bridge:
        book.note(bridge=await bridge_cost(client, state.pid, options.tokens * 2))
    for prompt in options.prompts:
        times = 3 if prompt <= 2048 else 2
        runs = [await client.generate(client.prompt(prompt), options.tokens) for _ in range(times)]
        book.seen["prompts"][prompt] = runs
        book.seen["live"][prompt] = {
            each.id: {"note": each.note, "live": each.evidence.get("live")}
            for each in engine.status.optimisations
            if each.id == NEXTN
        }
        book.note(load=engine.status.load.model_dump(mode="json"))
    if options.then:
        book.note(then=await beside(engine, options.then))
    proof = (await engine.verify()).optimisations
    book.note(proof=[each.model_dump(mode="json") for each in proof])
    info = (await client.http.get("/server_info")).json()["internal_states"][0]
    book.note(inside={key: value for key, value in info.items() if key != "api_key"})


async def bridge_cost(client: Client, host: int, tokens: int) -> dict[str, Any]:
    """Decode tokens/s with the host polling as ever and with the host suspended, by turns."""
    ids = client.prompt(1024)
    await client.generate(ids, 64)
    found: dict[str, list[float]] = {"polled": [], "alone": []}
    for _ in range(PAIRS):
        for how, speeds in found.items():
            if how == "alone":
                os.kill(host, signal.SIGSTOP)
            try:
                speeds.append((await client.generate(ids, tokens))["tokens_per_s"])
            finally:
                os.kill(host, signal.SIGCONT)
    ratios = [one / other for one, other in zip(*found.values(), strict=True)]
    return found | {"ratios": [round(each, 4) for each in ratios]}


async def beside(engine: HostedEngine, command: str) -> str:
    """What a shell command prints that finds the ready engine in its environment."""
    assert engine.endpoint is not None
    found = {
        "LING_CHAT_URL": engine.endpoint.base_url,
        "LING_CHAT_API_KEY": engine.endpoint.api_key,
    }
    process = await asyncio.create_subprocess_shell(
        command, env=os.environ | found, stdout=asyncio.subprocess.PIPE, stderr=sys.stderr
    )
    printed, _ = await process.communicate()
    return printed.decode()


def is_done(path: Path) -> bool:
    """Whether a run needs no second try: it was measured, or failed otherwise than for time."""
    with contextlib.suppress(OSError, ValueError):
        seen = json.loads(path.read_text())
        return "inside" in seen or not seen.get("failed", "TimeoutError").startswith("TimeoutError")
    return False


async def perform(wanted: str, options: argparse.Namespace, deadline: float) -> None:
    """One engine from start to end; whatever goes wrong is written down."""
    name, _, attention = wanted.partition("@")
    run = RUNS[name]
    book = Book(options.out / f"{wanted}.json")
    book.note(name=name, attention=attention, began=time.time(), accept=run.accept)
    configure(run, attention)
    model = options.model or model_folder(run)
    spec = EngineSpec(
        backend="sglang", model=str(model), optimisations={x: x in run.on for x in OF_THE_PLUGIN}
    )
    engine = await HostedEngine.open()
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            await engine.start(spec)
            await wait_until_ready(engine)
            assert engine.endpoint is not None
            vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
            async with httpx.AsyncClient(
                base_url=engine.endpoint.base_url, headers=engine.endpoint.headers, timeout=600
            ) as http:
                client = Client(http, engine, vocabulary, random.Random(wanted))
                await measure(book, wanted, client, options)
    except Exception as error:
        traceback.print_exc()
        book.note(failed=f"{type(error).__name__}: {error}", phase=engine.status.phase)
    finally:
        await engine.close()
        gone = time.monotonic() + GONE_S
        while statefile.host_lives() and time.monotonic() < gone:
            await asyncio.sleep(0.2)
        log = paths.log_dir() / "sglang.log"
        if log.exists():
            shutil.move(log, options.out / f"{wanted}.log")
        book.note(ended=time.time())


def table(folder: Path) -> None:
    """All runs in the folder: speeds, then the bridge's cost, then the proof."""
    found = (json.loads(path.read_text()) for path in folder.glob("*.json"))
    runs = [seen for seen in found if "began" in seen]
    runs.sort(key=lambda each: each["began"])
    plain = {
        (_attention(seen).partition("+")[0], prompt): _median(answers)
        for seen in runs
        if seen["name"] == "humming"
        for prompt, answers in seen.get("prompts", {}).items()
    }
    print("| run | attention | prompt | decode tok/s | (least–most) | Humming alone = 1 | round ms "
          "| accept | TTFT s | ready s |\n|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for seen in runs:
        if not seen.get("prompts"):
            why = seen.get("failed", "cut short")
            print(f"| {seen['name']} | {_attention(seen)} | did not run: {why} |")
        for prompt, answers in seen.get("prompts", {}).items():
            speeds = [each["tokens_per_s"] for each in answers]
            base = plain.get((_attention(seen).partition("+")[0], prompt))
            ratio = f"{_median(answers) / base:.2f}" if base else "–"
            last = answers[-1]
            print(
                f"| {seen['name']} | {_attention(seen)} | {prompt} | {_median(answers):.1f} "
                f"| {min(speeds):.1f}–{max(speeds):.1f} | {ratio} | {last['round_ms']} "
                f"| {last['accept_length'] or '–'} | {last['ttft_s']} | {seen['ready_s']:.0f} |"
            )
    for seen in runs:
        if bridge := seen.get("bridge"):
            polled, alone = (statistics.median(bridge[how]) for how in ("polled", "alone"))
            print(
                f"\nThe bridge, {seen['name']}: {polled:.2f} tokens/s polled, {alone:.2f} alone: "
                f"{100 * (1 - polled / alone):+.2f}% (pairs {min(bridge['ratios']):.4f}–"
                f"{max(bridge['ratios']):.4f})"
            )
    for seen in runs:
        proof = seen.get("proof") or seen.get("proof_at_start") or ()
        verdicts = ", ".join(f"{each['id']} {each['verdict']}" for each in proof)
        print(f"\n{seen['name']} @ {_attention(seen)}: {verdicts or 'no proof'}")


def _median(answers: list[dict[str, float]]) -> float:
    return statistics.median(each["tokens_per_s"] for each in answers)


def _attention(seen: dict[str, Any]) -> str:
    """The backends that SGLang was started with."""
    return attention_of(seen.get("command", []))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=", ".join(RUNS))
    parser.add_argument("--within", type=float, default=3600, help="seconds for all of them")
    parser.add_argument("--bridge", nargs="*", default=["humming"], help="measure its cost there")
    parser.add_argument("--then", help="shell command to run beside each engine that is measured")
    parser.add_argument("--prompts", type=int, nargs="*", default=[1024, 8192, 30_000])
    parser.add_argument("--tokens", type=int, default=384)
    parser.add_argument("--model", type=Path, help="another model's folder, to try the script")
    options = parser.parse_args()
    if unknown := {each.partition("@")[0] for each in options.runs} - set(RUNS):
        parser.error(f"no such run: {', '.join(sorted(unknown))}")
    deadline = time.monotonic() + options.within
    options.out.mkdir(parents=True, exist_ok=True)
    for wanted in options.runs:
        if is_done(options.out / f"{wanted}.json"):
            continue
        if deadline - time.monotonic() < LEAST_S:
            print(f"no time left for {wanted}", flush=True)
            continue
        began = time.monotonic()
        await perform(wanted, options, deadline - GONE_S)
        print(f"{wanted}: {time.monotonic() - began:.0f} s", flush=True)
    table(options.out)


if __name__ == "__main__":
    asyncio.run(main())
