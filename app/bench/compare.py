"""Two runs of the ledger, figure by figure."""

from typing import Any

from app.bench.ledger import Run
from app.bench.setup import words
from app.bench.text import Row, aligned, labels, number
from app.core.i18n import _


def compare_text(first: Run, second: Run) -> str:
    """Both setups, what differs in them, and each figure that both have, with its ratio."""
    lines = [f"A  #{first.id} {words(first.setup)}", f"B  #{second.id} {words(second.setup)}"]
    differing = sorted(
        name
        for name in {*first.setup, *second.setup, *first.settings, *second.settings}
        if _value(first, name) != _value(second, name)
    )
    if differing:
        lines.append(_("They differ in: {names}.").format(names=", ".join(differing)))
    rows: list[Row] = [("", "A", "B", "B/A")]
    one, other = _figures(first), _figures(second)
    for name, label, scale in labels():
        if (a := one.get(name)) and (b := other.get(name)):
            ratio = f"{b['mean'] / a['mean']:.3f}" if a["mean"] else "–"
            cells = (number(scale * a["mean"]), number(scale * b["mean"]), ratio)
            rows.append((label.format(unit=one.get("unit", "")), *cells))
    a_length, b_length = one.get("accept_length"), other.get("accept_length")
    if a_length or b_length:
        rows.append((_("accept length"), number(a_length), number(b_length), ""))
    return "\n".join([*lines, "", *aligned(rows)])


def _figures(run: Run) -> dict[str, Any]:
    result = run.result or {}
    return result.get("figures") or (result.get("details") or {}).get("on") or {}


def _value(run: Run, name: str) -> Any:
    return run.settings.get(name, run.setup.get(name))
