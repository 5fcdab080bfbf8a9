"""Many measured answers as the figures that are reported."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from app.bench.measure import Sample
from app.bench.stats import summary

FIGURES: dict[str, Callable[[Sample], float | None]] = {
    "tpot_s": lambda s: s.tpot_s,
    "decode_tokens_per_s": lambda s: s.decode_tokens_per_s,
    "ttft_s": lambda s: s.ttft_s,
    "e2e_s": lambda s: s.e2e_s,
    "e2e_s_per_output_token": lambda s: (
        s.e2e_s / s.completion_tokens if s.completion_tokens else None
    ),
    "prefill_tokens_per_s": lambda s: s.prefill_tokens_per_s,
    "tokens_per_engine_s": lambda s: s.tokens_per_engine_s,
    "engine_decode_tokens_per_s": lambda s: s.engine_decode_tokens_per_s,
    "prompt_tokens": lambda s: s.prompt_tokens,
    "cached_tokens": lambda s: s.cached_tokens,
    "completion_tokens": lambda s: s.completion_tokens,
}


def figures(samples: Sequence[Sample]) -> dict[str, Any]:
    """Each figure's n, mean, p50 and p95 (None where the engine does not tell), the accept
    length over all rounds, and its histogram where the engine gives one.

    Seconds, tokens, and tokens per second. Engine seconds are CPU or GPU seconds, see `unit`.
    """
    found: dict[str, Any] = {"unit": samples[0].unit if samples else ""}
    for name, figure in FIGURES.items():
        known = [value for sample in samples if (value := figure(sample)) is not None]
        told = summary(known)
        found[name] = asdict(told) if told else None
    found["accept_length"] = accept_length(samples)
    found["accept_histogram"] = histogram(samples)
    return found


def accept_length(samples: Sequence[Sample]) -> float | None:
    """Tokens a verification round yields, over all answers; None where nothing was drafted."""
    if all(sample.accept_length is None for sample in samples):
        return None
    tokens = sum(sample.completion_tokens for sample in samples)
    rounds = sum(sample.completion_tokens / (sample.accept_length or 1) for sample in samples)
    return tokens / rounds if rounds else None


def histogram(samples: Sequence[Sample]) -> list[int] | None:
    """Rounds by how many drafted tokens they accepted, 0 first; None where no engine tells."""
    given = [sample.accept_histogram for sample in samples if sample.accept_histogram]
    if not given:
        return None
    total = [0] * max(len(each) for each in given)
    for each in given:
        for at, rounds in enumerate(each):
            total[at] += rounds
    return total
