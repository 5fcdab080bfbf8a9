"""What NVIDIA's article on Ling-3.0-flash and one DGX Spark published, to stand beside one's own.

Batch 1. GSM8K: 1,319 questions, five shots, temperature 0.6, top-p 0.95, top-k 29, thinking on,
at most 32,768 tokens. Synthetic: 32K in, 2K out; only ratios to the baseline were given there,
and the last rung's rate, from which the others follow.
"""

from typing import Any

NONE: frozenset[str] = frozenset()
HUMMING = frozenset({"humming"})
HEAD = frozenset({"humming", "fp8-head"})
ALL = frozenset({"humming", "fp8-head", "nextn"})

SYNTHETIC_LAST = 102.88
GAINS = {HUMMING: 1.093, HEAD: 1.217, ALL: 2.851}
SYNTHETIC_BASE = SYNTHETIC_LAST / GAINS[ALL]
"""Tokens/s that follow for the baseline: 36.09."""

PUBLISHED: dict[tuple[str, frozenset[str]], dict[str, Any]] = {
    ("gsm8k", NONE): {
        "tpot_s": 0.02645,
        "decode_tokens_per_s": 37.81,
        "e2e_s": 15.21,
        "completion_tokens": 567,
        "accuracy": 0.9689,
        "ratio": 1.0,
    },
    ("gsm8k", ALL): {
        "tpot_s": 0.01856,
        "decode_tokens_per_s": 53.89,
        "e2e_s": 11.49,
        "completion_tokens": 607,
        "accuracy": 0.9682,
        "accept_length": 2.68,
        "ratio": 1.425,
    },
    ("synthetic", NONE): {"decode_tokens_per_s": SYNTHETIC_BASE, "ratio": 1.0},
    ("synthetic", HUMMING): {"decode_tokens_per_s": 1.093 * SYNTHETIC_BASE, "ratio": 1.093},
    ("synthetic", HEAD): {"decode_tokens_per_s": 1.217 * SYNTHETIC_BASE, "ratio": 1.217},
    ("synthetic", ALL): {
        "decode_tokens_per_s": SYNTHETIC_LAST,
        "ratio": 2.851,
        "accept_length": 3.90,
    },
}
VERIFY_STEPS = 2.26
"""Plain decode steps that verifying a 4-token window costs."""
