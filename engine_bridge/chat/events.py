"""What happens while an answer is made. A stream yields these in the order they occur."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How an answer is to be made. None leaves a setting to the engine."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """The answer ends before any of these."""
    thinking: bool | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest(Parameters):
    """One request."""

    messages: tuple[Message, ...]
    continues: bool = False
    """The last message is the beginning of the answer. Only where `Flavour.continues` is set."""
    ignore_eos: bool = False
    """Go on to `max_tokens`, where the engine knows how: for measurements."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Figures of one answer: the engine's own where it gives them, else this client's clock.

    Tokens are counts, `_s` seconds. `accept_length` is the mean number of tokens a verification
    round yields, (completion_tokens / rounds); None where nothing was drafted.
    """

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_s: float | None = None
    prefill_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    queue_s: float | None = None
    """Of the TTFT: until the engine began with the prompt."""
    prefill_s: float | None = None
    """Of the TTFT: reading the prompt, by the engine's own clock."""
    first_token_s: float | None = None
    """Of the TTFT: from the prompt's end to the first text that arrived here."""
    thought_s: float | None = None
    """From the first thinking text to the first of the answer, or to its last where none came."""
    thought_tokens: int | None = None
    """Of the completion tokens; None where nothing was thought."""
    first_tokens: int = 1
    """How many tokens the TTFT covers: more than one where the server sends several at a time, or
    holds text back that is no whole character yet."""
    accept_length: float | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    accept_histogram: tuple[int, ...] = ()
    """How many verification rounds accepted 0, 1, 2 … drafts; empty where that is not told."""
    by_engine: bool = False
    """True where token counts and rates are the engine's own, False where this client counted."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The server is busy or still loading; the request is tried again in `retry_in_s` seconds."""

    reason: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class Prefill:
    """The engine is reading the prompt. Token counts; `cached` of `total` needed no work."""

    processed: int
    total: int
    cached: int
    elapsed_s: float
    eta_s: float | None = None
    """Seconds until the prompt is read (`engine_bridge.chat.prefill`); None where unknown."""

    @property
    def share(self) -> float | None:
        """Share of the prompt that is read, 0 to 1; None where its length is not known."""
        return min(1.0, self.processed / self.total) if self.total else None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking text, as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Answer text, as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Live figures; may follow any chunk."""

    timings: Timings


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete. `finish_reason`: stop, length, or what the server said."""

    finish_reason: str
    timings: Timings


Event = Waiting | Prefill | Reasoning | Text | Progress | Finished
