"""The article's four steps on a DGX Spark, predicted from the model's bytes."""

from pathlib import Path
from typing import Any

from app.bench import article
from app.bench.parts import of_config, read_config, with_fp8_head
from app.bench.roofline import DRAFT_STEPS, WINDOW

NOMINAL_SPARK = 273e9
"""Bytes per second that a DGX Spark's memory is specified for; copies reach less."""
TOLERANCE = 0.15
LING = Path(__file__).parents[2] / "assets" / "ling-3.0-flash.json"
"""The dimensions of Ling-3.0-flash that decide its bytes."""


def ling_config(path: str | None = None) -> dict[str, Any]:
    """Ling's dimensions, or those of another config.json. Raises UsageError."""
    return read_config(Path(path).expanduser() if path else LING)


def article_check(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The article's four steps on a DGX Spark, predicted from the model's bytes and the baseline's
    26.45 ms, beside what was published.

    Each row has `predicted`, `published`, `off_by` (a share) and what explains the difference, or
    which input the article does not state.
    """
    short = of_config(config, 1024)
    base = article.PUBLISHED["gsm8k", article.NONE]
    last = article.PUBLISHED["gsm8k", article.ALL]
    reached = short.bytes / base["tpot_s"]
    head = with_fp8_head(short)
    cumulative = article.GAINS[article.HUMMING] * short.bytes / head.bytes
    cost = head.round(DRAFT_STEPS, WINDOW) / head.bytes
    rate = base["decode_tokens_per_s"] * cumulative / cost * last["accept_length"]
    rows = [
        _row(
            "baseline step, ms",
            1000 * short.bytes / NOMINAL_SPARK,
            1000 * base["tpot_s"],
            f"{short.bytes / 1e9:.2f} GB at the nominal {NOMINAL_SPARK / 1e9:.0f} GB/s. Missing"
            f" input: the copy bandwidth of that GB10. The step moves {reached / 1e9:.0f} GB/s,"
            f" {reached / NOMINAL_SPARK:.0%} of nominal; the rest is launches and kernels.",
        ),
        _row(
            "+ Humming, ratio",
            1.0,
            article.GAINS[article.HUMMING],
            "The bytes are the same. Missing input: the share of the bandwidth that FlashInfer's"
            " MXFP4 kernels reach for one token; +9.3% are about 2.3 ms of a step.",
        ),
        _row(
            "+ FP8 head, cumulative ratio",
            cumulative,
            article.GAINS[article.HEAD],
            f"Humming's +9.3% taken as given; the head goes from {short.head / 1e6:.0f} to"
            f" {head.head / 1e6:.0f} MB of {short.bytes / 1e6:.0f}.",
        ),
        _row(
            "verify window and drafts, plain steps",
            cost,
            article.VERIFY_STEPS,
            f"{head.distinct_experts(WINDOW):.1f} distinct experts a layer instead of"
            f" {head.experts_used}, {DRAFT_STEPS} draft steps that read the head each, and the"
            " linear layers' states after each token.",
        ),
        _row(
            "all on, GSM8K tokens/s",
            rate,
            last["decode_tokens_per_s"],
            f"37.81 × {cumulative:.3f} / {cost:.2f} × accept length {last['accept_length']}.",
        ),
    ]
    return [*rows, _synthetic_row(config)]


def _synthetic_row(config: dict[str, Any]) -> dict[str, Any]:
    long = of_config(config, 32_768)
    head = with_fp8_head(long)
    gain = article.GAINS[article.HUMMING] * long.bytes / head.bytes
    accept = article.PUBLISHED["synthetic", article.ALL]["accept_length"]
    published = article.GAINS[article.ALL]

    def ratio(distinct: float | None) -> float:
        return float(gain * accept * head.bytes / head.round(DRAFT_STEPS, WINDOW, distinct))

    fits = min((n / 2 for n in range(16, 65)), key=lambda n: abs(ratio(n) - published))
    return _row(
        "all on, synthetic 32K/2K ratio",
        ratio(None),
        published,
        f"Missing input: how many experts a window touches. Text that repeats itself chooses the"
        f" same ones: {fits:.0f} distinct experts a layer give the published ratio exactly, 8 give"
        f" {ratio(8):.2f}, independent choices {ratio(None):.2f}.",
    )


def _row(name: str, predicted: float, published: float, why: str) -> dict[str, Any]:
    off = predicted / published - 1
    return {
        "name": name,
        "predicted": predicted,
        "published": published,
        "off_by": off,
        "within": abs(off) <= TOLERANCE,
        "why": why,
    }
