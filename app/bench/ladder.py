"""Cumulative tables: all switches off, then one more on at a time, as the article has them."""

from collections.abc import Sequence
from typing import Any

from app.bench.article import PUBLISHED
from engine_bridge.backends import backend_named
from engine_bridge.contract import EngineSpec, Verdict
from engine_bridge.errors import UsageError

BASELINE = "all off"
ALWAYS = frozenset({"cuda-graphs"})
"""On at every rung: the article's baseline had them, and so has everybody's server."""


def rungs(spec: EngineSpec) -> list[tuple[str, EngineSpec]]:
    """The engines of a cumulative table by name, in the backend's own order of its switches.

    Those this model cannot have are left out. Raises UsageError for a server that runs elsewhere.
    """
    if spec.backend == "attach":
        raise UsageError(
            "A server that runs elsewhere cannot be switched from here.",
            "Start it with each set of switches and measure it without --cumulative.",
        )
    known = [
        each.id
        for each in backend_named(spec.backend).optimisations(spec)
        if each.switchable and each.verdict is not Verdict.NOT_SUPPORTED and each.id not in ALWAYS
    ]
    found = []
    for count in range(len(known) + 1):
        switches = {id_: at < count for at, id_ in enumerate(known)}
        name = f"+ {known[count - 1]}" if count else BASELINE
        found.append((name, spec.model_copy(update={"optimisations": switches})))
    return found


def table(kind: str, results: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """One row a rung: the user's figures, their ratio to the first rung, and the article's
    published values of the same switches, None where it has none."""
    rows: list[dict[str, Any]] = []
    for name, result in results:
        figures = result["figures"]
        rate = figures["decode_tokens_per_s"]
        switches = result["setup"]["switches"]
        on = frozenset(id_ for id_, is_on in switches.items() if is_on) - ALWAYS
        known = "humming" in switches  # the article is about that engine's switches
        engine_rate = figures["tokens_per_engine_s"]
        rows.append(
            {
                "name": name,
                "decode_tokens_per_s": rate["mean"] if rate else None,
                "tokens_per_engine_s": engine_rate["mean"] if engine_rate else None,
                "tpot_s": figures["tpot_s"]["mean"] if figures["tpot_s"] else None,
                "e2e_s": figures["e2e_s"]["mean"] if figures["e2e_s"] else None,
                "completion_tokens": figures["completion_tokens"]["mean"],
                "accept_length": figures["accept_length"],
                "accuracy": result.get("accuracy", {}).get("flexible", {}).get("share"),
                "published": PUBLISHED.get((kind, on)) if known else None,
            }
        )
    first = rows[0]["decode_tokens_per_s"] if rows else None
    for row in rows:
        rate = row["decode_tokens_per_s"]
        row["ratio"] = rate / first if rate and first else None
    return rows
