"""What a server that we did not start shows of its optimisations. Read-only.

A setting that a server reports is only what it resolved; "verified" needs something that was
counted while it ran.
"""

from typing import Any

from engine_bridge.contract import Optimisation, Verdict

_NOT_SEEN = "the server tells its setting, not what its process runs"


def of_sglang(info: dict[str, Any], loads: dict[str, Any]) -> tuple[Optimisation, ...]:
    """From the answers of SGLang's `/server_info` and `/v1/loads`."""
    if not info:
        return ()
    ranks = loads.get("loads")
    rank = ranks[0] if isinstance(ranks, list) and ranks else {}
    return (
        *_expert_kernels(info),
        _sglang_speculation(info, rank),
        _prefix_cache(not info.get("disable_radix_cache"), _share(rank.get("cache_hit_rate"))),
    )


def of_llama_server(
    slots: list[dict[str, Any]], counters: dict[str, float]
) -> tuple[Optimisation, ...]:
    """From llama-server's `/slots` and `/metrics`; nothing where it shows neither."""
    seen: list[Optimisation] = []
    if slots:
        seen.append(_llama_speculation(slots, counters))
    if counters:
        cached = counters.get("cached_tokens", 0)
        prompt = cached + counters.get("prompt_tokens", 0)
        seen.append(_prefix_cache(True, cached / prompt if prompt else None))
    return tuple(seen)


def _expert_kernels(info: dict[str, Any]) -> tuple[Optimisation, ...]:
    runner = info.get("moe_runner_backend")
    if not isinstance(runner, str) or runner in ("auto", "none"):
        return ()
    return (
        Optimisation(
            id="expert_kernels",
            title="Expert kernels",
            summary="The kernels that multiply the weights of a mixture of experts.",
            requested=True,
            resolved=runner,
            note=_NOT_SEEN,
            evidence={"moe_runner_backend": runner},
        ),
    )


def _sglang_speculation(info: dict[str, Any], rank: dict[str, Any]) -> Optimisation:
    algorithm = info.get("speculative_algorithm")
    shape = "/".join(
        str(info.get(f"speculative_{name}"))
        for name in ("num_steps", "eagle_topk", "num_draft_tokens")
    )
    spec = rank.get("speculative")
    accept = spec.get("accept_length") if isinstance(spec, dict) else None
    return _speculation(f"{algorithm} {shape}" if algorithm else None, accept or None)


def _llama_speculation(slots: list[dict[str, Any]], counters: dict[str, float]) -> Optimisation:
    on = any(slot.get("speculative") for slot in slots)
    params = [slot["params"] for slot in slots if isinstance(slot.get("params"), dict)]
    kinds = {str(p["speculative.types"]) for p in params if p.get("speculative.types")}
    predicted, accepted = counters.get("predicted_tokens", 0), counters.get("accepted_tokens", 0)
    # As for one answer: each step yields one token of the model's own beside the accepted ones.
    drafted = counters.get("drafted_tokens") and predicted > accepted
    accept = predicted / (predicted - accepted) if drafted else None
    return _speculation((", ".join(sorted(kinds)) or "on") if on else None, accept)


def _speculation(resolved: str | None, accept_length: float | None) -> Optimisation:
    """`accept_length` is the mean of tokens a verification round yields; None before the first."""
    off = Optimisation(
        id="speculation",
        title="Speculation",
        summary="Drafts several tokens and verifies them in one step.",
        verdict=Verdict.OFF,
    )
    if resolved is None:
        return off
    on = off.model_copy(update={"requested": True, "resolved": resolved})
    if accept_length is None:
        note = "nothing drafted so far"
        return on.model_copy(update={"verdict": Verdict.UNPROVEN, "note": note})
    works = accept_length > 1
    return on.model_copy(
        update={
            "observed": f"accept length {accept_length:.2f}",
            "verdict": Verdict.VERIFIED if works else Verdict.FELL_BACK,
            "note": "" if works else "no draft was ever accepted: it only costs time",
            "evidence": {"accept_length": accept_length},
        }
    )


def _prefix_cache(on: bool, hit_share: float | None) -> Optimisation:
    """`hit_share` is the share of prompt tokens that came from the cache, 0 to 1."""
    hit = on and bool(hit_share)
    return Optimisation(
        id="prefix_cache",
        title="Prefix cache",
        summary="Reads a document once; later questions on it start where they differ.",
        requested=on,
        resolved="on" if on else None,
        observed=f"{hit_share:.1%} of prompt tokens cached" if hit else None,
        verdict=Verdict.VERIFIED if hit else Verdict.UNPROVEN if on else Verdict.OFF,
        note="no prompt has hit it so far" if on and not hit else "",
        evidence={"hit_share": hit_share} if hit else {},
    )


def _share(found: Any) -> float | None:
    return float(found) if isinstance(found, int | float) else None
