"""How the app feels while a reply streams: key echo, and its CPU beside the engine's.

    python tests/bench/keys.py [--model NAME] [--tokens 2000]

Starts the real app in a pseudo-terminal of 120x36, asks for a long reply, and types a letter four
times a second meanwhile. Prints the time from a key to its appearance in the output (ms), the
time and CPU seconds to the first frame, the time to the first token, and the CPU seconds of app
and engine while streaming. Run it on an idle machine.
"""

import argparse
import os
import random
import statistics
import sys
import time

import pexpect
import psutil

from engine_bridge.host import statefile

ROWS, COLUMNS = 36, 120
KEY_EVERY_S = 0.25
READY_S = 120.0
PROMPT = "Write a very long story about a ship and its crew, in twenty chapters."
LETTERS = "éßøñ"
"""In neither the interface, nor the story, nor an escape sequence."""
LOOK_BACK, LINE = 8, 60
"""Letters that must stand together to be the ones just typed; letters before the box is emptied."""


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def echo(app: "pexpect.spawn[str]", typed: str) -> float | None:
    """Seconds until the last letter of `typed` is painted after those before it; None if it took
    over a second."""
    began = time.perf_counter()
    app.send(typed[-1])
    try:
        app.expect_exact(typed[-LOOK_BACK:], timeout=1)
    except pexpect.TIMEOUT:
        return None
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--tokens", type=int, default=2000)
    args = parser.parse_args()
    command = ["-m", "app", "--model", args.model]
    began = time.perf_counter()
    app = pexpect.spawn(sys.executable, command, dimensions=(ROWS, COLUMNS), encoding="utf-8")
    app.delaybeforesend = None
    assert app.pid is not None
    app.expect("sk anything", timeout=20)  # the cursor stands on its first letter
    first_frame = time.perf_counter() - began
    first_cpu = cpu_seconds(app.pid)
    app.send(PROMPT + "\r")
    app.expect(r"TTFT (\x1b\[[0-9;]*m)*[0-9]", timeout=READY_S)
    first_token = time.perf_counter() - began
    state = statefile.read()
    assert state is not None
    assert state.engine_pid is not None
    app_cpu, engine_cpu = cpu_seconds(app.pid), cpu_seconds(state.engine_pid)
    times, lost, until = [], 0, time.perf_counter() + args.tokens / 20
    typed, chance = "", random.Random(1)
    while time.perf_counter() < until:
        if len(typed) == LINE:
            app.sendcontrol("u")
            typed = ""
        typed += chance.choice(LETTERS)
        took = echo(app, typed)
        if took is None:
            lost += 1
        elif len(typed) >= LOOK_BACK:
            times.append(took * 1000)
        time.sleep(KEY_EVERY_S)
    app_cpu, engine_cpu = (
        cpu_seconds(app.pid) - app_cpu,
        cpu_seconds(state.engine_pid) - engine_cpu,
    )
    app.sendcontrol("q")
    app.expect(pexpect.EOF, timeout=20)
    app.wait()
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"first frame   {first_frame:6.2f} s   {first_cpu:.2f} s CPU")
    print(f"first token   {first_token:6.2f} s after the command")
    print(f"key echo      p50 {statistics.median(times):.0f} ms, p95 {p95:.0f} ms, {lost} lost")
    print(f"CPU           app {app_cpu:.1f} s, engine {engine_cpu:.1f} s")
    if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        print("the machine was busy: take these figures for upper bounds")


if __name__ == "__main__":
    main()
