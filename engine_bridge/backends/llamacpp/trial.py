"""Short copies of a model, run in the real engine and timed by its CPU seconds.

A short copy has the first layers of the model, in the form to be tried, and either the first
rows of its vocabulary, so that the output head costs next to nothing, or all of them.
"""

import mmap
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine_bridge import machine
from engine_bridge.backends.llamacpp import convert, rewrite, serve
from engine_bridge.errors import BridgeError
from engine_bridge.models.tensors import EMBEDDINGS, HEAD, Gguf

if TYPE_CHECKING:
    import httpx

SMALL_VOCABULARY = 4096
"""Tokens kept where the head shall cost nothing. Byte and control tokens come first in the
vocabularies of today, so the tokenizer still loads."""
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Short:
    """Which part of a model a short copy has. `vocabulary` None keeps it whole."""

    layers: int
    vocabulary: int | None = SMALL_VOCABULARY


def write_short(
    path: Path, model: Path, gguf: Gguf, short: Short, recipe: convert.Recipe, stop: threading.Event
) -> None:
    """Write a short copy of `model` in the form of `recipe` to `path`.

    Raises convert.StoppedError, or OSError when it cannot be written.
    """
    whole = _vocabulary(gguf)
    rows = min(short.vocabulary or whole, whole)
    steps = []
    for step in convert.plan(gguf, recipe):
        parts = step.name.split(".")
        if parts[0] == "blk" and int(parts[1]) >= short.layers:
            continue
        cut = step.name in (HEAD, EMBEDDINGS) and rows < whole
        steps.append(replace(step, shape=(step.shape[0], rows)) if cut else step)

    def tick(_: int) -> None:
        if stop.is_set():
            raise convert.StoppedError

    with (
        model.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as weights,
        path.open("wb") as out,
    ):
        threads = min(8, os.cpu_count() or 1)
        changed = _metadata(gguf, short.layers, rows)
        rewrite.write(out, gguf, weights, steps, changed, threads, tick)


def _vocabulary(gguf: Gguf) -> int:
    return next((t.shape[-1] for t in gguf.tensors if t.name == EMBEDDINGS), 0)


def _metadata(gguf: Gguf, layers: int, rows: int) -> dict[str, bytes]:
    """The entries that speak of layers and of tokens, made to fit the short copy."""
    arch, whole, depth = gguf.architecture, _vocabulary(gguf), gguf.arch("block_count") or 0
    changed = {f"{arch}.block_count": layers}
    if f"{arch}.nextn_predict_layers" in gguf.fields:
        changed[f"{arch}.nextn_predict_layers"] = 0
    arrays = {}
    for key, field in gguf.fields.items():
        if key.startswith(f"{arch}.") and field.count == depth:
            arrays[key] = rewrite.cut_array(gguf.header, field, layers)
        if rows < whole and key.startswith("tokenizer.ggml."):
            if field.count:
                arrays[key] = rewrite.cut_array(gguf.header, field, rows)
            elif key.endswith("_token_id") and isinstance(field.value, int):
                changed[key] = field.value if field.value < rows else 0
    if rows < whole and f"{arch}.vocab_size" in gguf.fields:
        changed[f"{arch}.vocab_size"] = rows
    return arrays | {key: rewrite.uint32(key, value) for key, value in changed.items()}


@dataclass(slots=True)
class Runner:
    """One engine process with a short copy loaded."""

    process: "subprocess.Popen[bytes]"
    client: "httpx.Client"
    _tokens: random.Random

    def cpu_seconds(self, prompt: int, predict: int) -> float:
        """CPU seconds the engine spends on reading `prompt` random tokens and making `predict`.

        Raises BridgeError when it does not answer.
        """
        import httpx

        ids = [self._tokens.randrange(512, SMALL_VOCABULARY) for _ in range(prompt)]
        body = {"prompt": ids, "n_predict": predict, "temperature": 0, "ignore_eos": True}
        before = self.spent()
        try:
            asked = self.client.post("/completion", json=body | {"cache_prompt": False})
            asked.raise_for_status()
        except httpx.HTTPError as error:
            raise _failed() from error
        return self.spent() - before

    def spent(self) -> float:
        """CPU seconds of the process so far."""
        return machine.cpu_seconds(self.process.pid)


def _failed() -> BridgeError:
    return BridgeError(
        "A short copy of this model does not run in the engine, so its forms cannot be compared.",
        "Use the model as it is.",
    )


@contextmanager
def runners(orders: list[dict[str, Any]], stop: threading.Event) -> Iterator[list[Runner]]:
    """Engines for these orders (keyword arguments of `ServeSpec` without address and key), all
    answering; gone when the block is left, however it is left.

    Raises convert.StoppedError, or BridgeError when one does not start.
    """
    started: list[Runner] = []
    try:
        for order in orders:
            started.append(_start(order))
        deadline = time.monotonic() + START_S
        for runner in started:
            _wait(runner, deadline, stop)
        yield started
    finally:
        for runner in started:
            runner.process.kill()
        for runner in started:
            runner.process.wait()
            runner.client.close()
            if runner.process.stdin:
                runner.process.stdin.close()


def _start(order: dict[str, Any]) -> Runner:
    import httpx

    port, key = machine.free_port(), secrets.token_urlsafe(24)
    spec = serve.ServeSpec(alias="trial", port=port, api_key=key, **order)
    process = subprocess.Popen(
        [sys.executable, "-m", serve.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | serve.ENVIRONMENT,
    )
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=120,
        trust_env=False,
    )
    runner = Runner(process, client, random.Random(7))  # noqa: S311
    assert process.stdin
    try:
        process.stdin.write(spec.to_stdin())
        process.stdin.flush()
    except OSError:
        pass  # it died at once; waiting for it says so
    return runner


def _wait(runner: Runner, deadline: float, stop: threading.Event) -> None:
    import httpx

    while time.monotonic() < deadline and runner.process.poll() is None:
        try:
            if runner.client.get("/health").status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        if stop.wait(0.05):
            raise convert.StoppedError
    raise _failed()
