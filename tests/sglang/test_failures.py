"""Why SGLang ended: recorded deaths, and the lines that others reported."""

import pytest
from sglang_replay import lines

from engine_bridge.backends.sglang.failures import SIGNATURES, diagnose
from engine_bridge.host.logs import TAIL_LINES


def test_replay_of_the_unshared_head_names_the_cause_and_not_sglangs_advice(tmp_path):
    tail = lines("fp8_head_not_shared", tmp_path)[-TAIL_LINES:]
    assert any("set --mem-fraction-static to a smaller value" in line for line in tail)
    found = diagnose(-9, tail)
    assert "draft does not share the FP8 head" in found.reason
    assert "does not help" in found.reason
    assert "mem-fraction" not in found.reason + found.cure
    assert found.remedy == {"fp8-head": False}
    assert not found.retry


@pytest.mark.parametrize("name", ["all_on", "humming_only"])
def test_replay_of_an_orderly_end_accuses_nothing(name, tmp_path):
    tail = lines(name, tmp_path)[-TAIL_LINES:]
    assert diagnose(-15, tail).reason.startswith("The engine ended with signal SIGTERM")


SAID = {
    "ling-chat: FP8 LM head was requested and is not on: the head is tied": ("refused", "FP8"),
    "ling-chat: Humming was requested and is not on: 3 on marlin": ("refused", "Humming"),
    "ling-chat: NEXTN was requested and is not on: no sharing": ("refused", "NEXTN"),
    "ling-chat: split verification was requested and is not on: no kernel": ("refused", "split"),
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.": (
        "do not fit",
        "Close other programs",
    ),
    "Exception: Capture cuda graph failed: something else": ("graphs failed", "CUDA graphs off"),
    "OSError: Port is already in use": ("port was taken", "Start it again"),
    "[Errno 98] error while attempting to bind: address already in use": ("port", "again"),
    "CUDA error: no kernel image is available for execution": ("no kernels", "sm_121"),
    "ImportError: Could not load any common_ops library!": ("kernels are not built", "Install"),
    "ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'": (
        "assembler is too old",
        "TRITON_PTXAS_PATH",
    ),
    "OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376": (
        "shared memory",
        "attention backend",
    ),
    "KV cache pool is full. Retract requests.": ("KV cache", "shorter"),
    "sglang serve: error: unrecognized arguments: --page-size-old": ("--page-size-old", "Install"),
    "NV_ERR_NO_MEMORY": ("ran out of memory", "drop_caches"),
    "ModuleNotFoundError: No module named 'humming'": ("module humming", "spark"),
}


@pytest.mark.parametrize(("line", "expected"), SAID.items())
def test_a_known_line_becomes_a_cause_and_a_cure(line, expected):
    tail = ["Traceback (most recent call last):", line, "Received sigquit from a child process."]
    found = diagnose(1, tail)
    assert expected[0] in found.reason
    assert expected[1] in found.cure


def test_the_cause_wins_over_what_follows_from_it():
    tail = [
        "NotImplementedError: \"addmm_cuda\" not implemented for 'Float8_e4m3fn'",
        "Exception: Capture cuda graph failed: ...",
        "Scheduler hit an exception: ...",
    ]
    assert "share the FP8 head" in diagnose(1, tail).reason


def test_an_import_that_sglang_itself_shrugs_off_is_no_cause():
    line = "Ignore import error when loading sglang.srt.models.x: No module named 'cutlass'"
    assert "cutlass" not in diagnose(1, [line, "ValueError: bad thing"]).reason
    assert "ValueError: bad thing" in diagnose(1, [line, "ValueError: bad thing"]).reason


def test_a_killed_engine_most_likely_ran_out_of_memory():
    for code in (-9, 137):
        assert "killed" in diagnose(code, ["loading"]).reason


def test_only_the_taken_port_is_tried_again():
    assert [s.reason for s in SIGNATURES if s.retry] == ["The engine's port was taken."]
