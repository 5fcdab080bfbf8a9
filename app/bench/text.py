"""Results as lines of text, for the command line and for reports."""

from collections.abc import Sequence
from typing import Any

from app.bench.setup import words
from app.core.figures import cells, pad
from app.core.i18n import _, shown

Row = Sequence[str]


def labels() -> tuple[tuple[str, str, float], ...]:
    """Name of each figure, its label, and what its value is multiplied by."""
    return (
        ("tpot_s", _("time per output token (TPOT), ms"), 1000),
        ("decode_tokens_per_s", _("decode tokens/s"), 1),
        ("ttft_s", _("time to first token (TTFT), s"), 1),
        ("e2e_s", _("end-to-end latency, s"), 1),
        ("e2e_s_per_output_token", _("latency per output token, ms"), 1000),
        ("prefill_tokens_per_s", _("prefill tokens/s"), 1),
        ("tokens_per_engine_s", _("decode tokens per {unit} second"), 1),
        ("prompt_tokens", _("prompt tokens"), 1),
        ("cached_tokens", _("of them cached"), 1),
        ("completion_tokens", _("output tokens"), 1),
    )


def synthetic_text(result: dict[str, Any]) -> str:
    """The table of a synthetic run, what it ran on, and its warning."""
    head = _("Synthetic load, {input:,} tokens in, {output:,} out, batch 1, {runs} runs").format(
        input=result["input_tokens"], output=result["output_tokens"], runs=result["runs"]
    )
    return "\n".join(
        [head, words(result["setup"]), "", *_figures(result), "", shown(result["note"])]
    )


def gsm8k_text(result: dict[str, Any]) -> str:
    """Accuracy by both readings, and the figures."""
    head = _(
        "GSM8K, {n} questions (seed {seed}), {shots} shots, temperature {t}, top-p {p},"
        " top-k {k}, thinking {thinking}, at most {longest:,} tokens"
    ).format(
        n=result["questions"],
        seed=result["seed"],
        shots=result["shots"],
        t=result["temperature"],
        p=result["top_p"],
        k=result["top_k"],
        thinking=_("on") if result["thinking"] else _("off"),
        longest=result["max_tokens"],
    )
    rows = [accuracy_line(name, told) for name, told in result["accuracy"].items()]
    cut = _("{n} answers were cut at the longest length").format(n=result["cut_short"])
    return "\n".join([head, words(result["setup"]), "", *aligned(rows), cut, "", *_figures(result)])


def accuracy_line(name: str, told: dict[str, Any]) -> Row:
    readings = {
        "flexible": _("last number"),
        "strict": _("after ####"),
        "by value": _("last number by value"),
    }
    low, high = told["interval"]
    share = f"{100 * told['share']:.1f}%" if told["share"] is not None else "–"
    return (
        _("accuracy, {reading}").format(reading=readings.get(name, name)),
        f"{told['right']}/{told['n']}",
        share,
        _("95% interval {low:.1f}% to {high:.1f}%").format(low=100 * low, high=100 * high),
    )


def ab_text(result: dict[str, Any]) -> str:
    """The verdict's sentence, and what stands behind it."""
    details = result["details"]
    rows: list[Row] = [("", _("off"), _("on"), _("on/off"), _("99% interval"))]
    off, on = details["off_tokens_per_engine_s"], details["on_tokens_per_engine_s"]
    unit = details["off"]["unit"]
    rows.append(
        (
            _("decode tokens per {unit} second").format(unit=unit),
            number(off),
            number(on),
            f"{result['ratio']:.3f}",
            _span(result["interval"]),
        )
    )
    names = {
        "tpot": ("tpot_s", _("time per output token, ms"), 1000),
        "ttft": ("ttft_s", _("time to first token, s"), 1),
        "latency": ("e2e_s", _("latency, s"), 1),
        "latency_per_output_token": ("e2e_s_per_output_token", _("latency per token, ms"), 1000),
        "output_tokens": ("completion_tokens", _("output tokens"), 1),
    }
    for key, (figure, label, scale) in names.items():
        told = details["other_ratios"].get(key)
        if told and details["off"][figure] and details["on"][figure]:
            means = [scale * details[side][figure]["mean"] for side in ("off", "on")]
            ratios = (number(means[0]), number(means[1]), f"{told['ratio']:.3f}")
            rows.append((label, *ratios, _span(told["interval"])))
    lengths = [details[side]["accept_length"] for side in ("off", "on")]
    if any(lengths):
        rows.append((_("accept length"), number(lengths[0]), number(lengths[1])))
    lines = [result["sentence"], words(result["setup"]), "", *aligned(rows), ""]
    same = _("{same} of {n} answers are the same text.").format(
        same=details["same_answers"], n=details["answers"]
    )
    lines.append(f"{same} {_may_change(result['toggle'], details)}".rstrip())
    if grades := details["accuracy"]:
        lines.append(
            _(
                "Right answers: {off} off, {on} on, of {n}; right only off {only_off}, only on"
                " {only_on}; McNemar's exact p = {p:.2f}."
            ).format(**grades)
        )
    return "\n".join(lines)


def _may_change(toggle: str, found: dict[str, Any]) -> str:
    """The sentence; empty for an optimisation of which that is not known."""
    why = found["may_change_answers"]
    return f"{toggle} {shown(why)}{_('.')}" if why else ""


def ladder_text(rows: Sequence[dict[str, Any]]) -> str:
    """A cumulative table, the published values beside one's own."""
    head = ("", _("tok/s"), _("ratio"), _("TPOT ms"), _("accept"), _("accuracy"))
    table: list[Row] = [(*head, _("published tok/s"), _("published ratio"))]
    for row in rows:
        published = row["published"] or {}
        accuracy = row["accuracy"]
        table.append(
            (
                shown(row["name"]),
                number(row["decode_tokens_per_s"]),
                number(row["ratio"]),
                number(row["tpot_s"] and 1000 * row["tpot_s"]),
                number(row["accept_length"]),
                "–" if accuracy is None else f"{100 * accuracy:.1f}%",
                number(published.get("decode_tokens_per_s")),
                number(published.get("ratio")),
            )
        )
    return "\n".join(aligned(table))


def _figures(result: dict[str, Any]) -> list[str]:
    figures = result["figures"]
    rows: list[Row] = [("", _("mean"), "p50", "p95")]
    for name, label, scale in labels():
        if told := figures[name]:
            row = [number(scale * told[each]) for each in ("mean", "p50", "p95")]
            rows.append((label.format(unit=figures["unit"]), *row))
    if figures["accept_length"] is not None:
        rows.append((_("accept length"), number(figures["accept_length"])))
    if histogram := figures["accept_histogram"]:
        shares = [f"{at}: {rounds}" for at, rounds in enumerate(histogram)]
        rows.append((_("rounds by accepted tokens"), ", ".join(shares)))
    if (gap := result.get("counter_gap")) is not None:
        rows.append((_("gap to the engine's own counters"), f"{100 * gap:.2f}%"))
    return aligned(rows)


def aligned(rows: Sequence[Row]) -> list[str]:
    """Rows as columns of equal width, the first to the left, the others to the right."""
    widths = [
        max(cells(row[at]) for row in rows if at < len(row)) for at in range(max(map(len, rows)))
    ]
    return [
        "  ".join(
            pad(cell, widths[at]) if at == 0 else pad(cell, widths[at], to_right=True)
            for at, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def number(value: float | None) -> str:
    if value is None:
        return "–"
    size = abs(value)
    if size == 0 or size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{1 if size >= 100 else 2 if size >= 0.1 else 4}f}"


def _span(interval: Sequence[float]) -> str:
    return f"{interval[0]:.3f}–{interval[1]:.3f}"


def lossless_text(result: dict[str, Any]) -> str:
    """What an optimisation changed here."""
    same, told = result["same_bytes"], result["next_token"]
    lines = [_may_change(result["toggle"], result), words(result["setup"]), ""]
    rows: list[Row] = [(_("greedy answers with the same bytes"), f"{same['same']}/{same['n']}")]
    if told:
        rows.append((_("same next token along the same text"), f"{told['same']}/{told['n']}"))
    else:
        rows.append((_("same next token along the same text"), _("this server cannot be asked")))
    for side, label in (("off", _("off")), ("on", _("on"))):
        found = result["identifiers"][side]
        name = _("identifiers repeated exactly, {side}").format(side=label)
        rows.append((name, f"{found['found']}/{found['n']}"))
    lines += aligned(rows)
    if part := result["first_difference"]:
        lines += ["", _("They first part here:"), f"  {part['off']!r}", f"  {part['on']!r}"]
    return "\n".join(lines)


def roofline_text(result: dict[str, Any]) -> str:
    """Bytes and floor by part, where the step stands, what optimisations should bring."""
    floor, standing = result["floor"], result["standing"]
    gb = floor["bytes_per_s"] / 1e9
    head = _("One decode step at {n:,} tokens of context, copies at {gb:.1f} GB/s").format(
        n=result["context_tokens"], gb=gb
    )
    lines = [head]
    if result.get("setup"):
        lines.append(words(result["setup"]))
    rows: list[Row] = [("", "MB", _("floor ms"))]
    for name, part in (*floor["parts"].items(), (_("together"), floor)):
        rows.append((shown(name), f"{part['bytes'] / 1e6:,.1f}", f"{part['ms']:.3f}"))
    lines += ["", *aligned(rows), ""]
    if standing:
        told = _(
            "Measured {measured:.2f} ms: {share:.0%} of the copy bandwidth, {beside:.2f} ms"
            " beside the floor."
        )
        if result.get("drafted"):
            told = _(
                "Measured {measured:.2f} ms a round of drafts and their verification: {share:.0%}"
                " of the copy bandwidth by the round's own bytes, {beside:.2f} ms beside them."
            )
        lines.append(
            told.format(
                measured=standing["measured_ms"],
                share=standing["of_floor"],
                beside=standing["beside_ms"],
            )
        )
        if standing["of_floor"] > 1:
            lines.append(
                _("No step is faster than copies: other programs disturbed them. Measure again.")
            )
    for each in result["expected"]:
        ratio = "–" if each["ratio"] is None else f"{each['ratio']:.2f}×"
        lines.append(f"  {each['id']}: {ratio}, {shown(each['why'])}")
    return "\n".join(lines)


def article_text(rows: Sequence[dict[str, Any]]) -> str:
    """The article's steps, predicted and published."""
    off_by = _("off by")
    head = (_("bytes alone"), off_by, _("with launches"), off_by, _("published"))
    table: list[Row] = [("", *head)]
    for row in rows:
        told = []
        for how in ("bytes_alone", "with_launches"):
            told += [number(row[how]), f"{100 * row['off_by'][how]:+.1f}%"]
        table.append((shown(row["name"]), *told, number(row["published"])))
    notes = [f"- {shown(row['name'])}: {shown(row['why'])}" for row in rows]
    return "\n".join([*aligned(table), "", *notes])
