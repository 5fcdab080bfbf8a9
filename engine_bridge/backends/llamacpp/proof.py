"""What the running engine really does: the proof of each optimisation of the embedded engine."""

import asyncio
from typing import TYPE_CHECKING, Any

from engine_bridge.backends.base import Endpoint
from engine_bridge.backends.llamacpp import convert, switches
from engine_bridge.backends.llamacpp.counters import read_load
from engine_bridge.backends.llamacpp.opened import OpenFile, open_gguf_of
from engine_bridge.contract import Load, Optimisation, Verdict

if TYPE_CHECKING:
    import httpx

NOTHING_TO_DRAFT = "nothing to draft here"
"""The note of a speculation whose last reply repeated nothing that was said before."""

DRAFT_COUNTERS = ("draft_rounds", "drafted_tokens", "accepted_tokens")
_WORDS = " one two three four five six seven eight nine ten eleven twelve thirteen fourteen;"
"""ngram-simple wants a match that is older than it is long, in a context longer than match and
draft together: four of these are enough (about 60 tokens) up to llama.cpp's own 12 and 48."""


async def prove(
    optimisations: tuple[Optimisation, ...], pid: int, endpoint: Endpoint
) -> tuple[Optimisation, ...]:
    """The launch's optimisations with `observed`, `verdict` and `evidence`.

    `pid` is the process that has the model open. Asks the engine for one completion of 24
    tokens, unless it has drafted before or is answering somebody. Never raises: what cannot
    be seen is `unproven`.
    """
    opened = await asyncio.to_thread(open_gguf_of, pid)
    proven = [_weights(o, opened) for o in optimisations]
    return tuple(
        [await _speculation(o, endpoint, pid) if o.id == switches.NGRAM else o for o in proven]
    )


def _weights(o: Optimisation, opened: OpenFile | None) -> Optimisation:
    """cpu-layout and light-head: the tensor types in the file that the process has open."""
    if o.id not in (switches.CPU_LAYOUT, switches.LIGHT_HEAD):
        return o
    role = "layers" if o.id == switches.CPU_LAYOUT else "head"
    if opened is None:
        note = "The engine's open model file cannot be seen on this system."
        judged = o.requested and o.verdict is Verdict.UNPROVEN
        return o.model_copy(update={"observed": None, "note": note} if judged else {})
    types = opened.gguf.types(role)
    evidence = o.evidence | {"file": opened.path, "seen": opened.how, f"{role}_bytes": types}
    update: dict[str, Any] = {"observed": f"{role} {shares(types)}", "evidence": evidence}
    if o.requested and o.verdict in (Verdict.UNPROVEN, Verdict.VERIFIED, Verdict.FELL_BACK):
        update |= _judge(o, role, types)
    return o.model_copy(update=update)


def _judge(o: Optimisation, role: str, types: dict[str, int]) -> dict[str, Any]:
    if "wanted" not in o.evidence:  # the trial or the conversion failed; the note says why
        return {"verdict": Verdict.FELL_BACK}
    wanted = o.evidence["wanted"].get(role)
    if wanted is None or (wanted in types and not convert.CONVERTIBLE & (types.keys() - {wanted})):
        return {"verdict": Verdict.VERIFIED}
    note = f"The engine has a file open whose {role} are {shares(types)}, not {wanted}."
    return {"verdict": Verdict.FELL_BACK, "note": note}


def shares(types: dict[str, int]) -> str:
    """`{"Q5_0": 70, "Q6_K": 30}` as "Q5_0 70%, Q6_K 30%"; one type alone needs no share."""
    total = sum(types.values())
    if len(types) == 1:
        return next(iter(types))
    return ", ".join(f"{name} {100 * size / total:.0f}%" for name, size in types.items()) or "none"


async def _speculation(o: Optimisation, endpoint: Endpoint, pid: int) -> Optimisation:
    """ngram: what the engine says of its slots, and draft counters that move."""
    import httpx

    try:
        async with httpx.AsyncClient(
            base_url=endpoint.base_url, headers=endpoint.headers, timeout=120, trust_env=False
        ) as client:
            slots = (await client.get("/slots")).raise_for_status().json()
            on = any(slot.get("speculative") for slot in slots)
            evidence: dict[str, Any] = {"slots.speculative": on}
            observed = "speculative slots" if on else "slots without speculation"
            if not o.requested:
                update = {"observed": observed, "evidence": evidence}
                return o.model_copy(update=update | {"verdict": Verdict.OFF})
            if not on:
                update = {"observed": observed, "verdict": Verdict.FELL_BACK, "note": ""}
                return o.model_copy(update=update | {"evidence": evidence})
            evidence |= _kind(slots) | await _counters((endpoint, pid))
            busy = any(slot.get("is_processing") for slot in slots)
            if not evidence["draft_rounds"] and not busy:
                evidence |= await _make_it_draft(client, (endpoint, pid))
    except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
        note = f"The engine did not answer the question about it ({type(error).__name__})."
        return o.model_copy(update={"verdict": Verdict.UNPROVEN, "note": note})
    drafted, accepted = evidence["drafted_tokens"], evidence["accepted_tokens"]
    moved = drafted > 0
    kind = evidence.get("slots.speculative.types", "speculative")
    update = {
        "observed": f"{kind} slots, {drafted:.0f} tokens drafted, {accepted:.0f} accepted",
        "verdict": Verdict.VERIFIED if moved else Verdict.UNPROVEN,
        "evidence": o.evidence | evidence,
        "note": o.note if moved else "Nothing has been drafted yet.",
    }
    return o.model_copy(update=update)


async def _counters(running: tuple[Endpoint, int]) -> dict[str, Any]:
    """The engine's draft counters since its start. Raises OSError."""
    counters = (await read_load(*running)).counters
    return {name: counters.get(name, 0.0) for name in DRAFT_COUNTERS}


async def _make_it_draft(
    client: "httpx.AsyncClient", running: tuple[Endpoint, int]
) -> dict[str, Any]:
    """Have the engine complete something that repeats; the counters after it.

    First as any model would say it. If this one says something else, so that nothing could be
    drafted, the next token is forced to one that ends a sequence seen before.
    """
    await _complete(client, {"prompt": _WORDS * 4, "n_predict": 24})
    counters = await _counters(running)
    if not counters["draft_rounds"]:
        asked = await client.post("/tokenize", json={"content": _WORDS})
        one, *rest = asked.raise_for_status().json()["tokens"]
        n = switches.DRAFT_MATCH
        prompt = [rest[0]] + [one] * n + (rest * 5)[:60] + [one] * (n - 1)
        await _complete(client, {"prompt": prompt, "n_predict": 4, "logit_bias": [[one, 1000.0]]})
        counters = await _counters(running)
    return counters | _kind((await client.get("/slots")).raise_for_status().json())


def _kind(slots: list[dict[str, Any]]) -> dict[str, Any]:
    """What speculates, by the engine's own word; it tells once a slot has been used."""
    params = slots[0].get("params", {}) if slots else {}
    name = "speculative.types"
    return {f"slots.{name}": params[name]} if name in params else {}


async def _complete(client: "httpx.AsyncClient", body: dict[str, Any]) -> None:
    body = {"temperature": 0, "cache_prompt": False, **body}
    (await client.post("/completion", json=body)).raise_for_status()


def watch(
    optimisations: tuple[Optimisation, ...], before: Load, now: Load
) -> tuple[Optimisation, ...] | None:
    """The optimisations again where a reply between two samples changed what can be said of
    the speculation, else None.

    Accept length is tokens per verification round. Every round yields its accepted tokens and
    one more, so rounds = predicted - accepted.
    """

    def grown(name: str) -> float:
        return now.counters.get(name, 0) - before.counters.get(name, 0)

    predicted, accepted = grown("predicted_tokens"), grown("accepted_tokens")
    if not before.counters or predicted <= 0:
        return None
    note = "" if grown("drafted_tokens") > 0 else NOTHING_TO_DRAFT
    changed = []
    for o in optimisations:
        if o.id == switches.NGRAM and o.verdict is Verdict.VERIFIED:
            length = {"accept_length": round(predicted / max(1, predicted - accepted), 2)}
            o = o.model_copy(update={"note": note, "evidence": o.evidence | length})  # noqa: PLW2901
        changed.append(o)
    return tuple(changed) if tuple(changed) != optimisations else None
