"""Opt-in: the parser and resolver of a real SGLang under an emulated GPU.

    LING_CHAT_SGLANG_PYTHON=/path/to/python pytest tests/sglang/test_real_resolver.py

Catches flags that a release renames, combinations it refuses, and defaults it changes.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from emulated_gpu import MARK
from sglang_replay import model_folder, sent

from engine_bridge.backends.sglang import checkpoint, flags, interpreter, profile, switches
from engine_bridge.contract import Gpu

PYTHON = os.environ.get("LING_CHAT_SGLANG_PYTHON", "")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="LING_CHAT_SGLANG_PYTHON names no Python with SGLang"),
    pytest.mark.timeout(900),
]
GPUS = {
    "sm_121": Gpu(name="NVIDIA GB10", capability=(12, 1), unified=True),
    "sm_90": Gpu(name="NVIDIA H200", capability=(9, 0)),
}
SETS = {
    "all on": switches.SWITCHES,
    "baseline": frozenset({switches.GRAPHS}),
    "humming only": frozenset({switches.HUMMING, switches.GRAPHS}),
    "no humming": switches.SWITCHES - {switches.HUMMING},
    "unsplit": switches.SWITCHES - {switches.SPLIT},
    "no graphs": switches.SWITCHES - {switches.GRAPHS},
}
MODEL = {
    "hidden_act": "silu",
    "intermediate_size": 7680,
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "n_group": 8,
    "topk_group": 4,
    "layer_group_size": 6,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "rope_theta": 6000000,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "bfloat16",
    "eos_token_id": 156895,
    "pad_token_id": 156892,
    "short_conv_kernel_size": 4,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> checkpoint.Checkpoint:
    return checkpoint.read(model_folder(tmp_path_factory.mktemp("models"), **MODEL))


@pytest.fixture(scope="module", params=sorted(GPUS))
def resolved(request, model):
    """Emulated machine, and what SGLang makes of each set of switches on it."""
    chosen = profile.profile_for(GPUS[request.param])

    def words(on: frozenset[str], context: int | None) -> list[str]:
        tokens, stretch = profile.plan_context(model, context)
        attention = profile.attention_for(chosen, model, on)
        return profile.argv({**profile.flags(chosen, model, on, tokens, attention), **stretch})

    wanted = {name: words(on, None) for name, on in SETS.items()}
    wanted["stretched"] = words(SETS["all on"], 524_288)
    answer = subprocess.run(
        [PYTHON, str(Path(__file__).with_name("emulated_gpu.py")), request.param],
        input=json.dumps(wanted),
        env={**os.environ, **chosen.environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    line = next(line for line in answer.stdout.splitlines() if line.startswith(MARK))
    return request.param, json.loads(line.removeprefix(MARK))


def test_no_combination_is_refused(resolved):
    _, found = resolved
    assert {name: each["refused"] for name, each in found.items() if "refused" in each} == {}


def test_all_on_resolves_to_what_was_asked_for(resolved):
    machine, found = resolved
    got = found["all on"]
    assert got["moe_runner_backend"] == got["speculative_moe_runner_backend"] == "humming"
    assert got["speculative_algorithm"] in ("EAGLE", "NEXTN")
    shape = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    assert [got[name] for name in shape] == [3, 1, 4]
    assert got["context_length"] == 262144
    assert (got["reasoning_parser"], got["tool_call_parser"]) == ("ling3", "ling3")
    assert not got["enable_fp32_lm_head"]
    assert got["attention_backend"] == "flashinfer"
    assert got["decode_attention_backend"] == "triton"
    assert got["speculative_attention_mode"] == "decode"
    if machine == "sm_121":
        assert got["mem_fraction_static"] == 0.68
        assert got["fp8_gemm_runner_backend"] == "cutlass"


def test_the_prefix_cache_stays_on(resolved):
    _, found = resolved
    for got in found.values():
        assert got["disable_radix_cache"] is False
        assert got["mamba_radix_cache_strategy"] == "extra_buffer"
        assert (got["page_size"], got["max_mamba_cache_size"]) == (64, 64)


def test_the_baseline_on_a_spark_is_the_cookbooks(resolved):
    machine, found = resolved
    got = found["baseline"]
    assert got["moe_runner_backend"] == "flashinfer_mxfp4"
    assert got["speculative_algorithm"] is None
    assert got["enable_fp32_lm_head"] is (machine == "sm_121")


def test_without_humming_sglang_takes_flashinfer(resolved):
    assert resolved[1]["no humming"]["moe_runner_backend"] == "flashinfer_mxfp4"


def test_graphs_are_on_and_off_as_asked(resolved):
    _, found = resolved
    for name, backend in (("all on", "full"), ("no graphs", "disabled")):
        assert f"decode=PhaseConfig(backend='{backend}'" in found[name]["cuda_graph_config"]


def test_a_stretched_context_is_accepted(resolved):
    assert resolved[1]["stretched"]["context_length"] == 524_288


def test_the_recorded_options_are_the_parsers_own(home, monkeypatch):
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", PYTHON)
    engine = interpreter.find()
    if engine.sglang != "0.5.23":
        pytest.skip(f"the recording is of 0.5.23, here is {engine.sglang}")
    assert flags.options_of(engine, lambda phase: None) == sent("flags.json")
