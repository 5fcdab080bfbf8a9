"""What the embedded engine's optimisations bring for one model on this machine, and cost.

    python tests/bench/optimisations.py MODEL.gguf [--rounds 3] [--quality]

Starts one engine for the model as shipped and one for each optimisation, lets them take turns,
and prints tokens per CPU second of the engine process, off -> on, with the median of the
ratios of each round. `--quality` compares what they say instead: next-token choices along the
shipped model's greedy answers to twenty short prompts.
Rewritten models go to the user's derived folder; set LING_CHAT_MODELS to keep them elsewhere.
"""

import argparse
import math
import statistics
import sys
import threading
from pathlib import Path
from typing import Any

from engine_bridge.backends.llamacpp import convert, switches, trial
from engine_bridge.backends.llamacpp.probe import Form
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors

SHIPPED = Form("as shipped")
FORMS = (
    Form("not repacked", no_extra_bufts=True),
    Form("cpu-layout Q8_0", layers="Q8_0"),
    Form("light-head Q8_0", head="Q8_0"),
    Form("light-head Q4_0", head="Q4_0"),
)
DOCUMENT = """The lease of the north hall begins on 1 March and runs for three years. The tenant
pays 4,200 a month, due on the third working day, and heating by the meter in the cellar. Two
keys are handed over against signature; a lost key costs 180. The hall may be used for rehearsal
and storage, not for sales. Walls may be painted in light colours. The landlord inspects the
roof each spring and gives notice a week before. Either side may end the lease with six months'
notice to the end of a quarter, in writing. Repairs under 250 are the tenant's, all others the
landlord's. Bicycles stand in the yard, never in the stairwell. Snow is cleared by the caretaker.
"""
REWRITE = "Repeat the following text word for word, but write 'agreement' instead of 'lease'.\n\n"
PROMPTS = (
    "What is the capital of Norway?",
    "Name three primary colours.",
    "Write a haiku about rain.",
    "Explain photosynthesis in two sentences.",
    "What is 17 times 23?",
    "Translate 'good morning' into French.",
    "Write a Python function that reverses a string.",
    "Who wrote Hamlet?",
    "List the planets in order from the sun.",
    "Give a synonym of 'quick'.",
    "What does HTTP stand for?",
    "Write an SQL query that counts the rows of table users.",
    "Summarise: The cat sat on the mat because it was warm.",
    "What is the boiling point of water in Fahrenheit?",
    "Write a polite refusal of an invitation.",
    "Which is heavier, a kilogram of iron or of feathers?",
    "Convert 5 kilometres to miles.",
    "Write a bash command that finds files above 1 MB.",
    "What colour results from mixing blue and yellow?",
    "Give one fact about the Moon.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quality", action="store_true")
    args = parser.parse_args()
    try:
        run(args)
    except BridgeError as error:
        sys.exit(str(error))


def run(args: argparse.Namespace) -> None:
    gguf = tensors.read(args.model)
    forms = [SHIPPED]
    forms += [f for f in FORMS if not (f.recipe.changes and convert.unsupported(gguf, f.recipe))]
    if args.quality:
        forms = [f for f in forms if f is SHIPPED or f.recipe.changes]
    orders = [order(args, form) for form in forms]
    names = [form.title for form in forms]
    if not args.quality:
        orders.append(
            order(args, SHIPPED)
            | {
                "speculation": switches.SPECULATION,
                "draft_match": switches.DRAFT_MATCH,
                "draft_tokens": switches.DRAFT_TOKENS,
            }
        )
        names.append("ngram")
    with trial.runners(orders, threading.Event()) as engines:
        pairs = dict(zip(names, engines, strict=True))
        (quality if args.quality else speed)(pairs, args.rounds)


def order(args: argparse.Namespace, form: Form) -> dict[str, Any]:
    model = args.model
    if form.recipe.changes:
        model = convert.convert(model, form.recipe, lambda _: None)
    return {
        "model": str(model),
        "n_ctx": 4096,
        "n_threads": args.threads,
        "no_extra_bufts": form.no_extra_bufts,
    }


def speed(engines: dict[str, trial.Runner], rounds: int) -> None:
    tasks = {"prefill": prefill, "decode": decode, "rewrite": rewrite}
    figures: dict[tuple[str, str], list[float]] = {}
    for engine in engines.values():
        engine.cpu_seconds(64, 4)
    for _ in range(rounds):
        for task, measure in tasks.items():
            for name, engine in engines.items():
                if task == "rewrite" and name not in ("as shipped", "ngram"):
                    continue
                figures.setdefault((task, name), []).append(measure(engine))
    print(f"{'':24}{'off':>9}{'on':>9}{'ratio':>8}   tokens per CPU second")
    for (task, name), on in figures.items():
        off = figures[task, "as shipped"]
        ratio = statistics.median(a / b for a, b in zip(on, off, strict=True))
        if name != "as shipped":
            both = f"{statistics.median(off):9.2f}{statistics.median(on):9.2f}"
            print(f"{task:8} {name:<22}{both}{ratio:7.2f}x   {[round(x, 2) for x in on]}")
    print("accept length of the rewrites:", ACCEPT)


def prefill(engine: trial.Runner) -> float:
    return 1024 / engine.cpu_seconds(1024, 1)


def decode(engine: trial.Runner) -> float:
    return 48 / engine.cpu_seconds(8, 48)


ACCEPT: list[float] = []


def rewrite(engine: trial.Runner) -> float:
    """Tokens per CPU second of an answer that repeats the document; its prompt is cached."""
    ask = {"messages": [{"role": "user", "content": REWRITE + DOCUMENT}], "temperature": 0}
    post(engine, "/v1/chat/completions", ask | {"max_tokens": 1})
    before = engine.spent()
    timings = post(engine, "/v1/chat/completions", ask | {"max_tokens": 128})["timings"]
    made, accepted = timings["predicted_n"], timings.get("draft_n_accepted", 0)
    if timings.get("draft_n"):
        ACCEPT.append(round(made / (made - accepted), 2))
    return float(made / (engine.spent() - before))


def quality(engines: dict[str, trial.Runner], _: int) -> None:
    """Follow the shipped model's answers; at every fourth token ask each form for the next."""
    shipped = engines["as shipped"]
    same: dict[str, list[bool]] = {name: [] for name in engines}
    shift: dict[str, list[float]] = {name: [] for name in engines}
    whole: dict[str, list[bool]] = {name: [] for name in engines}
    for question in PROMPTS:
        chat = {"messages": [{"role": "user", "content": question}]}
        prompt = post(shipped, "/apply-template", chat)["prompt"]
        start = post(shipped, "/tokenize", {"content": prompt, "parse_special": True})["tokens"]
        answer = greedy(shipped, start, 48)
        for name, engine in engines.items():
            whole[name].append(greedy(engine, start, 48) == answer)
            for at in range(0, len(answer), 4):
                token, logprob = choice(engine, start + answer[:at], answer[at])
                same[name].append(token == answer[at])
                shift[name].append(logprob)
    for name in engines:
        delta = [abs(a - b) for a, b in zip(shift[name], shift["as shipped"], strict=True)]
        print(
            f"{name:<22} next token as shipped {100 * statistics.mean(same[name]):6.1f}%"
            f"   |change of its logprob| {statistics.mean(delta):.3f}"
            f"   48-token answers equal {sum(whole[name])}/{len(PROMPTS)}"
        )


def greedy(engine: trial.Runner, prompt: list[int], n: int) -> list[int]:
    body = {"prompt": prompt, "n_predict": n, "temperature": 0, "return_tokens": True}
    return list(post(engine, "/completion", body)["tokens"])


def choice(engine: trial.Runner, prompt: list[int], token: int) -> tuple[int, float]:
    """The most likely next token, and the log-probability of `token` (-10 if far down)."""
    body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 40}
    first = post(engine, "/completion", body)["completion_probabilities"][0]
    listed = {t["id"]: t["logprob"] for t in first["top_logprobs"]}
    best = max(listed, key=lambda t: listed[t] if math.isfinite(listed[t]) else -math.inf)
    return best, float(listed.get(token, -10.0))


def post(engine: trial.Runner, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = engine.client.post(path, json=body)
    answer.raise_for_status()
    return dict(answer.json())


if __name__ == "__main__":
    main()
