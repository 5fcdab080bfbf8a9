"""Verdicts from what real servers said of themselves, and from the plugin's evidence."""

import pytest
from sglang_replay import EXPERT_LAYERS, model_folder, sent, text

from engine_bridge.backends.sglang import checkpoint, proof, switches
from engine_bridge.contract import Effect, EngineSpec, Verdict

V = Verdict
CLAMPED = list(range(35, 42))
EVIDENCE = {
    "plugin": "0.1.0",
    "sglang": "0.5.23",
    "hooks": {},
    "experts": {
        "target": {"layers": EXPERT_LAYERS, "humming": 40, "backends": {"humming": 40}},
        "draft": {"layers": 1, "humming": 1, "backends": {"humming": 1}},
    },
    "head": {
        "dtype": "float8_e4m3fn",
        "method": "Fp8HeadMethod",
        "rows": 157184,
        "columns": 2560,
        "scales": [157184],
        "shared_with_draft": True,
    },
    "clamp": {"expected_layers": CLAMPED, "applied_layers": CLAMPED, "calls": 7},
    "speculation": {"algorithm": "EAGLE", "steps": 3, "topk": 1, "draft_tokens": 4},
    "split_verify": {"block": [16, 32, 8], "calls": {"target": 14, "draft": 2}},
    "cuda_graphs": {"batch_sizes": [1], "memory_gb": {}},
    "refused": [],
}


def judged(tmp_path, name="", evidence=None, accept_length=None, effects=None, **wanted):
    """Verdicts for a recorded server; the plugin's evidence is put where it publishes it."""
    info = sent(f"{name}server_info.json")
    if evidence is not None:
        info["internal_states"][0]["ling_chat"] = evidence
    model = checkpoint.read(model_folder(tmp_path))
    asked = switches.declare(EngineSpec(backend="sglang", optimisations=wanted), model)
    metrics = proof.counters(text(f"{name or 'all_on/'}metrics.txt"))
    seen = proof.Seen(info, metrics, accept_length)
    return {o.id: o for o in proof.judge(asked, seen, effects or {})}


def changed(**parts):
    return {**EVIDENCE, **{key: {**EVIDENCE[key], **value} for key, value in parts.items()}}


def test_replay_with_all_on_and_evidence_is_verified(tmp_path):
    found = judged(tmp_path, evidence=EVIDENCE)
    assert {id_: o.verdict for id_, o in found.items()} == {
        "humming": V.VERIFIED,
        "fp8-head": V.VERIFIED,
        "nextn": V.VERIFIED,
        "split-verify": V.VERIFIED,
        "head-sharing": V.VERIFIED,
        "swiglu-clamp": V.VERIFIED,
        "cuda-graphs": V.VERIFIED,
        "dspark": V.NOT_SUPPORTED,
    }
    assert found["humming"].observed == "40 of 40 target layers, 1 of 1 draft layers"
    assert found["fp8-head"].observed == "float8_e4m3fn, Fp8HeadMethod · 157,184 × 2,560"
    assert found["nextn"].resolved == "EAGLE 3/1/4"
    assert found["nextn"].observed == "accept length 2.69, 670 rounds"
    assert found["swiglu-clamp"].observed == "ran on layers 35-41"
    assert found["cuda-graphs"].observed == "673 decode passes replayed, 0 not"


def test_replay_without_the_plugin_proves_only_what_was_counted(tmp_path):
    found = judged(tmp_path)
    unseen = ("humming", "fp8-head", "split-verify", "head-sharing", "swiglu-clamp")
    assert {found[id_].verdict for id_ in unseen} == {V.UNPROVEN}
    assert {found[id_].note for id_ in unseen} == {proof.NO_EVIDENCE}
    assert found["humming"].resolved == "humming"
    assert found["nextn"].verdict is V.VERIFIED
    assert found["cuda-graphs"].verdict is V.VERIFIED


def test_replay_with_humming_only_shows_the_others_off(tmp_path):
    evidence = changed(
        experts={"draft": None},
        head={"dtype": "bfloat16", "scales": None, "shared_with_draft": None},
    )
    off = {"fp8-head": False, "nextn": False}
    found = judged(tmp_path, "humming_only/", evidence, **off)
    assert found["humming"].verdict is V.VERIFIED
    assert found["humming"].observed == "40 of 40 target layers"
    for id_ in ("fp8-head", "nextn", "head-sharing"):
        assert (found[id_].verdict, found[id_].requested) == (V.OFF, False)
    assert found["cuda-graphs"].observed == "1,793 decode passes replayed, 0 not"


def test_asked_for_but_not_resolved_fell_back(tmp_path):
    evidence = changed(head={"dtype": "bfloat16", "scales": None, "shared_with_draft": None})
    found = judged(tmp_path, "humming_only/", evidence)
    assert found["nextn"].verdict is V.FELL_BACK
    assert found["fp8-head"].verdict is V.FELL_BACK


def test_an_accept_length_of_one_is_the_known_failure(tmp_path):
    found = judged(tmp_path, evidence=EVIDENCE, accept_length=1.0)["nextn"]
    assert found.verdict is V.FELL_BACK
    assert found.note == proof.DEAD_DRAFTS


@pytest.mark.parametrize(
    ("parts", "id_", "said"),
    [
        (
            {
                "experts": {
                    "target": {
                        "layers": 40,
                        "humming": 37,
                        "backends": {"humming": 37, "marlin": 3},
                    }
                }
            },
            "humming",
            "3 on marlin",
        ),
        ({"head": {"shared_with_draft": False}}, "head-sharing", "head of its own"),
        ({"split_verify": {"calls": {"target_declined": 7}}}, "split-verify", "own kernel"),
        ({"clamp": {"applied_layers": CLAMPED[:-1]}}, "swiglu-clamp", "Layers 41 run without"),
    ],
)
def test_evidence_of_less_than_asked_for_fell_back(tmp_path, parts, id_, said):
    found = judged(tmp_path, evidence=changed(**parts))[id_]
    assert found.verdict is V.FELL_BACK
    assert said in found.note


def test_a_clamp_that_no_token_went_through_is_unproven(tmp_path):
    found = judged(tmp_path, evidence=changed(clamp={"calls": 0, "applied_layers": []}))
    assert found["swiglu-clamp"].verdict is V.UNPROVEN


def test_split_verification_that_no_draft_went_through_is_unproven(tmp_path):
    found = judged(tmp_path, evidence=EVIDENCE | {"split_verify": None})
    assert found["split-verify"].verdict is V.UNPROVEN


def test_graphs_that_nothing_replays_fell_back(tmp_path):
    seen = proof.Seen(sent("server_info.json"), {"decode_none": 12.0})
    model = checkpoint.read(model_folder(tmp_path))
    asked = switches.declare(EngineSpec(backend="sglang"), model)
    found = {o.id: o for o in proof.judge(asked, seen, {})}["cuda-graphs"]
    assert found.verdict is V.FELL_BACK


def test_the_measured_effect_is_shown_with_its_switch(tmp_path):
    effect = Effect(decode_ratio=1.87, how="1,024-token prompt: 144.6 → 270.4 tokens/s")
    found = judged(tmp_path, evidence=EVIDENCE, effects={"nextn": effect})
    assert found["nextn"].effect == effect
    assert found["humming"].effect is None
