"""The folder that carries our part into another interpreter, and the wrapper in it."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

from engine_fixtures import alive, wait_for

from engine_bridge.backends.sglang import bundle

ROOT = Path(__file__).parents[2]


def test_another_interpreter_finds_the_plugin_through_the_bundle(home):
    folder = bundle.ensure()
    code = (
        "import json; from importlib.metadata import entry_points\n"
        "found = [e for e in entry_points(group='sglang.srt.plugins') if e.name == 'ling_chat']\n"
        "module = __import__(found[0].value.split(':')[0], fromlist=['x'])\n"
        "print(json.dumps([len(found), found[0].value, module.__file__]))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
    )
    count, value, file = json.loads(answer.stdout)
    assert count == 1  # also where ling-chat is installed: the first of one name wins
    assert value == "engine_bridge.sglang_plugin:register"
    assert file.startswith(str(folder))


def test_the_bundles_entry_point_is_the_projects():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (name, value), *others = project["entry-points"]["sglang.srt.plugins"].items()
    assert not others
    assert f"[sglang.srt.plugins]\n{name} = {value}\n" == bundle.ENTRY_POINTS


def test_the_bundle_holds_nothing_of_the_rest(home):
    names = bundle.contents()
    ours = [n for n in names if not n.startswith("engine_bridge/sglang_plugin/")]
    assert sorted(n for n in ours if ".dist-info" not in n) == [
        "engine_bridge/__init__.py",
        bundle.WRAPPER,
    ]
    assert len(ours) < len(names)


def test_the_bundle_is_made_once_and_anew_when_it_changes(home, monkeypatch):
    first = bundle.ensure()
    made = first.stat().st_mtime_ns
    assert bundle.ensure() == first
    assert first.stat().st_mtime_ns == made
    contents = bundle.contents()
    monkeypatch.setattr(bundle, "contents", lambda: {**contents, "more.py": ""})
    assert bundle.ensure() != first


# The wrapper's own part, with a stand-in for the little of SGLang that it calls.
SERVER = {
    "sglang/launch_server.py": """
import json, subprocess, sys, time
def run_server(args):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(json.dumps({"argv": args.argv, "key": args.api_key, "child": child.pid}), flush=True)
    time.sleep(600)
""",
    "sglang/srt/plugins.py": "def load_plugins(): print('plugins', flush=True)",
    "sglang/srt/server_args.py": """
class Args: pass
def prepare_server_args(argv):
    args = Args(); args.argv = argv; return args
""",
    "sglang/srt/utils.py": "def kill_process_tree(pid, include_parent): pass",
}


def start_wrapper(tmp_path, *argv: str) -> "subprocess.Popen[str]":
    for name, text in SERVER.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in ("sglang", "sglang/srt"):
        (tmp_path / folder / "__init__.py").touch()
    return subprocess.Popen(
        [sys.executable, str(bundle.ensure() / bundle.WRAPPER), *argv],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_the_wrapper_hands_over_flags_and_key_and_leaves_with_its_host(home, tmp_path):
    wrapper = start_wrapper(tmp_path, "--port", "1")
    try:
        wrapper.stdin.write('{"api_key": "secret"}\n')
        wrapper.stdin.flush()
        heard = [wrapper.stdout.readline().strip() for _ in range(3)]
        assert heard[:2] == ["engine: importing SGLang", "plugins"]
        started = json.loads(heard[2])
        assert (started["argv"], started["key"]) == (["--port", "1"], "secret")
        command = Path(f"/proc/{wrapper.pid}/cmdline")
        if command.exists():
            assert b"secret" not in command.read_bytes()
        assert alive(started["child"])
        wrapper.stdin.close()  # the host is gone
        wait_for(lambda: not alive(started["child"]), 8, "the group is gone")
        assert wrapper.wait(8) == -signal.SIGTERM
    finally:
        if wrapper.poll() is None:
            os.killpg(wrapper.pid, signal.SIGKILL)


def test_the_wrapper_without_a_specification_does_nothing(home, tmp_path):
    wrapper = start_wrapper(tmp_path)
    wrapper.stdin.close()
    assert wrapper.wait(10) == 1
