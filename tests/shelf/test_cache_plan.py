"""How much memory prompts that were read before the present one may take."""

from dataclasses import replace

from engine_bridge.backends.llamacpp.plan import (
    MOST_CACHE_BYTES,
    RUNTIME_BYTES,
    ModelShape,
    plan_cache,
    plan_context,
)

SHAPE = ModelShape(32_768, 24, 2, 64, 64)
MODEL = 500_000_000


def test_cache_takes_a_quarter_of_what_weights_and_context_leave():
    free = 4_000_000_000
    context = plan_context(SHAPE, MODEL, free)
    left = free - MODEL - RUNTIME_BYTES - context * SHAPE.kv_bytes_per_token
    assert plan_cache(SHAPE, MODEL, free, context) == left // 4


def test_cache_has_an_upper_end_and_is_none_where_it_would_hold_nothing():
    assert plan_cache(SHAPE, MODEL, 64_000_000_000, 32_768) == MOST_CACHE_BYTES
    tight = MODEL + RUNTIME_BYTES + 8192 * SHAPE.kv_bytes_per_token
    assert plan_cache(SHAPE, MODEL, tight, 8192) == 0
    assert plan_cache(SHAPE, MODEL, tight - 1_000_000, 8192) == 0
    assert plan_cache(SHAPE, MODEL, tight + 2048 * SHAPE.kv_bytes_per_token, 8192) == 0


def test_scores_of_a_batch_take_their_part_of_the_context():
    free = 900_000_000
    with_scores = replace(SHAPE, score_bytes=4 * 14 * 128)
    context = plan_context(with_scores, MODEL, free)
    assert context < plan_context(SHAPE, MODEL, free)
    assert context * with_scores.bytes_per_token <= 0.6 * (free - MODEL - RUNTIME_BYTES)
