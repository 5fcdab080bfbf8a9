"""The plugin's kernels without a GPU: in Triton's interpreter, and through its compiler."""

import json
import subprocess

import pytest
import sglang_cpu

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]
# What one block of threads may have, in bytes (CUDA's tables of compute capabilities).
SHARED_MEMORY = {"90": 232_448, "121": 101_376}


def run(python, environment, mode, side="kernel", **more):
    script = sglang_cpu.ROOT / "tests" / "sglang_plugin" / f"{side}_side.py"
    output = subprocess.run(
        [python, script, mode], env=environment | more, check=True, capture_output=True, text=True
    ).stdout
    return json.loads(output.splitlines()[-1])


def test_the_kernels_compute_what_plain_torch_does_on_odd_sizes_too(
    sglang_python, sglang_environment
):
    seen = run(sglang_python, sglang_environment, "interpret", TRITON_INTERPRET="1")
    assert len(seen) == 3 * 8 + 1
    assert max(seen.values()) < 1e-3


def test_the_kernels_compile_for_an_h200_and_fit_a_spark(
    sglang_python, sglang_environment, tmp_path
):
    seen = run(sglang_python, sglang_environment, "compile", TRITON_CACHE_DIR=str(tmp_path))
    for capability, kernels in seen.items():
        assert len(kernels) > 10
        assert max(kernels.values()) <= SHARED_MEMORY[capability], kernels


def test_the_split_kernel_in_our_blocks_is_plain_attention(sglang_python, sglang_environment):
    seen = run(sglang_python, sglang_environment, "interpret", "split", TRITON_INTERPRET="1")
    assert seen.pop("calls") == {"draft": 3}
    assert len(seen) == 3
    assert max(seen.values()) < 5e-3  # partial results are kept in BF16


def test_what_makes_and_checks_drafts_fits_an_h200_and_a_spark(
    sglang_python, sglang_environment, tmp_path
):
    seen = run(
        sglang_python, sglang_environment, "compile", "split", TRITON_CACHE_DIR=str(tmp_path)
    )
    for capability, kernels in seen.items():
        assert len(kernels) == 3
        assert max(kernels.values()) <= SHARED_MEMORY[capability], kernels
