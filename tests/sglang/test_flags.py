"""A launch is checked against what the installed SGLang's parser knows."""

import json
import os
import stat
import sys

import pytest

from engine_bridge.backends.base import Phase
from engine_bridge.backends.sglang import flags, interpreter
from engine_bridge.backends.sglang.interpreter import Interpreter
from engine_bridge.errors import BridgeError, UnavailableError

KNOWN = {
    "--page-size": {"bare": False, "choices": None},
    "--moe-runner-backend": {"bare": False, "choices": ["auto", "humming"]},
    "--enable-metrics": {"bare": True, "choices": None},
}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--page-size", "64", "--moe-runner-backend", "humming", "--enable-metrics"], ""),
        (["--page-sizes", "64"], "has no flag --page-sizes (perhaps it is now --page-size)"),
        # argparse itself would take this for an abbreviation of another flag.
        (["--page", "64"], "has no flag --page"),
        (["--quite-something-else"], "has no flag --quite-something-else"),
        (["--moe-runner-backend", "gone"], "knows no 'gone' for --moe-runner-backend, only auto"),
        (["--enable-metrics=1"], "takes no value for --enable-metrics"),
    ],
)
def test_the_first_wrong_flag_is_named(argv, said):
    found = flags.first_problem(argv, KNOWN)
    assert found.startswith(said) if said else found == ""


def python_with(tmp_path, body: str) -> str:
    """A real interpreter in which `sglang.srt.server_args` is this text."""
    package = tmp_path / "site" / "sglang" / "srt"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "server_args.py").write_text(body)
    metadata = tmp_path / "site" / "sglang-0.5.23.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.23\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


PARSER = """
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--page-size", type=int)
        parser.add_argument("--moe-runner-backend", choices=["auto", "humming"])
        parser.add_argument("--enable-metrics", action="store_true")
"""


def test_the_parser_of_another_interpreter_is_asked_once(home, tmp_path, monkeypatch):
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", python_with(tmp_path, PARSER))
    engine = interpreter.find()
    assert engine.sglang == "0.5.23"
    said: list[Phase] = []
    flags.check(["--page-size", "64", "--enable-metrics"], engine, said.append)
    assert [phase.title for phase in said] == ["asking SGLang for its flags"]
    with pytest.raises(BridgeError, match=r"SGLang 0\.5\.23 has no flag --page-sizes") as caught:
        flags.check(["--page-sizes", "64"], engine, said.append)
    assert "pip install" in caught.value.cure
    assert len(said) == 1


def test_an_sglang_that_cannot_be_imported_is_a_sentence(home, tmp_path, monkeypatch):
    broken = python_with(tmp_path, "raise ImportError('libcuda is not here')")
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", broken)
    with pytest.raises(UnavailableError, match="libcuda is not here"):
        flags.check(["--page-size", "1"], interpreter.find(), lambda phase: None)


def test_an_interpreter_that_is_none_or_has_no_sglang_is_a_sentence(home, tmp_path, monkeypatch):
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", str(tmp_path / "nowhere"))
    with pytest.raises(UnavailableError, match="no program that can be run"):
        interpreter.find()
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", "/bin/false")
    with pytest.raises(UnavailableError, match="does not run"):
        interpreter.find()
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", sys.executable)
    if "sglang" not in json.loads(os.popen(f"{sys.executable} -c '{PRESENT}'").read()):
        with pytest.raises(UnavailableError, match="has no SGLang"):
            interpreter.find()


PRESENT = (
    'import json, importlib.util as u; print(json.dumps([n for n in ["sglang"] if u.find_spec(n)]))'
)


@pytest.mark.parametrize("version", ["0.5.19", "0.5.21", "0.5.23", "0.5.23.post1"])
def test_the_releases_the_plugin_is_made_for(version):
    assert interpreter.unsupported(version) == ""


@pytest.mark.parametrize("version", ["0.5.18", "0.5.24", "0.6.0", "1.0", "0.5.20rc1x", "main"])
def test_other_releases_are_refused_with_a_sentence(version):
    assert "0.5.19 to 0.5.23" in interpreter.unsupported(version)


def test_an_interpreter_knows_its_versions():
    assert Interpreter("/x", {"sglang": "0.5.23"}).sglang == "0.5.23"
