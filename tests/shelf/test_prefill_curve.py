"""The forecast of a prefill: on the first prompt ever, after learning, on a busier machine."""

import asyncio
import random
from contextlib import aclosing
from types import SimpleNamespace

import pytest

from app.core.chat.answering import _with_prefill
from engine_bridge.chat.events import Finished, Prefill, Text, Timings
from engine_bridge.chat.prefill import Curve, Curves, Forecast, Prior, fit, forecast_for
from engine_bridge.contract import EngineSpec, EngineStatus, Load
from engine_bridge.models import tensors

# Measured on an idle machine, 2 threads: seconds a token at the start, and c/b.
SMALL_MODEL = Curve(3.6e-3, 6.8e-7)
HALF_BILLION = Curve(24e-3, 1.5e-6)


def run(truth: Curve, total: int, forecast: Forecast, *, cached=0, noise=0.0, load=None, seed=1):
    """Plays a prefill in batches of 128; the errors of the ETA as a share of what is left, from
    the second quarter on, up to the last two batches."""
    pick = random.Random(seed)
    ends = [*range(cached + 128, total, 128), total]
    times, at, begin = [], 0.0, cached
    for end in ends:
        pace = (load(end) if load else 1.0) * (1 + pick.gauss(0, noise))
        at += truth.between(begin, end) * max(pace, 0.3)
        times.append(at)
        begin = end
    errors = []
    forecast.update(Prefill(cached, total, cached, 0.0))
    for end, elapsed in zip(ends, times, strict=True):
        eta = forecast.update(Prefill(end, total, cached, elapsed)).eta_s
        left = times[-1] - elapsed
        if (end - cached) / (total - cached) >= 0.25 and total - end > 256:
            errors.append(abs(eta - left) / left)
    return errors


@pytest.mark.parametrize("truth", [SMALL_MODEL, HALF_BILLION])
@pytest.mark.parametrize("total", [1_500, 8_000, 30_000])
def test_first_prompt_ever_is_forecast_within_a_fifth(truth, total):
    """Nothing is known but how batches scatter, and the model's shape up to a quarter."""
    for seed in range(5):
        shape = truth.c / truth.b * random.Random(seed).uniform(0.8, 1.25)
        errors = run(truth, total, Forecast(curvature=shape), noise=0.08, seed=seed)
        assert max(errors) < 0.20


def test_first_prompt_of_an_unknown_model_is_forecast_within_a_fifth():
    errors = run(SMALL_MODEL, 7_000, Forecast(), noise=0.05)
    assert max(errors) < 0.20


def test_line_would_miss_by_far_where_the_curve_does_not():
    """That this is worth a curve at all."""
    total = 8_000
    whole = SMALL_MODEL.between(0, total)
    took = SMALL_MODEL.between(0, total // 4)
    assert took * 3 < 0.6 * (whole - took)


def test_learned_curve_forecasts_from_the_first_batch(home):
    first = Forecast(curvature=1e-4, key="m")
    run(SMALL_MODEL, 6_000, first, noise=0.05)
    first.finish()
    learned = Curves().get("m")
    assert learned.between(0, 4_000) == pytest.approx(SMALL_MODEL.between(0, 4_000), rel=0.1)
    again = Forecast(learned, key="m")
    assert again.expected_s(0, 9_000) == pytest.approx(SMALL_MODEL.between(0, 9_000), rel=0.15)
    assert again.expected_s(8_900, 9_000) < 0.03 * again.expected_s(0, 9_000)


def test_cached_beginning_is_no_work_but_makes_the_rest_dearer():
    errors = run(SMALL_MODEL, 8_000, Forecast(curvature=2e-4), cached=4_000, noise=0.05)
    assert max(errors) < 0.20
    assert SMALL_MODEL.seconds(4_000, 8_000) > 1.5 * SMALL_MODEL.seconds(0, 4_000)


def test_machine_that_gets_busy_is_noticed_soon():
    def busy_from_half(end: int) -> float:
        return 2.0 if end > 4_000 else 1.0

    forecast = Forecast(Curve(SMALL_MODEL.b, SMALL_MODEL.c, runs=3))
    run(SMALL_MODEL, 8_000, forecast, load=busy_from_half)
    last = forecast.update(Prefill(8_000, 8_000, 0, 1e9))
    assert last.eta_s == 0
    errors = run(SMALL_MODEL, 8_000, Forecast(), load=busy_from_half, noise=0.03)
    assert errors[-1] < 0.20


def test_curves_of_other_switches_and_models_are_kept_apart_and_an_odd_file_is_an_empty_one(home):
    from engine_bridge import paths
    from engine_bridge.chat.prefill import key_of

    one = EngineStatus(spec=EngineSpec(), model_name="a", threads=2)
    keys = {
        key_of(one),
        key_of(one.model_copy(update={"model_name": "b"})),
        key_of(one.model_copy(update={"threads": 4})),
    }
    assert len(keys) == 3
    Curves().put("x", SMALL_MODEL)
    assert Curves().get("x") == SMALL_MODEL
    (paths.state_dir() / "prefill.json").write_text('{"x": {"b": 1, "nonsense": 2}, "y": 3}')
    assert Curves().get("x") is None
    assert Curves().get("y") is None
    (paths.state_dir() / "prefill.json").write_text("[")
    assert Curves().get("x") is None
    assert forecast_for(one).expected_s(0, 100) is None


def test_nothing_to_go_by_gives_no_curve():
    assert fit([], Prior()) is None
    assert Forecast().update(Prefill(0, 100, 0, 0.0)).eta_s is None


def test_models_shape_gives_its_curvature(smol):
    # 9 heads of 64 in 30 layers, over 106 million weights in them.
    share = tensors.attention_share(tensors.read(smol))
    assert share == pytest.approx(9 * 64 * 30 / 106e6, rel=0.01)


async def test_progress_from_the_engines_status_comes_before_the_answer():
    """SGLang streams none; its log tells it chunk by chunk."""
    engine = SimpleNamespace(status=EngineStatus())

    async def answer():
        for done in (8192, 16384):
            load = Load(prefill_done_tokens=done, prefill_total_tokens=30_000)
            engine.status = EngineStatus(load=load)
            await asyncio.sleep(1.2)
        yield Text("Yes")
        yield Finished("stop", Timings())

    events = []
    async with aclosing(_with_prefill(answer(), engine, Forecast())) as found:
        async for event in found:
            events.append(event)
    assert [each.processed for each in events[:2]] == [8192, 16384]
    assert events[1].eta_s == pytest.approx(1.2 * 13_616 / 8192, rel=0.9)
    assert isinstance(events[2], Text)
    assert isinstance(events[3], Finished)
    assert len(events) == 4
