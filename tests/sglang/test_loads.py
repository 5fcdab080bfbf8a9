"""Live figures from what `/v1/loads` of a real server said."""

import pytest
from sglang_replay import sent

from engine_bridge.backends.sglang import loads
from engine_bridge.backends.sglang.loads import Moments


def test_replay_gives_the_engines_own_sums():
    load, moments = loads.parse(sent("loads.json"))
    assert (load.running, load.waiting) == (0, 0)
    assert load.cache_hit_rate == 0.9951
    assert load.kv_usage == 0.0
    assert load.counters == {
        "prompt_tokens": 36017,
        "predicted_tokens": 1784,
        "draft_rounds": 664,
        "accepted_tokens": 1120,
    }
    # A rate needs two looks.
    assert load.decode_tokens_per_s is load.round_s is load.accept_length is None
    assert moments.tokens_per_step == pytest.approx(2.687, abs=0.001)
    assert loads.weight_and_cache_bytes(sent("loads.json")) == pytest.approx(95.45 * 2**30, 0.01)


def test_replay_without_drafts_has_no_accept_length():
    load, _ = loads.parse(sent("humming_only/loads.json"), Moments())
    assert load.accept_length is None
    assert "draft_rounds" not in load.counters
    assert load.round_s == pytest.approx(0.00757, abs=1e-5)
    assert load.decode_tokens_per_s == pytest.approx(132.1, abs=0.1)


def test_rates_are_of_what_came_since_the_last_look():
    rank = sent("loads.json")["loads"][0]
    later = {**rank, "num_running_reqs": 1, "decode_moments": [764, 0, 21441489.0, 0, 0, 2055]}
    _, before = loads.parse({"loads": [rank]})
    load, _ = loads.parse({"loads": [later]}, before)
    assert load.round_s == pytest.approx(0.054)
    assert load.accept_length == pytest.approx(2.71)
    assert load.decode_tokens_per_s == pytest.approx(50.2, abs=0.1)


def test_an_engine_that_began_anew_gives_no_rates():
    load, moments = loads.parse({"loads": [{"num_running_reqs": 1}]}, Moments(664, 1e6, 1784))
    assert load.round_s is None
    assert moments == Moments()


@pytest.mark.parametrize("answer", [{}, {"loads": None}, {"loads": []}, {"loads": ["x"]}])
def test_an_answer_that_tells_nothing_is_an_engine_at_rest(answer):
    load, _ = loads.parse(answer)
    assert load.running == 0
    assert loads.weight_and_cache_bytes(answer) is None
