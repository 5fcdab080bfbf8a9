"""Statistics against published tables."""

import math

import pytest

from app.bench import stats
from app.bench.effect import Effect, Outcome
from app.bench.history import regression


@pytest.mark.parametrize(
    ("p", "df", "table"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.995, 3, 5.841),
        (0.995, 7, 3.499),
        (0.975, 30, 2.042),
    ],
)
def test_t_quantiles_are_those_of_the_tables(p, df, table):
    assert stats.t_quantile(p, df) == pytest.approx(table, abs=5e-4)


def test_wilson_is_that_of_its_paper():
    # Newcombe 1998, table I: 81 of 263, and 0 of 20
    low, high = 0.2553, 0.3662
    found = stats.wilson(81, 263)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert stats.wilson(0, 20).high == pytest.approx(0.1611, abs=5e-5)


@pytest.mark.parametrize(
    ("one", "other", "p"), [(1, 9, 0.0215), (5, 5, 1.0), (0, 0, 1.0), (0, 6, 0.03125)]
)
def test_mcnemar_is_the_binomial_test(one, other, p):
    assert stats.mcnemar(one, other) == pytest.approx(p, abs=1e-4)


def test_the_middle_is_the_means_and_hardly_moved_by_one_wrong_reading():
    assert stats.middle([3.0]) == 3.0
    assert stats.middle([1.0, 2.0, 6.0]) == 2.75  # of 1, 1.5, 2, 3.5, 4, 6
    even = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert stats.middle(even) == pytest.approx(0.3)
    assert stats.middle([*even, 9.0]) < 0.5


def test_percentiles_are_interpolated():
    assert stats.percentile([4, 1, 3, 2], 0.5) == 2.5
    assert stats.percentile(range(101), 0.95) == 95
    with pytest.raises(ValueError, match="no values"):
        stats.percentile([], 0.5)


def test_one_pair_says_nothing_about_noise():
    one = Effect([[math.log(1.5)]], 0.0)
    ratio, interval = one.ratio()
    assert ratio == pytest.approx(1.5)
    assert (interval.low, interval.high) == (0, math.inf)
    assert one.outcome() is Outcome.NOTHING
    assert not one.is_enough()
    assert one.turns_needed(1) == 2


def test_a_single_prompt_is_judged_by_its_turns():
    assert Effect([[0.4, 0.41, 0.4, 0.41]], 0.0).outcome() is Outcome.GAIN
    assert Effect([[]], 0.0).ratio() is None


def test_a_run_ends_when_it_is_narrow_certain_or_spread_by_its_prompts():
    quiet = Effect([[0.01], [-0.01], [0.0], [0.01]], 0.01)
    assert quiet.is_enough()
    noisy = Effect([[0.1], [-0.2], [0.15], [-0.1]], 0.01)
    assert not noisy.is_enough()
    assert noisy.turns_needed(1) > 4
    certain = Effect([[0.6], [0.75], [0.7], [0.65]], 0.01)
    assert certain.is_enough()
    assert certain.outcome() is Outcome.GAIN
    spread = Effect([[0.3, 0.31], [-0.2, -0.21], [0.0, 0.01], [-0.1, -0.11]], 0.01)
    assert spread.is_enough(), "the prompts differ: more turns tell no more"
    assert spread.outcome() is Outcome.NOTHING


def test_a_regression_is_a_fall_beyond_the_spread_before_it():
    steady = [30.1, 29.8, 30.3, 30.0]
    assert "below the 4 runs" in regression(steady, 24.0)
    assert regression(steady, 29.7) == ""
    assert regression(steady, 36.0) == ""
    assert regression([30, 24, 36, 29], 24.0) == ""  # the spread explains it
    assert regression(steady[:2], 10.0) == ""  # too few to judge
