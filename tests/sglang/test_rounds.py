"""Speculation judged by what a round costs, not by its accept length."""

from dataclasses import replace

import pytest

from engine_bridge.backends.sglang import rounds, speculation
from engine_bridge.backends.sglang.learned import Decode, Learned, Setting, bucket
from engine_bridge.backends.sglang.probe import Probe
from engine_bridge.contract import Load, Optimisation, Verdict

# Measured on one H200 with the triton attention backend.
PLAIN_1K, PLAIN_30K = Decode(1 / 144.6, 1.0, 500), Decode(1 / 131.5, 1.0, 500)
NEXTN_1K, NEXTN_30K = Decode(2.68 / 271, 2.68, 190), Decode(2.71 / 49.9, 2.71, 190)
ON = frozenset({"humming", "fp8-head", "nextn", "cuda-graphs"})
SETTING = Setting("NVIDIA H200 · SGLang 0.5.23", "ling", ON, "triton")
PLAIN = replace(SETTING, on=ON - {"nextn"})


def test_measured_loss_at_30k_is_called_a_loss_although_drafts_are_accepted():
    verdict = rounds.compare(NEXTN_30K, PLAIN_30K, None)
    assert verdict.ratio == pytest.approx(0.38, abs=0.005)
    assert verdict.costs
    said = rounds.sentence(verdict, NEXTN_30K, 30_000)
    assert "At 30,000 tokens of context NEXTN runs at 0.38 of plain" in said
    assert "54.3 ms a round" in said
    assert "accepts 2.71" in said
    assert "turn it off" in said


def test_measured_gain_at_1k_needs_no_words():
    verdict = rounds.compare(NEXTN_1K, PLAIN_1K, None)
    assert verdict.ratio == pytest.approx(1.87, abs=0.01)
    assert rounds.sentence(verdict, NEXTN_1K, 1024) == ""


def test_plain_decoding_measured_in_a_short_context_bounds_the_ratio_in_a_long_one():
    verdict = rounds.compare(NEXTN_30K, None, PLAIN_1K)
    assert not verdict.measured_here
    assert verdict.costs
    assert "at most about 0.43" in rounds.sentence(verdict, NEXTN_30K, 30_000)
    # A little slower than plain decoding in a short context: plain may have slowed as much.
    nearly = rounds.compare(Decode(2.7 / 125, 2.7), None, PLAIN_1K)
    assert nearly.ratio < rounds.COSTS
    assert not nearly.costs


def test_without_a_measurement_nothing_is_claimed():
    assert rounds.compare(NEXTN_30K, None, None) is None
    assert rounds.sentence(None, NEXTN_30K, 30_000) == ""


def test_drafts_that_are_never_accepted_are_named_at_any_length():
    assert "no draft is ever accepted" in rounds.sentence(None, Decode(0.01, 1.0), 100)


def nextn(verdict=Verdict.VERIFIED):
    return (Optimisation(id="nextn", title="", summary="", requested=True, verdict=verdict),)


def busy(decode: Decode, context: int) -> Load:
    return Load(
        running=1,
        round_s=decode.step_s,
        accept_length=decode.accept_length,
        context_tokens=context,
    )


def test_the_switch_shows_the_loss_while_it_lasts_and_then_no_more(home):
    learned = Learned()
    learned.learn(PLAIN, 30_000, PLAIN_30K)
    learned.learn(PLAIN, 1024, PLAIN_1K)
    long = speculation.watch(nextn(), busy(NEXTN_30K, 30_000), learned, SETTING)
    assert "0.38 of plain" in long[0].note
    assert long[0].evidence["live"]["of_plain_decoding"] == 0.38
    again = speculation.watch(long, busy(NEXTN_30K, 30_000), learned, SETTING)
    assert again is None
    short = speculation.watch(long, busy(NEXTN_1K, 1100), learned, SETTING)
    assert short[0].note == ""
    assert short[0].evidence["live"]["of_plain_decoding"] == 1.87


def test_an_engine_at_rest_or_without_drafts_changes_nothing(home):
    learned = Learned()
    assert speculation.watch(nextn(), Load(), learned, SETTING) is None
    assert speculation.watch(nextn(), busy(PLAIN_1K, 1024), learned, PLAIN) is None


def test_an_effect_is_a_ratio_of_two_measurements_that_differ_in_one_switch(home):
    learned = Learned()
    learned.learn(PLAIN, 1024, PLAIN_1K)
    shown = Probe(1103, NEXTN_1K, 2.68)
    found = speculation.effects(learned, SETTING, shown)
    assert set(found) == {"nextn"}
    assert found["nextn"].decode_ratio == pytest.approx(1.874, abs=0.002)
    assert found["nextn"].how == "1,103-token prompt: 144.6 → 271.0 tokens/s"
    assert speculation.effects(learned, SETTING, Probe(9000, NEXTN_1K, 2.68)) == {}


def test_nextn_is_held_against_plain_decoding_as_it_would_run_without_it(home):
    whole = replace(SETTING, on=ON | {"split-verify"}, attention="flashinfer+triton")
    learned = Learned()
    learned.learn(replace(PLAIN, attention="flashinfer"), 1100, PLAIN_1K)
    learned.learn(replace(whole, on=ON, attention="flashinfer"), 1100, Decode(0.0239, 2.68, 100))
    shown = Probe(1100, Decode(2.68 / 337, 2.68, 100), 2.68)
    found = speculation.effects(learned, whole, shown)
    assert found["nextn"].decode_ratio == pytest.approx(337 / 144.6, abs=0.01)
    assert found["split-verify"].decode_ratio == pytest.approx(3.0, abs=0.01)
    loss = busy(Decode(2.68 / 40, 2.68), 1100)
    assert "of plain decoding" in speculation.watch(nextn(), loss, learned, whole)[0].note


def test_what_was_learned_survives_and_is_a_mean_of_steps(home):
    learned = Learned()
    learned.learn(SETTING, 2000, Decode(0.010, 2.0, 100))
    learned.learn(SETTING, 1100, Decode(0.020, 3.0, 100))
    learned.save()
    kept = Learned().get(SETTING, 1500)
    assert (kept.step_s, kept.accept_length, kept.steps) == (
        pytest.approx(0.015),
        pytest.approx(2.5),
        200,
    )
    assert Learned().get(PLAIN, 1500) is None
    assert Learned().nearest_shorter(SETTING, 40_000) == kept


def test_a_broken_file_of_measurements_is_an_empty_one(home):
    from engine_bridge import paths

    (paths.state_dir() / "sglang-decode.json").write_text('{"x": [1]}')
    assert Learned().get(SETTING, 1024) is None


def test_the_attention_backend_is_chosen_by_what_was_measured_here(home):
    learned = Learned()
    learned.learn(SETTING, 30_000, NEXTN_30K)
    assert learned.best_attention(SETTING, 30_000) is None
    learned.learn(replace(SETTING, attention="flashinfer"), 30_000, Decode(0.012, 2.7, 100))
    assert learned.best_attention(SETTING, 30_000) == "flashinfer"


def test_context_lengths_count_as_one_up_to_the_next_power_of_two():
    assert [bucket(n) for n in (1, 1024, 2047, 2048, 30_000)] == [1024, 1024, 1024, 2048, 16384]
