"""One engine process and its whole group: started, read, stopped, reaped."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence

from engine_bridge.backends.base import Launch

TERM_WAIT_S = 4.0
"""After SIGTERM, before SIGKILL. The lease promises the engine gone within 5 s."""
LAST_WORDS_S = 1.0
"""For output still in the pipe after the end; it holds the reason for it."""
POLL_S = 0.05


class EngineProcess:
    """Owns one child in a session of its own, so that a signal reaches all it started."""

    def __init__(self, process: asyncio.subprocess.Process, on_output: Callable[[bytes], None]):
        self._process = process
        self._on_output = on_output
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, launch: Launch, on_output: Callable[[bytes], None]) -> "EngineProcess":
        """Start the engine. Raises OSError if the program cannot be run."""
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **launch.environment},
            start_new_session=True,
        )
        # An engine that dies at once closes the pipe; its exit tells more than the error here.
        with contextlib.suppress(ConnectionError):
            assert process.stdin is not None
            process.stdin.write(launch.stdin)
            await process.stdin.drain()
        return cls(process, on_output)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for the end; returns the exit code, negative for a signal."""
        # asyncio's own wait also waits for the pipes, which a grandchild may hold open for ever.
        while self._process.returncode is None:  # noqa: ASYNC110 (the child tells nobody)
            await asyncio.sleep(POLL_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._reader), LAST_WORDS_S)
        return self._process.returncode

    async def stop(self) -> None:
        """SIGTERM, wait, SIGKILL, reap; returns when the whole group is gone."""
        self._signal_group(signal.SIGTERM)
        if not await self._gone_within(TERM_WAIT_S):
            self._signal_group(signal.SIGKILL)
            await self._gone_within(TERM_WAIT_S)
        await self.wait()
        self._reader.cancel()

    async def _gone_within(self, seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            if self.exit_code is not None and not group_alive(self.pid):
                return True
            await asyncio.sleep(POLL_S)
        return False

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(65536):
            self._on_output(data)


def group_alive(group: int) -> bool:
    """Whether a process of the group is left that is not merely waiting to be reaped."""
    import psutil

    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return any(_in_group(process, group) for process in psutil.process_iter(["status"]))


def _in_group(process: "object", group: int) -> bool:
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        return process.info["status"] != psutil.STATUS_ZOMBIE and os.getpgid(process.pid) == group
    except (OSError, psutil.Error):
        return False


def describe_exit(code: int | None) -> str:
    """An exit code in words: "signal SIGKILL", "status 1"."""
    if code is None:
        return "no status"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"status {code}"


def command_line(argv: Sequence[str]) -> str:
    import shlex

    return shlex.join(argv)
