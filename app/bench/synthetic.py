"""A load of random text at chosen lengths: TTFT, TPOT and throughput at one context length.

Random text cannot be compressed or guessed, and begins differently each time, so no cache helps
the prefill. What a model then writes is another matter: it repeats itself as no answer to a
question would, which flatters speculation. The report says so.
"""

import math
import random
import string
from dataclasses import asdict, dataclass
from typing import Any

from app.bench.counters import counter_gap, counters
from app.bench.figures import figures
from app.bench.ledger import Ledger, Run
from app.bench.measure import Sample, measure, prompt_tokens
from app.bench.progress import Steps, Watch
from app.bench.setup import setup_of
from app.core.i18n import _
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.engine import Engine
from engine_bridge.errors import UsageError

KIND = "synthetic"
FLATTERS = _(
    "A synthetic load flatters speculation: text that goes on from random words repeats itself"
    " more than answers do. Judge speculation by `bench ab` or `bench gsm8k`."
)
TOLERANCE = 0.005
"""How much shorter, as a share, the prompt may be than asked for; longer it must not be, or it
would not fit where the context is just as long."""
SHORTEST = 16
"""Tokens of a prompt: a chat template needs some of its own."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths in tokens, `runs` requests one after the other, after one that is not counted."""

    input_tokens: int = 32_768
    output_tokens: int = 2_048
    runs: int = 3
    temperature: float = 0.0


async def run(
    engine: Engine, lengths: Lengths, ledger: Ledger | None = None, watch: Watch | None = None
) -> dict[str, Any]:
    """Measure a ready engine; the result as the ledger keeps it.

    Raises UsageError where the engine's context is too short, BridgeError where it refuses.
    """
    import asyncio

    status = engine.status
    _check_room(lengths, status.context_tokens)
    setup = await asyncio.to_thread(setup_of, status)
    record: Run | None = ledger.begin(KIND, asdict(lengths), setup) if ledger else None
    steps = Steps(lengths.runs, watch)
    steps.tell(_("warming up"))
    await measure(engine, _request("Count to ten.", lengths, 8))
    before = await counters(engine)
    samples: list[Sample] = []
    for number in range(lengths.runs):
        title = _("run {n} of {m}").format(n=number + 1, m=lengths.runs)
        steps.tell(title)
        prompt = await prompt_of(engine, lengths.input_tokens, random.SystemRandom())
        asked = _request(prompt, lengths, lengths.output_tokens)
        sample = await measure(engine, asked, steps.live(title))
        samples.append(sample)
        if ledger and record:
            ledger.keep(record, str(number), sample.as_dict() | {"text": "", "reasoning": ""})
        rate = sample.decode_tokens_per_s
        steps.did(title, f"{rate:.1f} tok/s" if rate else "")
    after = await counters(engine)
    result: dict[str, Any] = {
        "kind": KIND,
        **asdict(lengths),
        "figures": figures(samples),
        "counter_gap": counter_gap(before, after, samples),
        "note": FLATTERS,
        "setup": setup.as_dict(),
    }
    if ledger and record:
        ledger.finish(record, result)
    return result


def _check_room(lengths: Lengths, context: int | None) -> None:
    """Raises UsageError where both lengths do not fit, with the largest that do."""
    if context is None or lengths.input_tokens + lengths.output_tokens <= context:
        return
    room = context - lengths.output_tokens
    if room >= SHORTEST:
        out = lengths.output_tokens
        cure = _(
            "--input {room} is the most beside {out:,} out; or give a longer --context, where"
            " model and memory allow it."
        )
    else:
        out = max(context - lengths.input_tokens, context // 2)
        room = context - out
        cure = _(
            "--input {room} --output {out} would fit; or give a longer --context, where model and"
            " memory allow it."
        )
    raise UsageError(
        f"The engine's context of {context:,} tokens is too short for {lengths.input_tokens:,} in"
        f" and {lengths.output_tokens:,} out.",
        cure.format(room=room, out=out),
    )


def _request(prompt: str, lengths: Lengths, output: int) -> ChatRequest:
    return ChatRequest(
        (Message("user", prompt),),
        max_tokens=output,
        temperature=lengths.temperature,
        thinking=False,
        ignore_eos=True,
    )


async def prompt_of(engine: Engine, tokens: int, source: random.Random) -> str:
    """Random words of about `tokens` tokens, chat template included, never the same twice.

    Not longer, and shorter by half a percent at most, where the server can count; else by the
    usual 0.5 words a token.
    """
    words = [_word(source) for _ in range(max(8, tokens // 2))]
    empty = 0
    for _attempt in range(6):
        count = await prompt_tokens(engine, " ".join(words))
        if count is None:
            break
        if 0 <= tokens - count <= max(3, TOLERANCE * tokens):
            break
        if not empty:
            empty = await prompt_tokens(engine, "a") or 0
        per_word = max((count - empty) / len(words), 0.5)
        change = math.floor((tokens - count) / per_word)
        if change > 0:
            words += [_word(source) for _ in range(change)]
        elif change < 0:
            del words[max(1, len(words) + change) :]
        else:
            break
    return " ".join(words)


def _word(source: random.Random) -> str:
    return "".join(source.choices(string.ascii_lowercase, k=source.randint(2, 7)))
