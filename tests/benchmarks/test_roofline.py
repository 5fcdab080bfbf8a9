"""Bytes against the model's own files, and the article's steps within what its inputs allow."""

import pytest

from app.bench import roofline
from app.bench.article_check import article_check, ling_config
from app.bench.parts import of_config, of_model, with_fp8_head
from engine_bridge.errors import UsageError
from engine_bridge.models import tensors


def test_the_parts_of_a_gguf_are_its_tensors(smol):
    step = of_model(smol, 0)
    read = sum(t.nbytes for t in tensors.read(smol).tensors)
    # All but the norms of the output is read; the tied embeddings serve as the head.
    assert step.bytes == pytest.approx(read, rel=0.001)
    assert of_model(smol, 1000).kv == 1000 * 2 * 30 * 3 * 64 * 2  # layers, heads, width, 16 bits


def test_ling_has_the_published_size():
    step = of_config(ling_config(), 0)
    experts = step.experts / (17 / 32)
    routers = 40 * 512 * 2560
    dense = step.dense - 4 * routers  # in FP8; the routers in FP32
    active = experts + step.shared + step.attention + step.head / 2 + dense + routers
    assert active / 1e9 == pytest.approx(5.1, abs=0.1)  # weights of one token, published
    assert step.head == 157_184 * 2560 * 2
    assert with_fp8_head(step).head == step.head / 2


def test_more_tokens_touch_more_experts_but_never_more_than_there_are():
    step = of_config(ling_config())
    assert step.distinct_experts(1) == pytest.approx(8)
    assert 31 < step.distinct_experts(4) < 32
    assert step.distinct_experts(100_000) == pytest.approx(512)
    assert step.verify(1) == step.bytes


def test_the_articles_steps_are_within_15_percent_or_an_input_is_named():
    rows = article_check(ling_config())
    assert len(rows) == 6
    for row in rows:
        assert row["within"], row
        off = max(map(abs, row["off_by"].values()))
        assert off <= 0.15 or "Missing input" in row["why"], row
    by_launches = [row for row in rows if abs(row["off_by"]["with_launches"]) <= 0.15]
    assert {row["name"] for row in rows} - {row["name"] for row in by_launches} == {
        "a round in plain steps",
        "all on, GSM8K tokens/s",
    }


def test_the_h200_is_bound_by_launches_not_bytes():
    # Measured on an H200: copies at 4.21 TB/s, 144.6 tokens/s, an FP8 head brought 1%.
    step = of_config(ling_config(), 1024)
    told = roofline.standing(step.bytes, 4.21e12, 1 / 144.6)
    assert told["measured_ms"] - told["beside_ms"] == pytest.approx(1.1, abs=0.1)
    assert told["of_floor"] < 0.2
    saved_ms = 1000 * (step.bytes - with_fp8_head(step).bytes) / 4.21e12
    assert saved_ms / told["measured_ms"] == pytest.approx(0.01, abs=0.005)


def test_a_plain_transformer_is_counted_too():
    config = {
        "hidden_size": 896,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "intermediate_size": 4864,
        "vocab_size": 151_936,
        "torch_dtype": "bfloat16",
    }
    weights = of_config(config, 0).bytes / 2
    assert weights == pytest.approx(494e6, rel=0.01)  # Qwen2.5-0.5B


def test_a_config_without_figures_is_told(tmp_path):
    with pytest.raises(UsageError, match="lacks a figure"):
        of_config({"hidden_size": 10})
    with pytest.raises(UsageError, match="no number that makes sense"):
        of_config({"hidden_size": "wide", "num_hidden_layers": 2})
    with pytest.raises(UsageError, match="cannot be read"):
        of_model(tmp_path, 10)
