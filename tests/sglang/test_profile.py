"""What is launched for which machine, model and switches."""

import json

import pytest
from sglang_replay import config, model_folder, sent

from engine_bridge.backends.sglang import checkpoint, flags, profile, switches
from engine_bridge.contract import EngineSpec, Gpu, Verdict
from engine_bridge.errors import UsageError

GB10 = Gpu(name="NVIDIA GB10", capability=(12, 1), unified=True)
H200 = Gpu(name="NVIDIA H200", capability=(9, 0))
ALL = switches.SWITCHES


def launch(tmp_path, gpu, on=ALL, **changes):
    model = checkpoint.read(model_folder(tmp_path, **changes))
    chosen = profile.profile_for(gpu)
    on = frozenset(on)
    return profile.flags(chosen, model, on, 262144, profile.attention_for(chosen, model, on))


def test_the_gpu_decides_the_profile():
    assert profile.profile_for(GB10) is profile.SPARK
    assert profile.profile_for(H200) is profile.NVIDIA
    assert profile.profile_for(None) is profile.CPU


def test_a_spark_with_all_on(tmp_path):
    chosen = launch(tmp_path, GB10)
    assert chosen["--moe-runner-backend"] == "humming"
    assert chosen["--speculative-algorithm"] == "NEXTN"
    assert chosen["--speculative-draft-model-path"] == chosen["--model-path"]
    assert chosen["--attention-backend"] == "flashinfer"
    assert chosen["--decode-attention-backend"] == "triton"
    assert chosen["--speculative-attention-mode"] == "decode"
    assert chosen["--mem-fraction-static"] == "0.68"
    assert chosen["--cuda-graph-backend-decode"] == "full"
    assert chosen["--reasoning-parser"] == "ling3"
    assert "--enable-fp32-lm-head" not in chosen


def test_a_spark_with_nothing_on_is_the_cookbooks_baseline(tmp_path):
    chosen = launch(tmp_path, GB10, on={switches.GRAPHS})
    assert chosen["--moe-runner-backend"] == "flashinfer_mxfp4"
    assert chosen["--flashinfer-mxfp4-moe-precision"] == "default"
    assert "--enable-fp32-lm-head" in chosen
    assert not any(flag.startswith("--speculative") for flag in chosen)


@pytest.mark.parametrize("missing", sorted(ALL))
def test_each_switch_changes_its_own_flags_only(tmp_path, missing):
    gone = {missing, switches.SPLIT} if missing == switches.NEXTN else {missing}
    with_it, without = launch(tmp_path / "a", GB10), launch(tmp_path / "b", GB10, ALL - gone)
    path = without["--model-path"]
    changed = {f for f in {*with_it, *without} if with_it.get(f, "-") != without.get(f, "-")}
    changed -= {f for f in changed if without.get(f) == path}
    split = {"--decode-attention-backend", "--speculative-attention-mode"}
    expected = {
        "humming": {"--moe-runner-backend"},
        "fp8-head": set(),  # the plugin's work
        "nextn": {*profile.NEXTN, "--speculative-draft-model-path", *split},
        "split-verify": split,
        "cuda-graphs": {
            "--cuda-graph-backend-decode",
            "--cuda-graph-max-bs-decode",
            "--cuda-graph-bs-decode",
        },
    }
    assert changed == expected[missing]


def test_another_gpu_and_another_model_get_nothing_of_the_spark_or_of_ling(tmp_path):
    other = {"architectures": ["Qwen3ForCausalLM"], "num_experts": 0}
    chosen = launch(tmp_path, H200, on={switches.GRAPHS}, **other)
    assert not {"--mem-fraction-static", "--attention-backend", "--fp8-gemm-backend"} & set(chosen)
    assert not {"--reasoning-parser", "--moe-runner-backend", "--dtype"} & set(chosen)


@pytest.mark.parametrize("gpu", [GB10, H200, None])
@pytest.mark.parametrize("on", [ALL, {switches.GRAPHS}, set(), {switches.HUMMING}])
def test_the_recorded_parser_of_sglang_knows_every_flag(tmp_path, gpu, on):
    words = profile.argv({**launch(tmp_path, gpu, on), "--host": "127.0.0.1", "--port": "1"})
    assert flags.first_problem(words, sent("flags.json")) == ""


def test_flags_become_words_and_bare_flags_stay_bare():
    assert profile.argv({"--a": "1", "--b": None}) == ["--a", "1", "--b"]


@pytest.mark.parametrize(
    ("trained", "asked", "tokens", "factor"),
    [
        (262144, None, 262144, None),
        (262144, 32768, 32768, None),
        (131072, None, 262144, 2.0),
        (131072, 65536, 65536, None),
        (65536, 200_000, 200_000, 200_000 / 65536),
    ],
)
def test_context_and_yarn_come_from_the_checkpoint(tmp_path, trained, asked, tokens, factor):
    model = checkpoint.read(model_folder(tmp_path, max_position_embeddings=trained))
    context, override = profile.plan_context(model, asked)
    assert context == tokens
    if factor is None:
        assert override == {}
    else:
        stretched = json.loads(override["--json-model-override-args"])
        assert stretched["rope_scaling"]["rope_type"] == "yarn"
        assert stretched["rope_scaling"]["factor"] == factor
        assert stretched["rope_scaling"]["original_max_position_embeddings"] == trained
        assert stretched["max_position_embeddings"] == tokens


def test_a_checkpoint_with_yarn_of_its_own_is_not_stretched_again(tmp_path):
    scaling = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 131072}
    folder = model_folder(tmp_path, max_position_embeddings=131072, rope_scaling=scaling)
    assert profile.plan_context(checkpoint.read(folder), None) == (262144, {})


def test_more_context_than_any_stretch_reaches_is_refused(tmp_path):
    model = checkpoint.read(model_folder(tmp_path, max_position_embeddings=8192))
    with pytest.raises(UsageError, match="handles 8,192 tokens"):
        profile.plan_context(model, 100_000)


def test_another_models_context_is_its_own_and_never_stretched(tmp_path):
    other = model_folder(tmp_path, architectures=["X"], max_position_embeddings=4096)
    model = checkpoint.read(other)
    assert profile.plan_context(model, None) == (4096, {})
    with pytest.raises(UsageError):
        profile.plan_context(model, 8192)


def test_a_checkpoint_tells_what_ling_needs_care_with(tmp_path):
    model = checkpoint.read(model_folder(tmp_path))
    assert model.is_ling
    assert model.expert_layers == 40
    assert model.clamped_layers == tuple(range(35, 42))
    assert model.mxfp4_experts


def test_a_missing_weight_file_is_named(tmp_path):
    folder = model_folder(tmp_path)
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").write_bytes(b"x" * 10)
    with pytest.raises(UsageError, match=r"lacks 1 of its 2 weight files.*model-2"):
        checkpoint.read(folder)
    (folder / "model-2.safetensors").write_bytes(b"x" * 5)
    assert checkpoint.read(folder).weight_bytes == 15


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"'])
def test_a_config_that_is_none_is_a_sentence(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError):
        checkpoint.read(tmp_path)
    with pytest.raises(UsageError, match="no folder"):
        checkpoint.read(tmp_path / "nowhere")


def verdicts(model, **wanted):
    spec = EngineSpec(backend="sglang", optimisations=wanted)
    return {o.id: o for o in switches.declare(spec, model)}


def test_what_a_model_lacks_is_said_of_its_switches(tmp_path):
    other = config(architectures=["LlamaForCausalLM"], num_experts=0, num_nextn_predict_layers=0)
    model = checkpoint.read(model_folder(tmp_path, "llama", **other))
    found = verdicts(model)
    for id_ in ("humming", "fp8-head", "nextn", "head-sharing", "swiglu-clamp"):
        assert found[id_].verdict is Verdict.NOT_SUPPORTED
        assert found[id_].note
    assert switches.on(tuple(found.values())) == {"cuda-graphs"}


def test_a_tied_head_cannot_be_quantised(tmp_path):
    model = checkpoint.read(model_folder(tmp_path, tie_word_embeddings=True))
    assert "embedding" in verdicts(model)["fp8-head"].note


def test_proof_lines_follow_the_switches_they_belong_to(tmp_path):
    model = checkpoint.read(model_folder(tmp_path))
    found = verdicts(model, humming=False, nextn=False, **{"swiglu-clamp": True})
    assert not found["swiglu-clamp"].requested
    assert not found["head-sharing"].requested
    assert {o.id for o in found.values() if not o.switchable} == {
        "head-sharing",
        "swiglu-clamp",
        "dspark",
    }


def test_conflicts_are_explained_and_name_things_that_exist():
    assert "4.7 times" in switches.explain("prefix-cache", "dspark")
    assert "--enable-fp32-lm-head" in switches.explain("fp8-head", "fp32-head")
    assert switches.explain("humming", "nextn") == ""
    for o in switches.DECLARED:
        for other in o.conflicts_with:
            assert switches.explain(o.id, other)
