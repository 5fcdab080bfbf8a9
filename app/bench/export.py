"""The ledger as CSV and as a report in Markdown that can be shared: no path, no key, no text
of a document in it."""

import csv
import io
import time
from collections.abc import Sequence
from typing import Any

from app.bench.history import Point
from app.bench.setup import words
from app.bench.text import ab_text, gsm8k_text, lossless_text, roofline_text, synthetic_text
from app.core.i18n import _, shown

COLUMNS = (
    "run",
    "kind",
    "started_at",
    "model",
    "model_hash",
    "config_hash",
    "engine",
    "engine_version",
    "driver",
    "machine",
    "switches_on",
    "value",
    "tpot_ms_mean",
    "tpot_ms_p95",
    "ttft_s_mean",
    "e2e_s_mean",
    "e2e_s_p95",
    "accept_length",
    "accuracy",
    "regression",
    "ling_chat",
)
TEXTS = {
    "synthetic": synthetic_text,
    "gsm8k": gsm8k_text,
    "ab": ab_text,
    "lossless": lossless_text,
    "roofline": roofline_text,
}


def row(point: Point) -> dict[str, Any]:
    """One run as a flat row; empty where it has no such figure."""
    run, result = point.run, point.run.result or {}
    setup, figures = run.setup, result.get("figures") or {}
    hardware = setup.get("machine") or {}

    def figure(name: str, which: str, scale: float = 1) -> float | str:
        told = figures.get(name)
        return scale * told[which] if told else ""

    on = [name for name, is_on in (setup.get("switches") or {}).items() if is_on]
    return {
        "run": run.id,
        "kind": run.kind,
        "started_at": stamp(run.started_at),
        "model": setup.get("model", ""),
        "model_hash": setup.get("model_hash", ""),
        "config_hash": run.config_hash,
        "engine": setup.get("engine", ""),
        "engine_version": setup.get("engine_version", ""),
        "driver": hardware.get("driver", ""),
        "machine": hardware.get("gpu") or hardware.get("cpu", ""),
        "switches_on": " ".join(on),
        "value": point.value if point.value is not None else "",
        "tpot_ms_mean": figure("tpot_s", "mean", 1000),
        "tpot_ms_p95": figure("tpot_s", "p95", 1000),
        "ttft_s_mean": figure("ttft_s", "mean"),
        "e2e_s_mean": figure("e2e_s", "mean"),
        "e2e_s_p95": figure("e2e_s", "p95"),
        "accept_length": figures.get("accept_length") or "",
        "accuracy": ((result.get("accuracy") or {}).get("flexible") or {}).get("share", ""),
        "regression": point.regression,
        "ling_chat": (setup.get("versions") or {}).get("ling-chat", ""),
    }


def as_csv(points: Sequence[Point]) -> str:
    """All runs, a line each."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(row(point) for point in points)
    return out.getvalue()


def as_markdown(points: Sequence[Point]) -> str:
    """A report that stands by itself: a table of all runs, then each run as it was shown."""
    names = (_("run"), _("date"), _("kind"), _("value"), _("model"))
    head = (*names, _("switches on"), _("machine"), "")
    lines = [f"# {_('Benchmarks')}", "", _line(head), _line(["---"] * len(head))]
    for point in points:
        flat = row(point)
        value = f"{point.value:.2f}" if point.value is not None else "–"
        cells = (flat["run"], flat["started_at"], flat["kind"], value, flat["model"])
        tail = (flat["switches_on"] or "–", flat["machine"], shown(point.regression))
        lines.append(_line([str(each) for each in (*cells, *tail)]))
    lines += ["", _("Value: decode tokens a second; of a comparison, on over off."), ""]
    for point in points:
        lines += _section(point)
    return "\n".join(lines).rstrip() + "\n"


def _section(point: Point) -> list[str]:
    run = point.run
    setup = run.setup
    versions = ", ".join(f"{name} {told}" for name, told in (setup.get("versions") or {}).items())
    hardware = ", ".join(f"{name} {told}" for name, told in (setup.get("machine") or {}).items())
    text = TEXTS[run.kind](run.result) if run.kind in TEXTS and run.result else words(setup)
    lines = [f"## {run.id}: {run.kind}, {stamp(run.started_at)}", ""]
    if point.regression:
        slower = _("Slower: {why}").format(why=shown(point.regression))
        lines += [f"**{slower}**", ""]
    lines += ["```text", text, "```", ""]
    config = _("Config {hash}; {versions}; {hardware}.")
    lines += [config.format(hash=run.config_hash, versions=versions, hardware=hardware), ""]
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def stamp(seconds: float) -> str:
    """A Unix time as date and minute, UTC."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
