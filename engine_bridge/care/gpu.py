"""The GPU's figures through NVML: clock, power, temperature, load and memory."""

import contextlib
from collections.abc import Callable
from typing import Any

import psutil

from engine_bridge.contract import Gpu


class GpuReader:
    """Reads the first GPU, about 1 ms a look. Without an NVIDIA driver every look is None."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._events: Any = None
        with contextlib.suppress(Exception):  # any failure of the driver means: no GPU to show
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(0)
            self._nvml = pynvml
        if self._nvml is not None:
            with contextlib.suppress(Exception):
                events = self._nvml.nvmlEventSetCreate()
                kind = self._nvml.nvmlEventTypeXidCriticalError
                self._nvml.nvmlDeviceRegisterEvents(self._handle, kind, events)
                self._events = events

    def read(self) -> Gpu | None:
        """The GPU now; None where there is none."""
        return None if self._nvml is None else look(self._nvml, self._handle)

    def releasing(self) -> bool:
        """Whether memory of a process that has ended is still being freed; takes seconds."""
        if self._nvml is None:
            return False
        with contextlib.suppress(Exception):
            apps = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
            return any(not psutil.pid_exists(app.pid) for app in apps)
        return False

    def new_xid(self) -> int | None:
        """The number of an Xid error that came since the last call, else None.

        Xids are the driver's error reports: https://docs.nvidia.com/deploy/xid-errors/
        """
        if self._events is None:
            return None
        # With a time limit of 0 ms, "no event" is an error of the call.
        with contextlib.suppress(Exception):
            return int(self._nvml.nvmlEventSetWait_v2(self._events, 0).eventData)
        return None


def look(nvml: Any, handle: Any) -> Gpu:
    """One GPU through the functions of NVML. What NVML refuses to tell is None.

    GB10 shares the machine's memory and NVML says "not supported" for it; then the figures are
    MemTotal and MemTotal - MemAvailable, which is also what CUDA can allocate from.
    """

    def ask(question: Callable[..., Any], *given: Any) -> Any:
        try:
            return question(handle, *given)
        except nvml.NVMLError:
            return None

    name = ask(nvml.nvmlDeviceGetName) or ""
    power = ask(nvml.nvmlDeviceGetPowerUsage)
    rates = ask(nvml.nvmlDeviceGetUtilizationRates)
    memory = ask(nvml.nvmlDeviceGetMemoryInfo)
    unified = not memory or not memory.total
    if unified:
        machine = psutil.virtual_memory()
        used, total = machine.total - machine.available, machine.total
    else:
        used, total = memory.used, memory.total
    apps = ask(nvml.nvmlDeviceGetComputeRunningProcesses)
    sizes = [app.usedGpuMemory for app in apps or () if app.usedGpuMemory is not None]
    return Gpu(
        name=name.decode() if isinstance(name, bytes) else name,
        capability=ask(nvml.nvmlDeviceGetCudaComputeCapability),
        clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        max_clock_mhz=ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        power_w=None if power is None else power / 1000,
        temperature_c=ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        utilisation=None if rates is None else rates.gpu / 100,
        memory_used_bytes=used,
        memory_total_bytes=total,
        apps_bytes=sum(sizes) if sizes else None,
        unified=unified,
    )
