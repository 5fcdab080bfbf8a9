"""`ling-chat engine` and `doctor` as a shell sees them, with the real engine."""

import json
import os
import subprocess
import sys

import pytest


def ling_chat(*args: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.fixture
def started(host_home, smol):
    result = ling_chat("engine", "start", "--model", str(smol), "--context", "1024")
    assert result.returncode == 0, result.stderr
    yield
    ling_chat("engine", "stop")


def test_start_status_verify_and_stop(started):
    status = json.loads(ling_chat("engine", "status", "--json").stdout)
    assert status["state"] == "ready"
    assert status["keep"] is True
    assert status["context_tokens"] == 1024
    proof = ling_chat("engine", "verify", "--json")
    assert proof.returncode == 0
    report = json.loads(proof.stdout)
    assert set(report) == {"engine", "model", "optimisations"}
    fields = {"id", "title", "requested", "resolved", "observed", "verdict", "evidence", "effect"}
    by_id = {each["id"]: each for each in report["optimisations"]}
    assert set(by_id) == {"cpu-layout", "light-head", "ngram"}
    assert all(fields <= set(each) for each in by_id.values())
    assert by_id["ngram"]["verdict"] == "verified"
    assert by_id["cpu-layout"]["verdict"] == "off"
    assert "loading" in ling_chat("engine", "logs").stdout
    assert ling_chat("engine", "stop").returncode == 0
    assert "No engine" in ling_chat("engine", "status").stdout


def test_set_restarts_the_running_engine_and_is_remembered(started):
    before = json.loads(ling_chat("engine", "status", "--json").stdout)
    result = ling_chat("engine", "set", "ngram", "off")
    assert result.returncode == 0, result.stderr
    after = json.loads(ling_chat("engine", "status", "--json").stdout)
    assert after["engine_pid"] != before["engine_pid"]
    assert {o["id"]: o["verdict"] for o in after["optimisations"]}["ngram"] == "off"
    assert after["model_path"] == before["model_path"]
    assert after["keep"] is True


def test_set_without_an_engine_says_when_it_applies(host_home):
    result = ling_chat("engine", "set", "ngram", "off")
    assert result.returncode == 0
    assert "next start" in result.stdout


def test_an_unknown_optimisation_is_wrong_usage(host_home):
    result = ling_chat("engine", "set", "warp", "on")
    assert result.returncode == 2
    assert "cpu-layout" in result.stderr


def test_verify_without_an_engine_is_exit_3(host_home):
    result = ling_chat("engine", "verify", "--json")
    assert result.returncode == 3
    assert result.stdout == ""
    assert "engine start" in result.stderr


@pytest.mark.parametrize(("model", "code"), [("no-such-model", 3), ("/nowhere/x.gguf", 3)])
def test_a_model_that_cannot_be_had_is_one_sentence(host_home, model, code):
    result = ling_chat("engine", "start", "--model", model)
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("ling-chat: ")


def test_broken_settings_name_the_place(host_home):
    path = host_home / "config" / "ling-chat" / "settings.toml"
    path.parent.mkdir(parents=True)
    path.write_text('theme = "x"\n[engine\n')
    result = ling_chat("ask", "hi")
    assert result.returncode == 2
    assert "line 2" in result.stderr
    assert path.read_text() == 'theme = "x"\n[engine\n'


def test_settings_keep_the_users_comments(host_home):
    path = host_home / "config" / "ling-chat" / "settings.toml"
    path.parent.mkdir(parents=True)
    path.write_text('# mine\ntheme = "ling-light"  # bright\n[other]\nkey = 1\n')
    assert ling_chat("engine", "set", "ngram", "off").returncode == 0
    text = path.read_text()
    assert "# mine" in text
    assert 'theme = "ling-light"  # bright' in text
    assert "key = 1" in text
    assert "ngram = false" in text


def test_the_app_without_a_terminal_is_wrong_usage(host_home):
    result = ling_chat()
    assert result.returncode == 2
    assert "ling-chat ask" in result.stderr


def test_doctor_reports_every_area(host_home):
    result = ling_chat("doctor", "--json", TERM="dumb")
    report = json.loads(result.stdout)
    areas = {each["area"]: each for each in report["findings"]}
    assert {
        "hardware",
        "memory",
        "disk",
        "engine",
        "model",
        "keyring",
        "settings",
        "language",
        "sessions",
        "clipboard",
        "terminal",
    } == set(areas)
    assert areas["terminal"]["health"] == "warning"
    assert areas["terminal"]["cure"]
    assert result.returncode == (0 if report["healthy"] else 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_output_that_cannot_be_written_is_one_sentence(home):
    code = "from app.cli.main import run; run(['engine', 'status'])"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert b"No space left on device. Check the disk" in done.stderr
    assert b"should not" not in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_closed_standard_output_is_no_error(home):
    command = f'{sys.executable} -c "from app.cli.main import run; run()" engine status >&-'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
