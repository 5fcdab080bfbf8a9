"""Decisions about the machine, fed with readings; and the readers on this machine."""

import types

import pytest

from engine_bridge.care.gpu import GpuReader, look
from engine_bridge.care.memory_guard import GIB, Memory, Watchdog, fit, read_memory
from engine_bridge.care.slow import STUCK_S, SlowClock
from engine_bridge.contract import Gpu


def spark(clock: int, utilisation: float = 0.96, temperature: int = 60) -> Gpu:
    return Gpu(
        clock_mhz=clock,
        max_clock_mhz=2418,
        utilisation=utilisation,
        temperature_c=temperature,
        unified=True,
    )


def fed(*readings: tuple[float, Gpu]) -> list[str]:
    slow = SlowClock()
    return [slow.feed(at, gpu) for at, gpu in readings]


def test_a_clock_that_stays_low_under_load_gets_the_advice_that_helps():
    said = fed((0, spark(650)), (10, spark(700)), (STUCK_S, spark(650)))
    assert said[:2] == ["", ""]
    assert "650 of 2418 MHz" in said[2]
    assert "mains power" in said[2]


def test_a_low_clock_at_rest_or_for_a_moment_is_none():
    assert set(fed(*((t, spark(210, 0.0)) for t in range(0, 60, 5)))) == {""}
    assert set(fed((0, spark(650)), (15, spark(2400)), (30, spark(650)))) == {""}


def test_the_advice_goes_when_the_clock_is_back_and_stays_over_a_pause():
    said = fed(
        (0, spark(650)),
        (STUCK_S, spark(650)),
        (STUCK_S + 1, spark(210, 0.0)),
        (STUCK_S + 2, spark(2400)),
    )
    assert said[1] == said[2] != ""
    assert said[3] == ""


def test_a_hot_gpu_is_told_from_a_stuck_one():
    said = fed((0, spark(650, temperature=92)), (STUCK_S, spark(650, temperature=92)))[-1]
    assert "92 °C" in said
    assert "mains power" not in said


def test_a_gpu_that_tells_no_clock_gets_no_advice():
    assert set(fed((0, Gpu(utilisation=1.0)), (60, Gpu(utilisation=1.0)))) == {""}


def memory(available: float, swap: float = 0.0, total: float = 121) -> Memory:
    return Memory(int(total * GIB), int(available * GIB), int(swap * GIB))


def test_memory_that_stays_low_stops_the_engine_after_15_seconds():
    dog = Watchdog(unified=True)
    said = [dog.feed(t, memory(5.9)) for t in (0, 5, 14.9, 15)]
    assert said[:3] == ["", "", ""]
    assert said[3] == "Only 5.9 GiB of memory were left for 15 s."


def test_memory_that_recovers_begins_the_count_anew():
    dog = Watchdog(unified=True)
    readings = [(0, 5), (14, 5), (15, 6.1), (16, 5), (30, 5)]
    assert [dog.feed(t, memory(free)) for t, free in readings] == [""] * 5
    assert dog.feed(31, memory(5)) != ""


def test_swap_that_grows_by_half_a_gibibyte_stops_it_at_once():
    dog = Watchdog(unified=True)
    assert dog.feed(0, memory(50, swap=2.0)) == ""
    assert dog.feed(1, memory(50, swap=2.4)) == ""
    assert dog.feed(2, memory(50, swap=1.5)) == ""
    assert "swap" in dog.feed(3, memory(50, swap=2.1))


def test_an_xid_stops_it_on_any_gpu_and_memory_only_where_it_is_shared():
    dog = Watchdog(unified=False)
    assert [dog.feed(t, memory(1, swap=t)) for t in range(30)] == [""] * 30
    assert dog.feed(31, memory(100), xid=79) == "The GPU's driver reported error Xid 79."


def test_the_fit_counts_what_can_be_reclaimed_and_what_compiling_takes():
    # 10 GiB free and 100 GiB of page cache: what counts is what can be had.
    assert fit(memory(110), 75 * GIB, compiles=False, cores=20).fits
    tight = fit(memory(85), 75 * GIB, compiles=True, cores=20)
    assert not tight.fits
    assert "75 GiB of memory, 8 GiB to compile kernels, and 6 GiB must stay free" in tight.sentence
    assert "85 of 121 GiB can be had" in tight.sentence
    assert fit(memory(85), 75 * GIB, compiles=False, cores=20).fits


@pytest.mark.parametrize(("available", "jobs"), [(89, 1), (113, 4), (500, 20)])
def test_as_many_compilers_run_as_fit_beside_the_weights(available, jobs):
    assert fit(memory(available), 75 * GIB, compiles=True, cores=20).compilers == jobs


def test_this_machines_memory_can_be_read():
    now = read_memory()
    assert 0 < now.available <= now.total


def test_a_machine_without_a_driver_has_no_gpu(monkeypatch):
    import pynvml

    def absent() -> None:
        raise pynvml.NVMLError_LibraryNotFound

    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    reader = GpuReader()
    assert reader.read() is None
    assert reader.new_xid() is None


def test_memory_of_a_process_that_has_ended_is_still_being_freed(monkeypatch):
    import os

    reader, apps = GpuReader(), []
    driver = types.SimpleNamespace(nvmlDeviceGetComputeRunningProcesses=lambda handle: apps)
    monkeypatch.setattr(reader, "_nvml", driver)
    monkeypatch.setattr(reader, "_handle", object(), raising=False)
    assert not reader.releasing()
    apps.append(types.SimpleNamespace(pid=os.getpid()))
    assert not reader.releasing()
    apps.append(types.SimpleNamespace(pid=1 << 30))  # no process has such a number
    assert reader.releasing()


def gb10_driver() -> types.SimpleNamespace:
    """NVML's answers as reported from GB10: no memory figures, the rest as elsewhere."""

    class NVMLError(Exception):
        pass

    def unsupported(*given: object) -> None:
        raise NVMLError("Not Supported")

    app = types.SimpleNamespace(pid=7, usedGpuMemory=70 * GIB)
    return types.SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlDeviceGetName=lambda handle: "NVIDIA GB10",
        nvmlDeviceGetCudaComputeCapability=lambda handle: (12, 1),
        nvmlDeviceGetClockInfo=lambda handle, kind: 2405,
        nvmlDeviceGetMaxClockInfo=lambda handle, kind: 2418,
        nvmlDeviceGetPowerUsage=lambda handle: 38_500,
        nvmlDeviceGetTemperature=lambda handle, kind: 61,
        nvmlDeviceGetUtilizationRates=lambda handle: types.SimpleNamespace(gpu=96, memory=0),
        nvmlDeviceGetMemoryInfo=unsupported,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [app],
    )


def test_where_the_driver_tells_no_memory_the_machines_own_is_shown():
    gpu = look(gb10_driver(), object())
    machine = read_memory()
    assert gpu.unified
    assert gpu.memory_total_bytes == machine.total
    assert gpu.memory_used_bytes == pytest.approx(machine.total - machine.available, abs=GIB)
    assert gpu.apps_bytes == 70 * GIB
    assert (gpu.clock_mhz, gpu.power_w, gpu.temperature_c) == (2405, 38.5, 61)
    assert (gpu.utilisation, gpu.capability) == (0.96, (12, 1))
