"""Figures as people read them."""

from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from app.core.i18n import _

if TYPE_CHECKING:
    from engine_bridge.chat.events import Prefill, Timings
    from engine_bridge.contract import Effect

SMALL = 0.05
"""The share of a whole from which a part of it is worth naming."""


def seconds(value: float) -> str:
    """Seconds in the coarsest words that still say something: 0.31 s, 41 s, 2 min 5 s."""
    if value < 1:
        return _("{n:.2f} s").format(n=value)
    if value < 9.95:
        return _("{n:.1f} s").format(n=value)
    whole = round(value)
    if whole < 60:
        return _("{n} s").format(n=whole)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        told = _("{minutes} min {rest} s") if rest else _("{minutes} min")
        return told.format(minutes=minutes, rest=rest)
    hours, minutes = divmod(minutes, 60)
    return _("{hours} h {minutes} min").format(hours=hours, minutes=minutes)


def cells(text: str) -> int:
    """Columns of a terminal that the text takes: two for each wide character, as Chinese has."""
    return sum(1 + (east_asian_width(each) in "WF") for each in text)


def pad(text: str, width: int, to_right: bool = False) -> str:
    """The text with spaces up to `width` columns, after it or before it."""
    spaces = " " * (width - cells(text))
    return spaces + text if to_right else text + spaces


def clock(value: float) -> str:
    """Seconds left as m:ss."""
    minutes, rest = divmod(max(0, round(value)), 60)
    return f"{minutes}:{rest:02d}"


def rate(value: float) -> str:
    """Tokens per second: 53.9, 231."""
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def short_count(value: int) -> str:
    """A count of tokens in few characters: 812, 8.2K, 262K. K is 1,024, as contexts are counted."""
    if value < 1000:
        return str(value)
    thousands = value / 1024
    return f"{thousands:.1f}K" if thousands < 10 and value % 1024 else f"{thousands:.0f}K"


def effect(value: "Effect | None") -> str:
    """What an optimisation brought: "+72% prefill, +17% decode"; empty if nothing was measured."""
    if value is None:
        return ""
    ratios = ((_("prefill"), value.prefill_ratio), (_("decode"), value.decode_ratio))
    return ", ".join(f"{gain(ratio)} {name}" for name, ratio in ratios if ratio is not None)


def gain(ratio: float) -> str:
    """A ratio on/off as a signed percentage."""
    percent = round((ratio - 1) * 100)
    return f"{percent:+d}%".replace("-", "−") if percent else "±0%"


def cached_share(timings: "Timings") -> int | None:
    """Percentage of the prompt that needed no work; None where the engine does not say."""
    if timings.cached_tokens is None or not timings.prompt_tokens:
        return None
    return round(100 * timings.cached_tokens / timings.prompt_tokens)


def accepted_drafts(timings: "Timings") -> str:
    """How many drafts the rounds accepted, as shares; nothing where that is not told."""
    rounds = sum(timings.accept_histogram)
    if not rounds:
        return ""
    shares = ", ".join(
        f"{drafts}: {each / rounds:.0%}" for drafts, each in enumerate(timings.accept_histogram)
    )
    return _("{shares} of {rounds} rounds").format(shares=shares, rounds=f"{rounds:,}")


def ttft_parts(timings: "Timings") -> str:
    """Where the time to the first token went, " (queue 0.4 s, prefill 2.9 s)": the parts that
    matter beside the others, and nothing where that is one alone."""
    named = (
        (_("queue"), timings.queue_s),
        (_("prefill"), timings.prefill_s),
        (_("first token"), timings.first_token_s),
    )
    whole = sum(took or 0.0 for _name, took in named)
    found = [f"{name} {seconds(took)}" for name, took in named if took and took >= SMALL * whole]
    return f" ({', '.join(found)})" if len(found) > 1 else ""


def prefill_line(prefill: "Prefill", dot: str = "·") -> str:
    """How far the reading of the prompt is, what of it is new, and what was in the cache."""
    line = _("reading the prompt: {share:.0%}").format(share=prefill.share or 0.0)
    if prefill.total and prefill.cached:
        new = prefill.total - prefill.cached
        told = _("{new:,} new tokens, {cached:,} cached")
        return f"{line} {dot} {told.format(new=new, cached=prefill.cached)}"
    if prefill.total:
        return f"{line} {dot} {_('{n:,} tokens').format(n=prefill.total)}"
    return line


def thought_line(timings: "Timings | None", dot: str = "·") -> str:
    """What stands over a thought that is over: "thought for 41 s · 1,902 tok"."""
    if timings is None or timings.thought_s is None:
        return _("thought")
    line = _("thought for {time}").format(time=seconds(timings.thought_s))
    return f"{line} {dot} {timings.thought_tokens:,} tok" if timings.thought_tokens else line


def reply_line(timings: "Timings", dot: str = "·") -> str:
    """The dim line under a finished reply."""
    found: list[str] = []
    if timings.decode_tokens_per_s is not None:
        found.append(f"{rate(timings.decode_tokens_per_s)} tok/s")
    if timings.ttft_s is not None:
        found.append(f"TTFT {seconds(timings.ttft_s)}{ttft_parts(timings)}")
    if timings.accept_length is not None:
        found.append(_("accept {length:.2f}").format(length=timings.accept_length))
    if timings.completion_tokens is not None:
        found.append(f"{timings.completion_tokens:,} tok")
    if timings.prompt_tokens is not None:
        share = cached_share(timings)
        cached = _(", {share}% cached").format(share=share) if share else ""
        prompt = _("prompt {n:,}").format(n=timings.prompt_tokens)
        found.append(prompt + cached)
    return f" {dot} ".join(found)
