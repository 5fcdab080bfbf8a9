"""Notices a GPU that is stuck at a low clock although it has work."""

from dataclasses import dataclass

from engine_bridge.contract import Gpu

BUSY = 0.5
"""Utilisation from which the clock ought to be high."""
LOW = 0.4
"""Share of the highest clock below which it counts as low. GB10's stuck states were reported at
500-890 MHz, its highest clock is about 2,400 MHz or more."""
STUCK_S = 20.0
"""A clock takes a moment to rise; no healthy one takes this long."""
HOT_C = 85


@dataclass
class SlowClock:
    """Fed with one reading after another; `advice` is empty while all is well."""

    advice: str = ""
    _low_since: float | None = None

    def feed(self, now_s: float, gpu: Gpu) -> str:
        """Take a reading at `now_s` (any steady clock, seconds); returns the advice.

        A GPU at rest is no evidence: the advice stays until a busy one is seen at speed.
        """
        if gpu.clock_mhz is None or not gpu.max_clock_mhz or (gpu.utilisation or 0) < BUSY:
            self._low_since = None
            return self.advice
        if gpu.clock_mhz >= LOW * gpu.max_clock_mhz:
            self._low_since, self.advice = None, ""
            return self.advice
        if self._low_since is None:
            self._low_since = now_s
        if now_s - self._low_since >= STUCK_S:
            self.advice = _advice(gpu)
        return self.advice


def _advice(gpu: Gpu) -> str:
    state = f"The GPU is busy at {gpu.clock_mhz} of {gpu.max_clock_mhz} MHz"
    if gpu.temperature_c is not None and gpu.temperature_c >= HOT_C:
        return f"{state} because it is at {gpu.temperature_c} °C: give it air and let it cool."
    if gpu.unified:
        return (
            f"{state}, a known stuck state: stop the engine, shut the machine down, take it off"
            " mains power for a minute, and start again."
        )
    return f"{state}: check its power limit with `nvidia-smi -q -d PERFORMANCE,POWER`."
