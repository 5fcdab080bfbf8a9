"""The backend prepares a whole launch, against a parser that knows what SGLang 0.5.23 knows."""

import json
import os
import stat
import sys

import pytest
from sglang_replay import RECORDINGS, model_folder

from engine_bridge.backends import backend_named
from engine_bridge.backends.base import Backend, Watchful
from engine_bridge.backends.sglang import room
from engine_bridge.care.memory_guard import GIB, Memory
from engine_bridge.contract import EngineSpec, Gpu, Verdict
from engine_bridge.errors import BridgeError, UnavailableError, UsageError

PARSER = f"""
import json
from pathlib import Path
OPTIONS = json.loads(Path({str(RECORDINGS / "flags.json")!r}).read_text())
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        for name, known in OPTIONS.items():
            if not name.startswith("--") or name == "--help":
                continue
            if known["bare"]:
                parser.add_argument(name, action="store_true")
            else:
                parser.add_argument(name, choices=known["choices"])
"""
GB10 = Gpu(name="NVIDIA GB10", capability=(12, 1), unified=True, memory_total_bytes=121 * GIB)


@pytest.fixture
def engine(home, tmp_path, monkeypatch):
    """An interpreter whose SGLang has the recorded parser and nothing else."""
    site = tmp_path / "site"
    package = site / "sglang" / "srt"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "server_args.py").write_text(PARSER)
    info = site / "sglang-0.5.23.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.23\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("LING_CHAT_ENGINE_PYTHON", str(script))
    return info


def on(gpu, monkeypatch):
    backend = backend_named("sglang")
    monkeypatch.setattr(backend._gpu, "read", lambda: gpu)
    monkeypatch.setattr(room, "read_memory", lambda: Memory(121 * GIB, 115 * GIB, 0))
    return backend


def spec(tmp_path, **changes):
    folder = tmp_path / "models" / "Ling-3.0-flash-fp4"
    if not folder.exists():
        model_folder(tmp_path / "models")
    return EngineSpec(backend="sglang", model=str(folder), **changes)


def said(phase):
    pass


def test_the_backend_is_known_and_watches():
    backend: Backend = backend_named("sglang")
    assert isinstance(backend, Watchful)


def test_a_launch_for_a_spark_is_whole_and_its_key_is_nowhere(engine, tmp_path, monkeypatch):
    launch = on(GB10, monkeypatch).prepare(spec(tmp_path), said)
    argv, key = list(launch.argv), launch.endpoint.api_key
    assert argv[argv.index("--moe-runner-backend") + 1] == "humming"
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    assert launch.endpoint.base_url.endswith(argv[argv.index("--port") + 1])
    assert json.loads(launch.stdin) == {"api_key": key}
    assert len(key) > 20
    assert key not in "".join(argv) + json.dumps(dict(launch.environment)) + repr(launch)
    asked = json.loads(launch.environment["LING_CHAT_ENGINE"])
    evidence = asked.pop("evidence")
    assert set(asked) == {"fp8_head", "nextn", "humming", "clamp", "split_verify"}
    assert all(asked.values())
    assert evidence.startswith(os.environ["XDG_STATE_HOME"])
    assert launch.environment["PYTHONPATH"].split(os.pathsep)[0] == os.path.dirname(argv[1])
    # 115 GiB can be had, the engine takes 0.68 of it, 6 stay free: 30 for compilers of 8.
    assert launch.environment["MAX_JOBS"] == str(min(3, os.cpu_count() or 1))
    assert (launch.model_name, launch.context_tokens) == ("Ling-3.0-flash-fp4", 262144)


def test_what_is_off_is_not_asked_of_the_plugin(engine, tmp_path, monkeypatch):
    off = {"humming": False, "fp8-head": False, "nextn": False}
    launch = on(GB10, monkeypatch).prepare(spec(tmp_path, optimisations=off), said)
    asked = json.loads(launch.environment["LING_CHAT_ENGINE"])
    assert not any(asked[name] for name in ("fp8_head", "nextn", "humming", "clamp"))
    assert "--enable-fp32-lm-head" in launch.argv


def test_further_flags_win_and_are_checked_too(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("LING_CHAT_ENGINE_ARGS", "--attention-backend triton")
    backend = on(GB10, monkeypatch)
    argv = list(backend.prepare(spec(tmp_path), said).argv)
    assert argv[-2:] == ["--attention-backend", "triton"]
    assert backend._setting.attention == "triton"
    monkeypatch.setenv("LING_CHAT_ENGINE_ARGS", "--page-sizes 64")
    with pytest.raises(BridgeError, match="no flag --page-sizes"):
        backend.prepare(spec(tmp_path), said)


def test_a_32_bit_head_and_an_8_bit_head_exclude_each_other(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("LING_CHAT_ENGINE_ARGS", "--enable-fp32-lm-head")
    with pytest.raises(UsageError, match="32 bits"):
        on(GB10, monkeypatch).prepare(spec(tmp_path), said)


def test_another_sglang_is_refused_only_for_what_needs_the_plugin(engine, tmp_path, monkeypatch):
    (engine / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.6.0\n")
    backend = on(GB10, monkeypatch)
    with pytest.raises(UnavailableError, match=r"SGLang 0\.6\.0 is installed"):
        backend.prepare(spec(tmp_path), said)
    off = {"humming": False, "fp8-head": False, "nextn": False}
    assert backend.prepare(spec(tmp_path, optimisations=off), said)


def test_without_a_gpu_it_is_refused_unless_wanted_on_the_processor(engine, tmp_path, monkeypatch):
    backend = on(None, monkeypatch)
    with pytest.raises(UnavailableError, match="needs an NVIDIA GPU"):
        backend.prepare(spec(tmp_path), said)
    monkeypatch.setenv("LING_CHAT_SGLANG_CPU", "1")
    other = model_folder(tmp_path / "x", "tiny", architectures=["LlamaForCausalLM"], num_experts=0)
    launch = backend.prepare(EngineSpec(backend="sglang", model=str(other)), said)
    assert launch.argv[list(launch.argv).index("--device") + 1] == "cpu"
    graphs = {o.id: o for o in launch.optimisations}["cuda-graphs"]
    assert graphs.verdict is Verdict.NOT_SUPPORTED


def test_a_model_that_does_not_fit_is_refused_with_the_figures(engine, tmp_path, monkeypatch):
    wanted = spec(tmp_path)
    weights = tmp_path / "models" / "Ling-3.0-flash-fp4" / "model.safetensors"
    with weights.open("wb") as file:
        file.truncate(65_200_000_000)  # a hole: it takes no disk
    backend = on(GB10, monkeypatch)
    assert backend.prepare(wanted, said).model_bytes == 65_200_000_000
    monkeypatch.setattr(room, "read_memory", lambda: Memory(121 * GIB, 80 * GIB, 0))
    with pytest.raises(UnavailableError, match=r"need 65 GiB.*may take 54 of the 80 GiB"):
        backend.prepare(wanted, said)
    monkeypatch.setenv("LING_CHAT_SKIP_MEMORY_CHECK", "1")
    assert backend.prepare(wanted, said)


def test_the_switches_can_be_listed_before_there_is_anything(home):
    listed = backend_named("sglang").optimisations(EngineSpec(backend="sglang"))
    assert [o.id for o in listed if o.switchable and o.requested] == [
        "humming",
        "fp8-head",
        "nextn",
        "split-verify",
        "cuda-graphs",
    ]
