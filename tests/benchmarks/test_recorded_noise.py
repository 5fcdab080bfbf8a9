"""The verdict of `bench ab` on noise that was really recorded: every reading of runs of
tests/bench/calibrate_ab.py on a two-core machine that was busy with other things."""

import json
import math
from pathlib import Path

from app.bench import ab, stats

RUNS = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded_noise.jsonl").read_text().splitlines()
]


def verdict(run, faster=1.0):
    """What `bench ab` says of these readings: the best of each prompt's, and its interval."""
    logs = [math.log(faster * max(on) / max(off)) for off, on in run["rates"]]
    ratio, interval = stats.ratio_interval(logs, ab.CONFIDENCE)
    deviation = ab.PROCESSES["CPU"] / math.sqrt(run["generations"])
    return ab.outcome(ratio, ab.widened(ratio, interval, deviation))


def recorded(toggle):
    found = [run for run in RUNS if run["toggle"] == toggle]
    assert len(found) >= 12
    return found


def test_a_switch_that_does_nothing_was_never_called_a_gain_or_a_loss():
    assert {verdict(run) for run in recorded("nothing")} == {ab.Outcome.NOTHING}


def test_a_planted_tenth_was_found():
    runs = recorded("burner")
    found = [verdict(run) for run in runs].count(ab.Outcome.LOSS)
    assert found >= 0.95 * len(runs)


def test_a_gain_of_a_tenth_would_be_found_in_the_noise_of_no_difference():
    runs = recorded("nothing")
    found = [verdict(run, faster=1.12) for run in runs].count(ab.Outcome.GAIN)
    assert found >= 0.8 * len(runs)
