"""The verdict of `bench ab` on noise that was really recorded: every reading of forty runs of
tests/bench/calibrate_ab.py, judged turn by turn as the command judges them."""

import json
import math
from pathlib import Path

from app.bench.effect import PROCESSES, Effect, Outcome

RUNS = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded_noise.jsonl").read_text().splitlines()
]


def effects(run, faster=1.0):
    """Of each prompt, the readings of its turns."""
    return [
        [math.log(faster * on / off) for off, on in zip(*sides, strict=True)]
        for sides in run["rates"]
    ]


def verdict(run, faster=1.0):
    """What the command says of these readings, which looks after one turn, and then after two."""
    readings = effects(run, faster)
    most = len(readings[0])
    for turns in range(1, most + 1, 2):
        effect = Effect([each[:turns] for each in readings], PROCESSES["CPU"])
        if effect.is_enough() or turns == most:
            return effect.outcome()
    raise AssertionError("an even number of turns")


def recorded(toggle):
    found = [run for run in RUNS if run["toggle"] == toggle]
    assert len(found) == 20
    return found


def test_each_run_is_judged_as_it_was_then():
    assert [verdict(run) for run in RUNS] == [run["verdict"] for run in RUNS]


def test_a_switch_that_does_nothing_was_never_called_a_gain_or_a_loss():
    assert {verdict(run) for run in recorded("nothing")} == {Outcome.NOTHING}


def test_a_planted_tenth_was_found():
    assert [verdict(run) for run in recorded("burner")].count(Outcome.LOSS) >= 19


def test_a_gain_of_a_tenth_would_be_found_in_the_noise_of_no_difference():
    runs = recorded("nothing")
    assert [verdict(run, faster=1.11) for run in runs].count(Outcome.GAIN) >= 19
