"""Figures of one answer: the engine's own words where it gives them, else this client's clock."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine_bridge.chat.events import Prefill, Timings

Chunk = dict[str, Any]


def _section(chunk: Chunk, *names: str) -> dict[str, Any]:
    """The figures of a part of a chunk, and its own parts. What is neither is left out: a
    server's odd word about its figures must not cost the answer."""
    for name in names:
        found = chunk.get(name)
        if not isinstance(found, dict):
            return {}
        chunk = found
    return {
        name: value for name, value in chunk.items() if isinstance(value, dict) or _is_figure(value)
    }


def _is_figure(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < 1e15


def _known(**figures: Any) -> dict[str, Any]:
    return {name: figure for name, figure in figures.items() if _is_figure(figure)}


def usage_figures(chunk: Chunk) -> dict[str, Any]:
    """OpenAI's `usage`, which every server may send: in the last chunk, or in each."""
    usage = _section(chunk, "usage")
    return _known(
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        cached_tokens=_section(usage, "prompt_tokens_details").get("cached_tokens"),
        thought_tokens=usage.get("reasoning_tokens")
        or _section(usage, "completion_tokens_details").get("reasoning_tokens"),
    )


def llama_figures(chunk: Chunk) -> dict[str, Any]:
    """llama-server's `timings`. A verification round yields one token beside the accepted ones,
    so rounds = predicted_n - draft_n_accepted."""
    timings = _section(chunk, "timings")
    predicted, drafted = timings.get("predicted_n") or 0, timings.get("draft_n") or None
    accepted = timings.get("draft_n_accepted", 0) if drafted else None
    rounds = predicted - accepted if accepted is not None else 0
    return _known(
        prompt_tokens=timings["prompt_n"] + timings["cache_n"]
        if {"prompt_n", "cache_n"} <= timings.keys()
        else None,
        cached_tokens=timings.get("cache_n"),
        completion_tokens=timings.get("predicted_n"),
        prefill_tokens_per_s=timings.get("prompt_per_second") or None,
        prefill_s=timings["prompt_ms"] / 1000 if "prompt_ms" in timings else None,
        decode_tokens_per_s=timings.get("predicted_per_second") if predicted > 1 else None,
        drafted_tokens=drafted,
        accepted_tokens=accepted,
        accept_length=predicted / rounds if rounds > 0 else None,
    )


def sglang_figures(chunk: Chunk) -> dict[str, Any]:
    """SGLang's `sglext`, in one of the last chunks."""
    drafts = _section(chunk, "sglext", "spec_tokens_details")
    if not drafts.get("spec_num_proposed_drafts"):
        return {}
    rounds = chunk["sglext"]["spec_tokens_details"].get("spec_correct_drafts_histogram")
    told = isinstance(rounds, list) and all(_is_figure(each) for each in rounds)
    return _known(
        accept_length=drafts.get("spec_accept_length"),
        drafted_tokens=drafts.get("spec_num_proposed_drafts"),
        accepted_tokens=drafts.get("spec_num_correct_drafts"),
    ) | ({"accept_histogram": tuple(map(int, rounds))} if told else {})


_READERS = (usage_figures, llama_figures, sglang_figures)


def prefill_of(chunk: Chunk) -> Prefill | None:
    """llama-server's `prompt_progress`; `processed` counts the cached tokens too."""
    progress = _section(chunk, "prompt_progress")
    total, processed = progress.get("total"), progress.get("processed")
    if not isinstance(total, int) or not isinstance(processed, int):
        return None
    return Prefill(processed, total, progress.get("cache", 0), progress.get("time_ms", 0) / 1000)


class Meter:
    """Follows one answer chunk by chunk. `clock` gives seconds.

    `rounds_in_usage`: usage comes with each chunk and the server drafts, so that the growth of
    completion_tokens is what a verification round yielded. Without drafts it is not: a character
    of several tokens makes it grow by more than one, too.
    """

    def __init__(
        self, rounds_in_usage: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._rounds_in_usage = rounds_in_usage
        self._started = clock()
        self._began: float | None = None
        self._first: float | None = None
        self._last = self._started
        self._pieces = 0
        self._tokens_at_first = 0
        self._growths = 0
        self._accepted: Counter[int] = Counter()
        self._thought: tuple[float, float, int] | None = None
        """When thinking began and was last seen, and the tokens until then."""
        self._thinks = True
        self._engine: dict[str, Any] = {}

    def read(self, chunk: Chunk) -> bool:
        """Takes the engine's figures out of a chunk. True where it brought new tokens."""
        before = self._engine.get("completion_tokens", 0)
        for reader in _READERS:
            self._engine |= reader(chunk)
        grown: int = self._engine.get("completion_tokens", 0) - before
        if grown > 0 and self._growths:  # the first is the prefill's own token, no round
            self._accepted[grown - 1] += 1
        self._growths += grown > 0
        return grown > 0

    def saw_prefill(self, prefill: Prefill) -> None:
        """The engine reads the prompt; the one that came with the least delay tells when it
        began."""
        began = self._clock() - prefill.elapsed_s
        self._began = began if self._began is None else min(self._began, began)

    def saw_tokens(self) -> None:
        """New tokens came, with text or (half of a character) still without."""
        self._last = self._clock()
        self._pieces += 1
        if self._first is None:
            self._first = self._last
            self._tokens_at_first = self._tokens()

    def saw_thought(self) -> None:
        """Thinking text came."""
        if self._thinks:
            now = self._clock()
            self._thought = (self._thought[0] if self._thought else now, now, self._tokens())

    def saw_answer(self) -> None:
        """Text of the answer came: a thought before it is over."""
        if self._thought and self._thinks:
            began, _last, tokens = self._thought
            self._thought = (began, self._clock(), tokens)
        self._thinks = False

    def _tokens(self) -> int:
        return self._engine.get("completion_tokens") or self._pieces

    def timings(self, *, final: bool = False) -> Timings:
        """The figures so far. `decode_tokens_per_s` leaves the first token out, as its time is
        the prefill's. The final accept length is the engine's word or None."""
        ttft = None if self._first is None else self._first - self._started
        timings = Timings(
            completion_tokens=self._tokens(),
            ttft_s=ttft,
            first_tokens=max(self._tokens_at_first, 1),
            decode_tokens_per_s=self._decode_rate(),
            accept_length=None if final else self._live_accept_length(),
            accept_histogram=() if final else self._live_histogram(),
            by_engine="completion_tokens" in self._engine,
        )
        timings = replace(timings, **self._engine)
        if self._thought:
            began, last, tokens = self._thought
            # SGLang's own count takes in drafts that were thrown away at the end.
            tokens = min(timings.thought_tokens or tokens, timings.completion_tokens or tokens)
            timings = replace(timings, thought_s=last - began, thought_tokens=tokens)
        else:
            timings = replace(timings, thought_tokens=None)
        if timings.prefill_tokens_per_s is None and timings.prompt_tokens and ttft:
            uncached = timings.prompt_tokens - (timings.cached_tokens or 0)
            timings = replace(timings, prefill_tokens_per_s=uncached / ttft)
        if self._began is not None:
            queue, rest = max(0.0, self._began - self._started), None
            if ttft is not None and timings.prefill_s is not None:
                around = max(0.0, ttft - timings.prefill_s)
                queue = min(queue, around)
                rest = around - queue
            timings = replace(timings, queue_s=queue, first_token_s=rest)
        return timings

    def _decode_rate(self) -> float | None:
        seconds = self._last - self._first if self._first is not None else 0.0
        tokens = self._tokens() - self._tokens_at_first
        return tokens / seconds if seconds > 0 and tokens > 0 else None

    def _live_accept_length(self) -> float | None:
        rounds = self._growths - 1
        return self._tokens() / rounds if self._rounds_in_usage and rounds > 0 else None

    def _live_histogram(self) -> tuple[int, ...]:
        """A round yields one token beside the drafts that it accepts."""
        if not self._rounds_in_usage:
            return ()
        return tuple(
            self._accepted[drafts] for drafts in range(max(self._accepted, default=-1) + 1)
        )
