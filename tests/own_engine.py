"""The real embedded engine in a process of its own, as the product starts it."""

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from engine_bridge import machine
from engine_bridge.backends.attach import AttachedEngine
from engine_bridge.backends.base import Endpoint
from engine_bridge.backends.llamacpp.serve import ServeSpec
from engine_bridge.contract import EngineSpec

KEY = "test-key"


@dataclass
class RealEngine:
    endpoint: Endpoint
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return self.endpoint.base_url

    def counter(self, name: str) -> float:
        """One of llama-server's own totals since its start."""
        text = httpx.get(f"{self.url}/metrics", headers=self.endpoint.headers).text
        line = next(row for row in text.splitlines() if row.startswith(f"llamacpp:{name} "))
        return float(line.split()[1])


@contextmanager
def running_engine(model: Path, speculation: str = "none") -> Iterator[RealEngine]:
    """The engine process that the product starts too."""
    port = machine.free_port()
    spec = ServeSpec(
        model=str(model),
        alias="smollm2",
        port=port,
        api_key=KEY,
        n_ctx=2048,
        n_threads=2,
        speculation=speculation,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "engine_bridge.backends.llamacpp.serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(spec.to_stdin())
        process.stdin.flush()
        engine = RealEngine(Endpoint(f"http://127.0.0.1:{port}", KEY), process)
        deadline = time.monotonic() + 60
        while not _healthy(engine):
            assert process.poll() is None, "the engine ended while starting"
            assert time.monotonic() < deadline, "the engine did not become ready"
            time.sleep(0.1)
        yield engine
    finally:
        process.kill()
        process.wait()


def _healthy(engine: RealEngine) -> bool:
    try:
        return httpx.get(f"{engine.url}/health", timeout=2).is_success
    except httpx.HTTPError:
        return False


@asynccontextmanager
async def attached(url: str | None, model: str = "") -> AsyncIterator[AttachedEngine]:
    """Attaches to a server, as the product does."""
    spec = EngineSpec(backend="attach", url=url, model=model)
    engine = await AttachedEngine.open(spec)
    await engine.start(spec)
    try:
        yield engine
    finally:
        await engine.close()
