"""Speculation that tells the truth: what a round costs at the context length in use.

A healthy accept length says nothing about that: on an H200 with the triton attention backend,
NEXTN at 30,000 tokens of context accepted 2.71 tokens a round and ran at 0.38 of plain decoding,
because a round took 54 ms instead of 9.9.
"""

from dataclasses import dataclass

from engine_bridge.backends.sglang.learned import Decode

COSTS = 0.95
"""Below this share of plain decoding, speculation is called a loss: the promise is never to be
slower than without it by more than 5%."""
PLAIN_GROWTH = 1.25
"""How much a plain step may take longer in a longer context than was measured. On the H200 it
took 10% longer at 30,000 tokens than at 1,024."""
DEAD = 1.005
"""An accept length up to this is the known failure: no draft is ever accepted."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Speculation against plain decoding at one context length."""

    ratio: float
    """Tokens per second with over without speculation."""
    measured_here: bool
    """False: plain decoding was measured only in a shorter context, and the ratio is a bound."""

    @property
    def costs(self) -> bool:
        """Whether it certainly costs more than it brings."""
        return self.ratio * (1 if self.measured_here else PLAIN_GROWTH) < COSTS


def compare(now: Decode, plain: Decode | None, plain_shorter: Decode | None) -> Comparison | None:
    """Speculation as it runs `now` against plain decoding in the same context length, or, where
    that was never measured, in a shorter one. None where neither was."""
    if plain is not None:
        return Comparison(now.tokens_per_s / plain.tokens_per_s, True)
    if plain_shorter is not None:
        return Comparison(now.tokens_per_s / plain_shorter.tokens_per_s, False)
    return None


def sentence(found: Comparison | None, now: Decode, context_tokens: int) -> str:
    """What a user should know about speculation now; nothing while it brings what it should."""
    if now.accept_length <= DEAD:
        return (
            f"Accept length {now.accept_length:.2f}: no draft is ever accepted, so NEXTN only"
            " costs time. Turn it off."
        )
    if found is None or not found.costs:
        return ""
    about = "" if found.measured_here else "at most about "
    share = found.ratio * (1 if found.measured_here else PLAIN_GROWTH)
    return (
        f"At {context_tokens:,} tokens of context NEXTN runs at {about}{share:.2f} of plain"
        f" decoding ({now.tokens_per_s:.0f} tokens/s, {1000 * now.step_s:.1f} ms a round), though"
        f" it accepts {now.accept_length:.2f} tokens a round: turn it off for contexts like this."
    )
