"""Starts the real engine process as the host would, for tests that look inside it."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine_bridge import machine
from engine_bridge.backends.base import Endpoint
from engine_bridge.backends.llamacpp import serve


@dataclass(frozen=True)
class LiveEngine:
    pid: int
    endpoint: Endpoint


@contextmanager
def live_engine(model: Path, **order: object) -> Iterator[LiveEngine]:
    port, key = machine.free_port(), secrets.token_urlsafe(12)
    settings = {"n_ctx": 1024, "n_threads": 2} | order
    spec = serve.ServeSpec(model=str(model), alias="m", port=port, api_key=key, **settings)
    process = subprocess.Popen(
        [sys.executable, "-m", serve.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | serve.ENVIRONMENT,
    )
    engine = LiveEngine(process.pid, Endpoint(f"http://127.0.0.1:{port}", key))
    try:
        assert process.stdin
        process.stdin.write(spec.to_stdin())
        process.stdin.flush()
        _wait(process, engine.endpoint)
        yield engine
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def _wait(process: "subprocess.Popen[bytes]", endpoint: Endpoint) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the engine ended while it started"
        try:
            if answer(endpoint, "/health", None).get("status") == "ok":
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the engine did not start within 60 s")


def answer(endpoint: Endpoint, path: str, body: dict[str, object] | None) -> dict[str, object]:
    """The JSON answer to a request; OSError when there is none."""
    import httpx

    method = "GET" if body is None else "POST"
    try:
        got = httpx.request(
            method,
            endpoint.base_url + path,
            headers=endpoint.headers,
            json=body,
            trust_env=False,
            timeout=60,
        )
        return dict(got.raise_for_status().json())
    except httpx.HTTPError as error:
        raise OSError(str(error)) from error
