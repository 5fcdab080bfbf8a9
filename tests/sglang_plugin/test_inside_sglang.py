"""The plugin on SGLang's real classes: a tiny Ling and its NEXTN draft, on the CPU."""

import pytest

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(1200)]
WEIGHT_ONLY = 0.027  # what e4m3 with a scale a row loses on Gaussian weights
START = "sglang.srt.managers.scheduler.Scheduler.__init__"


def seen(inside, name):
    facts = inside[name]
    assert "traceback" not in facts, facts["traceback"]
    return facts


def test_sglangs_own_loader_finds_the_plugin_and_applies_its_hooks(inside):
    hooks = seen(inside, "hooks")
    assert len(hooks["states"]) == 5
    assert set(hooks["states"].values()) == {"applied"}
    assert START in hooks["named"]
    assert hooks["stranger"] != "applied"


def test_only_the_targets_head_is_quantised_when_it_loads(inside):
    head = seen(inside, "head")
    assert head["class"] == "ParallelLMHead"
    assert (head["method"], head["dtype"]) == ("Fp8HeadMethod", "torch.float8_e4m3fn")
    assert head["scales"] == [512]
    assert head["error"] < WEIGHT_ONLY
    assert head["second_time_same"]
    assert head["embedding_dtype"] == "torch.bfloat16"
    assert head["draft_method"] == "UnquantizedEmbeddingMethod"


def test_logits_of_any_number_of_rows_are_right(inside):
    logits = seen(inside, "logits")
    assert set(logits["errors"]) == {"1", "3", "4", "5", "17", "300"}
    assert max(logits["errors"].values()) < WEIGHT_ONLY + 0.002
    # Beyond what the weights lost, only the rounding of the output that a BF16 head has too.
    assert max(logits["against_own_weights"].values()) < 1.1 * logits["bf16_error"]
    assert logits["dtype"] == "torch.bfloat16"
    assert logits["empty"] == [0, 512]
    assert logits["three_dimensions"]


def test_shards_of_the_head_compute_what_the_whole_does(inside):
    shards = seen(inside, "shards")
    assert shards["same"]
    assert shards["zero_rows"] == [1.0, 1.0, 1.0]


def test_other_weights_are_not_loaded_into_a_quantised_head(inside):
    for sentence in seen(inside, "new_weights").values():
        assert "restart the engine" in sentence


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("fp32 by configuration", "FP32 head"),
        ("tied by configuration", "ties its head"),
        ("tied in fact", "ties its head"),
        ("quantised already", "quantises the head itself (GPTQMarlinMethod)"),
        ("no head", "no LM head"),
        ("enable_fp32_lm_head=True", "--enable-fp32-lm-head"),
        ("lora_target_modules=['q_proj', 'lm_head']", "--lora-target-modules"),
        ("lora_target_modules=['all']", "--lora-target-modules"),
    ],
)
def test_a_head_that_must_not_change_is_refused_by_name(inside, case, words):
    sentence = seen(inside, "refusals")[case]
    assert sentence.startswith("ling-chat: the FP8 head was requested and is not on: ")
    assert words in sentence
    assert "\n" not in sentence


def test_a_head_that_may_change_is_not_refused(inside):
    refusals = seen(inside, "refusals")
    assert refusals["fine"] is None
    assert refusals["arguments that are fine"] is None
    assert refusals["untouched after refusals"] == "UnquantizedEmbeddingMethod"
    assert "LoRA" in refusals["missing when LoRA wraps it"]
    assert "UnquantizedEmbeddingMethod" in refusals["missing when plain"]


def test_the_draft_gets_the_targets_very_head_from_sglangs_own_code(inside):
    sharing = seen(inside, "sharing")
    assert sharing["draft"] == "BailingMoeForCausalLMNextN"
    assert not sharing["upstream_has_it"]
    assert sharing["own_before"]
    assert sharing["same_module"]
    assert sharing["same_embedding"]
    assert sharing["same_logits"]


def test_a_draft_that_keeps_its_own_head_ends_the_start(inside):
    assert seen(inside, "sharing")["refusal"].startswith("ling-chat: NEXTN was requested")


def test_hummings_activation_is_clamped_exactly_as_the_triton_path_does(inside):
    clamp = seen(inside, "clamp")
    assert clamp["largest_difference"] == 0
    assert clamp["equal_to_triton_path"]
    assert clamp["without_the_hook_differs_by"] > 1
    assert clamp["nan_stays"]


def test_layers_without_a_limit_keep_hummings_own_activation(inside):
    clamp = seen(inside, "clamp")
    assert clamp["without_a_limit_untouched"]
    assert clamp["applied_layers"] == [35]
    assert clamp["calls"] == 1


def test_the_evidence_tells_what_really_runs(inside):
    found = seen(inside, "evidence")["found"]
    assert found["sglang"].startswith("0.5.")
    assert found["experts"]["target"] == {"layers": 5, "humming": 0, "backends": {"triton": 5}}
    assert found["experts"]["draft"] == {"layers": 1, "humming": 0, "backends": {"triton": 1}}
    assert found["head"] == {
        "dtype": "float8_e4m3fn", "method": "Fp8HeadMethod", "rows": 512, "columns": 128,
        "scales": [512], "kernels": {}, "shared_with_draft": True,
    }  # fmt: skip
    assert found["clamp"]["expected_layers"] == [4, 5]
    assert found["speculation"] == {
        "algorithm": "EAGLE", "steps": 3, "topk": 1, "draft_tokens": 4,
    }  # fmt: skip


def test_what_was_asked_for_and_is_not_there_is_refused_and_the_rest_is_not(inside):
    evidence = seen(inside, "evidence")
    humming, clamp = evidence["refused"]
    assert "Humming was requested and is not on" in humming
    assert "6 on triton" in humming
    assert "the SwiGLU clamp was requested and is not on" in clamp
    assert evidence["honest"] == []
    assert len(evidence["no_draft"]) == 1
    assert "without speculation" in evidence["no_draft"][0]
