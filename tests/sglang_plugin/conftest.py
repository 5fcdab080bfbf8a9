"""A real SGLang on the CPU, where the environment names an interpreter that has it."""

import json
import subprocess

import pytest
import sglang_cpu
import tiny_models

from engine_bridge.machine import free_port


@pytest.fixture(scope="session")
def sglang_python() -> str:
    python = sglang_cpu.interpreter()
    if python is None:
        pytest.skip("LING_CHAT_SGLANG_PYTHON names no interpreter with SGLang")
    return python


@pytest.fixture(scope="session")
def sglang_environment(sglang_python, tmp_path_factory) -> dict[str, str]:
    """The environment of an SGLang process that finds this checkout's plugin installed."""
    return sglang_cpu.install(sglang_python, tmp_path_factory.mktemp("sglang"))


@pytest.fixture(scope="session")
def inside(sglang_python, sglang_environment, tmp_path_factory) -> dict[str, dict]:
    """What engine_side.py saw of SGLang's real classes with the plugin loaded."""
    folder = tmp_path_factory.mktemp("inside")
    model = tiny_models.write(folder / "ling", tiny_models.LING)
    wanted = {"fp8_head": True, "nextn": True, "clamp": True, "split_verify": True}
    script = sglang_cpu.ROOT / "tests" / "sglang_plugin" / "engine_side.py"
    run = subprocess.run(
        [sglang_python, script, model, str(free_port()), folder / "seen.json"],
        env=sglang_environment | {"LING_CHAT_ENGINE": json.dumps(wanted)},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    return json.loads((folder / "seen.json").read_text())
