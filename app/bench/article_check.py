"""The article's steps on a DGX Spark, predicted from the model's bytes, without and with the time
that the same kernels take beside them."""

from pathlib import Path
from typing import Any

from app.bench import article
from app.bench.parts import Step, of_config, read_config, with_fp8_head
from app.bench.roofline import DRAFT_STEPS, WINDOW
from engine_bridge.paths import expanded

NOMINAL_SPARK = 273e9
"""Bytes per second that a DGX Spark's memory is specified for; copies reach less."""
TOLERANCE = 0.15
LING = Path(__file__).parents[2] / "assets" / "ling-3.0-flash.json"
"""The dimensions of Ling-3.0-flash that decide its bytes."""
SHORT, LONG = 1_024, 32_768

H200 = 4.21e12
"""Copy bandwidth of the GPU on which ling-chat measured SGLang 0.5.23 with Humming's kernels, in
bytes per second: 17 times a Spark's, so that its steps are mostly what is not bytes."""
H200_STEP_S = {SHORT: 1 / 144.2, LONG: 1 / 139.4}
"""Of a plain step at about these context lengths (the long one at 30,000), flashinfer attention."""
H200_ROUND_S = 2.68 / 281.7
"""Of a speculative round at 1,024 tokens with triton attention."""
H200_PLANNED_ROUND_S = (0.012, 0.024)
"""With flashinfer attention, where the draft's last pass runs outside CUDA graphs: two machines."""


def ling_config(path: str | None = None) -> dict[str, Any]:
    """Ling's dimensions, or those of another config.json. Raises UsageError."""
    return read_config(expanded(path) if path else LING)


def article_check(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The article's steps, predicted twice.

    `bytes_alone` takes all time to be reading: milliseconds at the nominal bandwidth, and ratios
    of bytes. `with_launches` adds what an H200 takes beside the bytes for the same kernels. Each
    row has both, `published`, how far each is `off_by` (shares), whether one of them is `within`
    15%, and what explains the difference or which input is missing.
    """
    short, long = of_config(config, SHORT), of_config(config, LONG)
    return [*_steps(short, long), *_all_on(short, long)]


def beside_s(context: int, step: Step) -> float:
    """Seconds of a plain step that are not bytes: launches, and kernels that wait."""
    return H200_STEP_S[context] - step.bytes / H200


def _steps(short: Step, long: Step) -> list[dict[str, Any]]:
    base_s = article.PUBLISHED["gsm8k", article.NONE]["tpot_s"]
    synthetic_s = 1 / article.SYNTHETIC_BASE
    beside, beside_long = beside_s(SHORT, short), beside_s(LONG, long)
    head = with_fp8_head(long)
    humming_s, head_s = (_spark_s(each.bytes) + beside_long for each in (long, head))
    given = article.GAINS[article.HUMMING]
    return [
        _row(
            "baseline step, ms",
            1000 * _spark_s(short.bytes),
            1000 * (_spark_s(short.bytes) + beside),
            1000 * base_s,
            f"{short.bytes / 1e9:.2f} GB at the nominal {NOMINAL_SPARK / 1e9:.0f} GB/s, and"
            f" {1000 * beside:.1f} ms that an H200 takes beside its bytes with Humming's kernels."
            " The FP32 head is no input: SGLang multiplies in BF16 and sums in FP32; converting"
            f" it each step would move {(short.bytes + 4 * short.head) / 1e9:.1f} GB,"
            f" {1000 * _spark_s(short.bytes + 4 * short.head):.1f} ms, more than was published."
            " Missing input: the copy bandwidth of that GB10, and what FlashInfer's MXFP4 kernels"
            " reach of it.",
        ),
        _row(
            "+ Humming at 32K, ratio",
            1.0,
            synthetic_s / humming_s,
            given,
            f"The bytes are the same. With launches, Humming's step is {1000 * humming_s:.1f} ms,"
            f" set against the {1000 * synthetic_s:.1f} ms that follow for the published baseline.",
        ),
        _row(
            "+ FP8 head at 32K, cumulative ratio",
            given * long.bytes / head.bytes,
            synthetic_s / head_s,
            article.GAINS[article.HEAD],
            f"The head goes from {long.head / 1e6:.0f} to {head.head / 1e6:.0f} MB of"
            f" {long.bytes / 1e6:.0f}. By bytes alone, Humming's +9.3% are taken as given.",
        ),
        _window(short),
    ]


def _window(short: Step) -> dict[str, Any]:
    head = with_fp8_head(short)
    plain_s = _spark_s(head.bytes) + beside_s(SHORT, short)
    read = head.round(DRAFT_STEPS, WINDOW)
    planned = [(_spark_s(read) + each - read / H200) / plain_s for each in H200_PLANNED_ROUND_S]
    return _row(
        "a round in plain steps",
        read / head.bytes,
        _round_s(head) / plain_s,
        article.VERIFY_STEPS,
        f"{head.distinct_experts(WINDOW):.1f} distinct experts a layer instead of"
        f" {head.experts_used}, {DRAFT_STEPS} draft steps that read the head each, and the linear"
        " layers' states after each token. Missing input: what a round takes beside its bytes on a"
        f" Spark. On an H200 it is {1000 * (H200_ROUND_S - read / H200):.1f} ms with triton"
        " attention; with flashinfer the draft's last pass runs outside CUDA graphs, and two"
        f" machines' times for that give {planned[0]:.2f} and {planned[1]:.2f}.",
    )


def _all_on(short: Step, long: Step) -> list[dict[str, Any]]:
    base = article.PUBLISHED["gsm8k", article.NONE]["decode_tokens_per_s"]
    gsm8k = article.PUBLISHED["gsm8k", article.ALL]
    head, head_long = with_fp8_head(short), with_fp8_head(long)
    faster = article.GAINS[article.HUMMING] * short.bytes / head.bytes
    cost = head.round(DRAFT_STEPS, WINDOW) / head.bytes
    accept, published = gsm8k["accept_length"], gsm8k["decode_tokens_per_s"]
    rows = [
        _row(
            "all on, GSM8K tokens/s",
            base * faster / cost * accept,
            accept / _round_s(head),
            published,
            f"By bytes 37.81 × {faster:.3f} / {cost:.2f} × accept length {accept}; with launches a"
            f" round is {1000 * _round_s(head):.1f} ms, and {1000 * accept / published:.1f} were"
            " published. Missing input: as above.",
        )
    ]
    accept = article.PUBLISHED["synthetic", article.ALL]["accept_length"]
    published = article.GAINS[article.ALL]
    faster = article.GAINS[article.HUMMING] * long.bytes / head_long.bytes
    longer = beside_s(LONG, long) - beside_s(SHORT, short)

    def by_bytes(distinct: float | None) -> float:
        cost = head_long.round(DRAFT_STEPS, WINDOW, distinct) / head_long.bytes
        return float(faster * accept / cost)

    def launched(distinct: float | None) -> float:
        round_s = _round_s(head_long, distinct) + longer
        return float(accept / round_s / article.SYNTHETIC_BASE)

    fits = min((n / 2 for n in range(16, 65)), key=lambda n: abs(launched(n) - published))
    rows.append(
        _row(
            "all on, synthetic 32K/2K ratio",
            by_bytes(None),
            launched(None),
            published,
            "Missing input: how many experts a window touches. Text that repeats itself chooses"
            f" the same ones: {fits:.0f} distinct experts a layer give the published ratio, 8 give"
            f" {launched(8):.2f}, independent choices {launched(None):.2f}.",
        )
    )
    return rows


def _spark_s(size: float) -> float:
    return size / NOMINAL_SPARK


def _round_s(step: Step, distinct: float | None = None) -> float:
    """Of a speculative round on a Spark: its bytes, and what an H200 takes beside those of
    independent choices."""
    beside = H200_ROUND_S - step.round(DRAFT_STEPS, WINDOW) / H200
    return _spark_s(step.round(DRAFT_STEPS, WINDOW, distinct)) + beside


def _row(
    name: str, bytes_alone: float, with_launches: float, published: float, why: str
) -> dict[str, Any]:
    off = {
        "bytes_alone": bytes_alone / published - 1,
        "with_launches": with_launches / published - 1,
    }
    return {
        "name": name,
        "bytes_alone": bytes_alone,
        "with_launches": with_launches,
        "published": published,
        "off_by": off,
        "within": min(map(abs, off.values())) <= TOLERANCE,
        "why": why,
    }
