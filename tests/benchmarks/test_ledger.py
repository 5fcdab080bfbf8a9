"""The ledger: what it keeps, what it calls comparable, and what it exports."""

import csv
import io
import json
import subprocess
import sys

import pytest

from app.bench import export
from app.bench.figures import FIGURES
from app.bench.history import history
from app.bench.setup import Setup, setup_of

SETTINGS = {"input_tokens": 100, "output_tokens": 10, "runs": 1}


def setup(**changes):
    told = {
        "engine": "llamacpp",
        "model": "m",
        "switches": {"ngram": True},
        "machine": {"cpu": "x"},
    }
    return Setup(**told | changes)


def speed(value):
    told = dict.fromkeys(FIGURES) | {"unit": "CPU", "accept_length": None, "accept_histogram": None}
    told["decode_tokens_per_s"] = {"n": 1, "mean": value, "p50": value, "p95": value}
    return SETTINGS | {"figures": told, "note": "", "setup": setup().as_dict()}


def add(ledger, value, setup_=None, **settings):
    run = ledger.begin("synthetic", SETTINGS | settings, setup_ or setup())
    ledger.finish(run, speed(value))


def test_only_its_like_is_compared(ledger):
    for value in (30.0, 30.4, 29.8):
        add(ledger, value)
    add(ledger, 12.0, setup(switches={"ngram": False}))
    add(ledger, 12.0, input_tokens=9000)
    add(ledger, 12.0, setup(machine={"cpu": "another"}))
    add(ledger, 12.0, setup(engine_version="newer"))  # a new version is what one wants to judge
    told = [bool(point.regression) for point in history(ledger.runs())]
    assert told == [False] * 6 + [True]


def test_config_hashes_tell_configurations_apart(ledger):
    runs = [
        ledger.begin("synthetic", SETTINGS, each)
        for each in (setup(), setup(), setup(model_hash="ff"), setup(threads=2))
    ]
    hashes = [run.config_hash for run in runs]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_an_unfinished_run_is_found_until_it_is_finished(ledger):
    assert ledger.unfinished("gsm8k", SETTINGS, setup()) is None
    run = ledger.begin("gsm8k", SETTINGS, setup())
    ledger.keep(run, "7", {"text": "a"})
    ledger.keep(run, "3", {"text": "b"})
    assert ledger.unfinished("gsm8k", SETTINGS, setup()) == run
    assert ledger.unfinished("gsm8k", {"input_tokens": 1}, setup()) is None
    assert list(ledger.answers(run)) == ["7", "3"]
    ledger.finish(run, speed(1.0))
    assert ledger.unfinished("gsm8k", SETTINGS, setup()) is None
    assert [point.run.id for point in history(ledger.runs())] == [run.id]


def test_csv_and_markdown_hold_every_run(ledger):
    for value in (30.0, 30.1, 30.2, 20.0):
        add(ledger, value, setup(model="odd|name"))
    points = history(ledger.runs())
    rows = list(csv.DictReader(io.StringIO(export.as_csv(points))))
    assert [float(row["value"]) for row in rows] == [30.0, 30.1, 30.2, 20.0]
    assert rows[0]["switches_on"] == "ngram"
    assert rows[3]["regression"].startswith("34% below")
    report = export.as_markdown(points)
    assert report.count("odd\\|name") == 4
    assert "**Slower: 34% below" in report


@pytest.mark.asyncio(loop_scope="session")
async def test_a_setup_says_what_the_engine_was(engine):
    told = setup_of(engine.status)
    assert told.engine == "llamacpp"
    assert told.threads == 2
    assert told.switches["ngram"] is True
    assert told.machine["cores"] >= 1
    assert told.machine["memory_bytes"] > 1e9
    assert len(told.model_hash) == 16
    assert json.dumps(told.as_dict())


def test_the_report_of_an_empty_ledger(home):
    args = [sys.executable, "-m", "app", "bench", "report"]
    done = subprocess.run([*args, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    out = home / "report.md"
    subprocess.run([*args, "-o", str(out)], check=True)
    assert out.read_text().startswith("# Benchmarks")
