"""GSM8K on the real engine, killed without warning, and its data from files and the hub."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from app.bench import gsm8k, gsm8k_data
from app.bench.ledger import Ledger
from engine_bridge.errors import UnavailableError, UsageError

SETTINGS = ("--sample", "4", "--max-tokens", "24", "--json")


def command(home, *args):
    return [sys.executable, "-m", "app", "bench", "gsm8k", *args]


def test_a_killed_run_goes_on_with_the_first_open_question(smol, host_home, gsm8k_folder):
    args = command(
        host_home, "--model", str(smol), "--context", "2048", "--data", str(gsm8k_folder), *SETTINGS
    )
    ledger_file = host_home / "data" / "ling-chat" / "ledger.db"
    first = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    kept = {}
    while len(kept) < 2:
        assert time.monotonic() < deadline
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.1)
        if ledger_file.exists():
            ledger = Ledger(ledger_file)
            runs = ledger.runs("gsm8k")
            kept = ledger.answers(runs[0]) if runs else {}
            ledger.close()
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    second = subprocess.run(args, capture_output=True, text=True, timeout=150, check=True)
    result = json.loads(second.stdout)
    assert result["resumed"] is True
    assert result["questions"] == 4
    ledger = Ledger(ledger_file)
    (run,) = ledger.runs("gsm8k")
    answers = ledger.answers(run)
    ledger.close()
    assert run.finished_at is not None
    assert len(answers) == 4
    # What was answered before the kill was not asked again.
    assert {item: answers[item] for item in kept} == kept
    assert all(answer["text"] or answer["reasoning"] for answer in answers.values())
    told = result["accuracy"]["flexible"]
    assert told["n"] == 4
    assert told["interval"][0] <= told["share"] <= told["interval"][1]


def test_the_published_settings_are_the_defaults():
    published = gsm8k.Published()
    assert (published.temperature, published.top_p, published.top_k) == (0.6, 0.95, 29)
    assert (published.max_tokens, published.thinking, published.count) == (32_768, True, None)


def test_a_seeded_sample_is_the_same_again_and_part_of_the_whole(gsm8k_folder):
    data = gsm8k_data.load(str(gsm8k_folder))
    assert len(data.problems) == 8
    assert len(data.shots) == 5
    chosen = data.sample(3, 7)
    assert chosen == gsm8k_data.load(str(gsm8k_folder / "test.jsonl")).sample(3, 7)
    assert set(chosen) <= set(data.problems)
    assert data.sample(None, 7) == data.problems
    prompt = data.prompt(chosen[0])
    assert prompt.count("Question: ") == 6
    assert prompt.endswith(f"Question: {chosen[0].question}\nAnswer:")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n", "holds no question"),
        ("\n{}\n", "^Line 2 of .*test.jsonl is no question of GSM8K: "),
        ("not json\n", "^Line 1 of "),
        ('{"question": "x"}\n', "^Line 1 of "),
        ("[1]\n", "^Line 1 of "),
    ],
)
def test_a_file_without_questions_is_told(tmp_path, text, told):
    (tmp_path / "test.jsonl").write_text(text)
    with pytest.raises(UsageError, match=told) as raised:
        gsm8k_data.load(str(tmp_path))
    assert "--data test" in raised.value.cure
    with pytest.raises(UsageError, match="nowhere cannot be read"):
        gsm8k_data.load(str(tmp_path / "nowhere"))


class Rows(BaseHTTPRequestHandler):
    """Answers like the hub's service for rows; `total` rows, or a refusal."""

    total = 230
    status = 200

    def log_message(self, *args):
        pass

    def do_GET(self):
        asked = {name: value[0] for name, value in parse_qs(urlsplit(self.path).query).items()}
        assert asked["dataset"] == "openai/gsm8k"
        start, length = int(asked["offset"]), int(asked["length"])
        places = range(start, min(start + length, self.total))
        rows = [
            {"row_idx": at, "row": {"question": f"q{at}", "answer": f"#### {at}"}} for at in places
        ]
        body = json.dumps({"rows": rows, "num_rows_total": self.total}).encode()
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Rows)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(gsm8k_data, "ROWS", f"http://127.0.0.1:{server.server_port}/rows")
    yield Rows
    server.shutdown()
    server.server_close()


def test_the_hub_is_read_page_by_page_and_kept(hub, home):
    data = gsm8k_data.load(None)
    assert [problem.answer for problem in data.problems] == [str(at) for at in range(230)]
    hub.status = 500
    try:
        assert gsm8k_data.load(None) == data  # from the file that was kept
    finally:
        hub.status = 200


def test_a_hub_that_refuses_leaves_nothing_half_written(hub, home):
    hub.status = 500
    try:
        with pytest.raises(UnavailableError, match="--data"):
            gsm8k_data.load(None)
    finally:
        hub.status = 200
    assert list((home / "data" / "ling-chat").glob("*gsm8k*")) == []
