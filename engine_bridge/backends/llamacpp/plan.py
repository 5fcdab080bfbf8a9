"""How much context: decided from the model and from the memory that is really free."""

from dataclasses import dataclass

from engine_bridge.errors import UnavailableError
from engine_bridge.models.progress import size_text

STEP_TOKENS = 1024
SMALLEST_CONTEXT = 2048
RUNTIME_BYTES = 250_000_000
"""Code, compute buffers and the server itself, besides weights and KV cache (measured: the
135M model peaks at 349 MB with 98 MB of weights)."""
KV_SHARE = 0.6
"""Share of the memory left beside the weights that the KV cache may take: the user's browser
wants some too."""

CACHE_SHARE = 0.25
MOST_CACHE_BYTES = 4_000_000_000


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The figures of a model that decide its KV cache. Lengths are elements, not bytes."""

    context_tokens: int
    layers: int
    kv_heads: int
    key_length: int
    value_length: int
    score_bytes: int = 0
    """Bytes of attention scores a token of the context takes while a batch is computed."""

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of F16 keys and values a token takes over all layers."""
        return self.layers * self.kv_heads * (self.key_length + self.value_length) * 2

    @property
    def bytes_per_token(self) -> int:
        """All that a token of the context takes."""
        return self.kv_bytes_per_token + self.score_bytes


def plan_context(
    shape: ModelShape, model_bytes: int, free_bytes: int, asked: int | None = None
) -> int:
    """Context length in tokens: what was asked for, else the most that fits, at most the model's.

    Raises UnavailableError when not even a small context fits beside the weights.
    """
    room = free_bytes - model_bytes - RUNTIME_BYTES
    per_token = max(shape.bytes_per_token, 1)
    if asked is not None:
        if asked * per_token > room:
            raise UnavailableError(
                f"A context of {asked:,} tokens needs {size_text(asked * per_token)}"
                f" beside the model, and {size_text(max(room, 0))} is free.",
                "Ask for a shorter context or close other programs.",
            )
        return asked
    fits = int(max(room, 0) * KV_SHARE / per_token)
    longest = shape.context_tokens or SMALLEST_CONTEXT
    context = min(longest, fits // STEP_TOKENS * STEP_TOKENS)
    if context < min(SMALLEST_CONTEXT, longest):
        least = model_bytes + RUNTIME_BYTES + SMALLEST_CONTEXT * per_token
        raise UnavailableError(
            f"The model needs {size_text(least)} of memory and {size_text(free_bytes)} is free.",
            "Close other programs or choose a smaller model with --model.",
        )
    return context


def plan_cache(shape: ModelShape, model_bytes: int, free_bytes: int, context_tokens: int) -> int:
    """Bytes of memory for prompts that were read before the present one: a part of what is left
    beside weights and KV cache. 0 where that would not hold a prompt of 1,024 tokens."""
    left = free_bytes - model_bytes - RUNTIME_BYTES - context_tokens * shape.bytes_per_token
    room = min(int(max(left, 0) * CACHE_SHARE), MOST_CACHE_BYTES)
    return room if room >= STEP_TOKENS * shape.kv_bytes_per_token else 0
