"""What happens while an answer is made, on standard error: waiting, prefill, final figures."""

from typing import TYPE_CHECKING

from app.cli.line import Line
from app.core import figures
from app.core.i18n import _, shown

if TYPE_CHECKING:
    from engine_bridge.chat.events import Event, Prefill, Timings


class Notes:
    """One line, redrawn where stderr is a terminal; else a line a step.

    `aside` is true where the answer does not appear on the same terminal, so that the line may
    go on while it is written.
    """

    def __init__(self, quiet: bool, aside: bool) -> None:
        self._quiet = quiet
        self._aside = aside
        self._line = Line()
        self._redraw = self._line.redraws
        self._last_step = -1

    def __enter__(self) -> "Notes":
        return self

    def __exit__(self, *_: object) -> None:
        self._line.clear()

    def take(self, event: "Event") -> None:
        from engine_bridge.chat.events import Finished, Prefill, Progress, Reasoning, Text, Waiting

        if self._quiet:
            return
        match event:
            case Waiting(reason, retry_in_s):
                self._line.say(
                    _("{rstrip}; trying again in {retry_in_s:.0f} s").format(
                        rstrip=shown(reason).rstrip("."), retry_in_s=retry_in_s
                    )
                )
            case Prefill() if event.total:
                self._prefill(event)
            case Reasoning() if self._redraw:
                self._line.draw(_("thinking"))
            case Text() if not self._aside:
                self._line.clear()
                self._redraw = False
            case Progress(timings) if self._redraw:
                self._line.draw(describe(timings))
            case Finished(finish_reason, timings):
                cut = _(" · stopped at the token limit") if finish_reason == "length" else ""
                self._line.say(f"{'' if self._aside else chr(10)}{describe(timings)}{cut}")

    def _prefill(self, prefill: "Prefill") -> None:
        step = 10 * prefill.processed // prefill.total
        if self._redraw:
            self._line.draw(describe_prefill(prefill))
        elif step != self._last_step:
            self._line.say(describe_prefill(prefill))
        self._last_step = step


def describe_prefill(prefill: "Prefill") -> str:
    """ "reading the prompt: 45% · 7,262 new tokens, 2,048 cached · 0:12 left"."""
    left = _(" · {eta_s} left").format(eta_s=figures.clock(prefill.eta_s)) if prefill.eta_s else ""
    return f"{figures.prefill_line(prefill)}{left}"


def describe(timings: "Timings") -> str:
    """The figures that are known, in one line."""
    parts = [_("{n:,} tokens").format(n=timings.completion_tokens or 0)]
    if timings.decode_tokens_per_s is not None:
        parts.append(f"{timings.decode_tokens_per_s:.1f} tok/s")
    if timings.ttft_s is not None:
        parts.append(_("first after {ttft_s:.2f} s").format(ttft_s=timings.ttft_s))
    if timings.prompt_tokens is not None:
        cached = (
            _(" ({cached_tokens:,} cached)").format(cached_tokens=timings.cached_tokens)
            if timings.cached_tokens
            else ""
        )
        parts.append(_("prompt {n:,}").format(n=timings.prompt_tokens) + cached)
    if timings.accept_length is not None:
        parts.append(
            _("accept length {accept_length:.2f}").format(accept_length=timings.accept_length)
        )
    return " · ".join(parts)
