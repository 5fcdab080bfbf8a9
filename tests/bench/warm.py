"""How much of a document's prefill a user waits for: cold, at the second question, after warming.

    python tests/bench/warm.py [--tokens 2048] [--model qwen2.5-coder-0.5b] [--skip-warming]

Everything happens in one run of one engine with a home of its own, so nothing is kept from before:

- cold: a document of so many tokens and a question; TTFT, and how wrong the ETA was on the way;
- second: another question at once after the answer; the ratio of the two TTFTs;
- rested: one that comes when the app has read the answer's end (it does so by itself);
- typed: one that its user looked at for a moment before sending it, so that it was read, too;
- bare: what the engine alone needs for as many new tokens as each of these had;
- warmed: another document of the same length is attached and warmed while nobody asks (the user
  types for as long as it takes); what share of its prefill the question then does not wait for;
- interrupted: a third one, whose question comes halfway through the warm-up.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import time

from own_home import own_home

QUESTIONS = (
    "Who signed the lease?",
    "What does room 14 hold?",
    "When does it end?",
    "Who inspects the northern wall?",
)
ANSWER_TOKENS = 8
REST_S = 3.0


def text_of(seed: int, tokens: int) -> str:
    """English of about so many tokens, another from its first word on with each seed."""
    pick = random.Random(seed)
    who = ("the tenant", "the owner", "the keeper", "a visitor", "the clerk", "the court")
    does = ("holds", "signs", "returns", "describes", "refuses", "inspects", "repairs")
    what = ("the lease", "room", "the garden", "the northern wall", "the ledger", "the old key")
    lines, words = [], 0
    while words < tokens / 1.45:
        line = f"{pick.choice(who).capitalize()} {pick.choice(does)} {pick.choice(what)}"
        line += f" {pick.randrange(90)} on day {pick.randrange(30)} of the {pick.randrange(9)}th"
        line += " month, as the contract between both parties says."
        words += len(line.split())
        lines.append(line)
    return "\n".join(lines)


def eta_errors(seen: list[tuple[float, float, float]], ended: float) -> dict[str, float]:
    """From the second quarter on: error of the ETA as a share of the whole prefill, and of what
    was left (up to 90%, as at the end a batch is more than what is left). `seen` holds the share
    read, the time and the ETA."""
    begun = seen[0][1]
    whole = ended - begun
    later = [(share, ended - at, eta) for share, at, eta in seen if share >= 0.25]
    ofall = [abs(eta - left) / whole for _, left, eta in later]
    ofleft = [abs(eta - left) / left for share, left, eta in later if share <= 0.9 and left > 0]
    return {
        "points": len(later),
        "largest, of the whole": round(max(ofall), 3),
        "median, of what is left": round(statistics.median(ofleft), 3),
        "largest, of what is left": round(max(ofleft), 3),
    }


async def bare(engine, talk, new_tokens: int) -> float:
    """Seconds to the first token of the engine's own completion, with so many new tokens after
    what it has read of the conversation."""
    import httpx

    from engine_bridge.chat import warm
    from engine_bridge.chat.flavour import LLAMA_SERVER

    at = engine.endpoint
    async with httpx.AsyncClient(base_url=at.base_url, headers=at.headers, timeout=600) as http:

        async def post(path: str, body: dict[str, object]) -> dict[str, object]:
            return (await http.post(path, json=body)).json()

        prefix = await warm.prefix(at, LLAMA_SERVER, talk.messages(), http)
        words = " ".join(f"{n} clerks and {n % 7} keys" for n in range(new_tokens, 4 * new_tokens))
        known, new = [
            (await post("/tokenize", {"content": text, "parse_special": True}))["tokens"]
            for text in (prefix, words)
        ]
        body: dict[str, object] = {"prompt": known, "n_predict": 1, "temperature": 0}
        await post("/completion", body)
        began = time.monotonic()
        found = await post("/completion", body | {"prompt": known + new[:new_tokens]})
        took = time.monotonic() - began
        assert found["timings"]["prompt_n"] == new_tokens, found["timings"]
        return took


async def rest(warmer) -> None:
    """Do what a user does who reads an answer: nothing, for longer than the engine's status lags
    behind."""
    await asyncio.sleep(REST_S)
    while warmer.is_warming:
        await asyncio.sleep(0.02)


async def ask(talk, engine, question: str, warmer) -> dict[str, object]:
    from engine_bridge.chat.events import Prefill, Text

    seen, ended, began, waited = [], 0.0, time.monotonic(), 0.0
    async for event in talk.ask(question, engine):
        now = time.monotonic()
        warmer.take(event)
        if isinstance(event, Text) and not waited:
            waited = now - began
        if isinstance(event, Prefill) and event.eta_s is not None and event.share < 1:
            seen.append((event.share, now, event.eta_s))
        elif isinstance(event, Prefill | Text) and not ended:
            ended = now if isinstance(event, Text) or event.share == 1 else 0.0
    found = talk.turns[-1].timings
    told = {
        "prompt": found.prompt_tokens,
        "cached": found.cached_tokens,
        "waited_s": round(waited, 3),
        "ttft_s": round(found.ttft_s, 3),
        "queue_s": round(found.queue_s or 0, 3),
        "prefill_s": round(found.prefill_s or 0, 3),
        "first_token_s": round(found.first_token_s or 0, 3),
    }
    if len(seen) > 4:
        told["eta"] = eta_errors(seen, ended)
    return told


async def measure(model: str, tokens: int, skip_warming: bool) -> dict[str, object]:
    from app.core.chat.conversation import Conversation, Parameters
    from app.core.documents import document_from_bytes
    from app.core.shelf.cached import Warm
    from app.core.shelf.counting import Counter
    from app.core.shelf.warming import Warmer
    from engine_bridge.contract import EngineSpec
    from engine_bridge.engine import open_engine, wait_until_ready

    def about(seed: int) -> Conversation:
        talk = Conversation(parameters=Parameters(max_tokens=ANSWER_TOKENS, temperature=0))
        talk.attach(document_from_bytes(text_of(seed, tokens).encode(), f"paper {seed}.txt"))
        talk.counter = counter
        return talk

    counter = Counter()
    spec = EngineSpec(model=model, context_tokens=tokens + 1024)
    engine = await open_engine(spec)
    running = asyncio.create_task(asyncio.sleep(0))
    try:
        await engine.start(spec)
        await wait_until_ready(engine)
        talk = about(1)
        current = [talk]
        warmer = Warmer(engine, lambda: current[0], counter)
        running = asyncio.create_task(warmer.run())
        warmer.hold()
        found: dict[str, object] = {"cold": await ask(talk, engine, QUESTIONS[0], warmer)}
        found["second"] = await ask(talk, engine, QUESTIONS[1], warmer)
        warmer.release()
        await rest(warmer)
        warmer.hold()
        found["rested"] = await ask(talk, engine, QUESTIONS[2], warmer)
        warmer.release()
        await rest(warmer)
        warmer.typed(QUESTIONS[3])
        await rest(warmer)
        warmer.hold()
        found["typed"] = await ask(talk, engine, QUESTIONS[3], warmer)
        cold = found["cold"]["ttft_s"]
        for name in ("second", "rested", "typed"):
            new = found[name]["prompt"] - found[name]["cached"]
            alone = await bare(engine, talk, new)
            found[name] |= {
                "new": new,
                "cold / this": round(cold / found[name]["ttft_s"], 1),
                "bare_s": round(alone, 3),
                "cold / bare": round(cold / alone, 1),
            }
        warmer.release()
        if skip_warming:
            return found
        current[0] = about(2)
        for name, enough in (("warmed", 1.0), ("interrupted", 0.5)):
            document = current[0].documents[0].sha256
            began = time.monotonic()
            warmer.poke()
            while warmer.warmth(document).share < enough:
                await asyncio.sleep(0.02)
            warming_s = time.monotonic() - began
            warmer.hold()
            answer = await ask(current[0], engine, QUESTIONS[0], warmer)
            warmer.release()
            waited = answer["ttft_s"]
            found[name] = answer | {
                "warming_s": round(warming_s, 2),
                "hidden": round(warming_s / (warming_s + waited), 4),
                "hidden of cold": round(1 - waited / cold, 4),
            }
            assert warmer.warmth(document).state is Warm.WARM
            current[0] = about(3)
        return found
    finally:
        running.cancel()
        await engine.stop()
        await engine.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--skip-warming", action="store_true")
    given = parser.parse_args()
    with own_home():
        found = asyncio.run(measure(given.model, given.tokens, given.skip_warming))
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
