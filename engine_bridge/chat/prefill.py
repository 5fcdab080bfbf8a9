"""How long a prompt takes to read on this machine: a curve that is learned, and a forecast.

Reading a token costs the weights' work, the same for each, and attention to all tokens before it:
seconds(n) = a + b·n + c·n². `Curves` keeps a, b and c by engine, model, switches and threads in the
state folder. A `Forecast` follows one prefill: it starts from the curve, or on the first prompt
ever from the curvature that follows from the model's shape, fits b and c to the progress so far,
and at the end teaches the curve what it saw.
"""

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine_bridge import files, paths
from engine_bridge.chat.events import Prefill, Timings

if TYPE_CHECKING:
    from engine_bridge.contract import EngineStatus

KEPT = 200
USUAL_CURVATURE = 8e-5
"""c/b of a model whose shape is not known: between a 0.5B (6e-5) and a 0.1B (16e-5)."""
NOISE = 0.10
"""How much the time of a batch scatters, as a share of it."""
RECENT = 0.3
"""The share of the prompt over which the present speed is taken: other programs come and go."""
ENOUGH_BATCHES = 4
SHORT_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds to read tokens: `a` a request, `b` a token, and `c` a token for each before it,
    twice. Times are those of a machine as busy as it was when they were learned."""

    b: float
    c: float
    a: float = 0.0
    runs: int = 0
    """How many prefills taught it."""
    at: float = 0.0
    """Unix time of the last one."""

    def seconds(self, cached: int, total: int) -> float:
        """To read `total` tokens of which the first `cached` need no work."""
        return self.a + self.between(cached, total)

    def between(self, begin: int, end: int) -> float:
        """The same without what a request costs by itself."""
        return self.b * (end - begin) + self.c * (end * end - begin * begin)


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens `begin` to `end` of a prompt, read in `seconds`."""

    begin: int
    end: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed before the first batch. `curvature` is c/b; doubts are standard deviations
    as shares of the value; without `b`, any speed is as likely."""

    curvature: float = USUAL_CURVATURE
    curvature_doubt: float = 1.0
    b: float | None = None
    b_doubt: float = 0.2


def fit(batches: Sequence[Batch], prior: Prior) -> Curve | None:
    """b and c by weighted least squares on the seconds a token, with the prior as two more
    observations. None where there is nothing to go by."""
    rates = [(b.seconds / (b.end - b.begin), b.begin + b.end, b.end - b.begin) for b in batches]
    mean = sum(b.seconds for b in batches) / (sum(b.end - b.begin for b in batches) or 1)
    scale = prior.b or mean / (1 + prior.curvature * (batches[-1].end if batches else 0))
    if scale <= 0:
        return None
    # Rows w·(x·b + y·c = z): each batch, then what is believed of c/b and of b.
    rows = [(1.0, float(at), rate, size / (NOISE * mean)) for rate, at, size in rates]
    usual = max(size for *_, size in rates) if rates else 1
    rows = [(x, y, z, weight / usual) for x, y, z, weight in rows]
    doubt = prior.curvature_doubt * prior.curvature * scale
    rows.append((-prior.curvature, 1.0, 0.0, 1 / doubt))
    if prior.b is not None:
        rows.append((1.0, 0.0, prior.b, 1 / (prior.b_doubt * prior.b)))
    xx = sum((w * x) ** 2 for x, y, z, w in rows)
    xy = sum(w * w * x * y for x, y, z, w in rows)
    yy = sum((w * y) ** 2 for x, y, z, w in rows)
    xz = sum(w * w * x * z for x, y, z, w in rows)
    yz = sum(w * w * y * z for x, y, z, w in rows)
    determinant = xx * yy - xy * xy
    if determinant <= 0:
        return Curve(scale, prior.curvature * scale)
    b = (xz * yy - yz * xy) / determinant
    c = (xx * yz - xy * xz) / determinant
    if b <= 0 or c < 0:  # too few batches under too changing a load
        return Curve(scale, prior.curvature * scale)
    return Curve(b, c)


class Curves:
    """The curves that were learned, in a small JSON file. An unreadable one is empty."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or paths.state_dir() / "prefill.json"

    def get(self, key: str) -> Curve | None:
        try:
            return Curve(**files.read_object(self._path)[key])
        except (KeyError, TypeError):  # not learned, or written by another version
            return None

    def put(self, key: str, curve: Curve) -> None:
        """Remember; the oldest make room. A folder that cannot be written costs only memory."""
        known = files.read_object(self._path)
        known.pop(key, None)
        known[key] = asdict(curve)
        while len(known) > KEPT:
            known.pop(next(iter(known)))
        with contextlib.suppress(OSError):
            files.replace(self._path, json.dumps(known, indent=1))


class Forecast:
    """Follows one prefill; `update` each of its events, `finish` at its end, complete or not."""

    def __init__(
        self, curve: Curve | None = None, curvature: float | None = None, key: str = ""
    ) -> None:
        """`curve`: what was learned; `curvature`: c/b as the model's shape has it. With a `key`,
        `finish` teaches the curve of that name."""
        self._curve, self._key = curve, key
        if curve is not None and curve.runs:
            self._prior = Prior(curve.c / curve.b, 0.2, curve.b)
        elif curvature is not None:
            self._prior = Prior(curvature, 0.25)
        else:
            self._prior = Prior()
        self._batches: list[Batch] = []
        self._last: Prefill | None = None

    def expected_s(self, cached: int, total: int) -> float | None:
        """Seconds such a prompt takes, before it has begun; None on the first one ever."""
        return self._curve.seconds(cached, total) if self._curve else None

    def update(self, prefill: Prefill) -> Prefill:
        """The event with `eta_s` filled in: seconds until the prompt is read."""
        last = self._last or replace(prefill, processed=prefill.cached, elapsed_s=0.0)
        seconds = prefill.elapsed_s - last.elapsed_s
        if prefill.processed > last.processed and seconds > 0:
            self._batches.append(Batch(last.processed, prefill.processed, seconds))
        self._last = prefill
        return replace(prefill, eta_s=self._eta_s(prefill))

    def _eta_s(self, prefill: Prefill) -> float | None:
        curve = fit(self._batches, self._prior) if self._batches else self._curve
        if curve is None:
            return None
        left = curve.between(prefill.processed, prefill.total)
        return left * self._present_pace(curve, prefill.total) if self._batches else left

    def _present_pace(self, curve: Curve, total: int) -> float:
        """How the last batches compare with the curve through all: above 1 is slower."""
        took = expected = 0.0
        reach, weight = RECENT * total, 1.0
        for batch in reversed(self._batches):
            took += weight * batch.seconds
            expected += weight * curve.between(batch.begin, batch.end)
            weight *= max(0.0, 1 - (batch.end - batch.begin) / reach)
        return took / expected if expected > 0 else 1.0

    def saw_whole(self, timings: Timings) -> None:
        """The figures of an answer whose prefill showed no progress on the way."""
        total, cached = timings.prompt_tokens or 0, timings.cached_tokens or 0
        if not self._batches and timings.ttft_s and total > cached:
            self._batches.append(Batch(cached, total, timings.ttft_s))

    def finish(self) -> None:
        """Teach the curve. Blocks for a small file."""
        curve = self._taught()
        if curve is not None and self._key:
            Curves().put(self._key, replace(curve, at=round(time.time())))

    def _taught(self) -> Curve | None:
        known, batches = self._curve, self._batches
        tokens = sum(each.end - each.begin for each in batches)
        if len(batches) >= ENOUGH_BATCHES or (batches and known is None and tokens > SHORT_TOKENS):
            found = fit(batches, self._prior)
            a, runs = (known.a, known.runs) if known else (0.0, 0)
            return replace(found, a=a, runs=runs + 1) if found else None
        if known is not None and 0 < tokens <= SHORT_TOKENS:
            # A few tokens after a long cached prefix: mostly what a request costs by itself.
            over = sum(b.seconds for b in batches) - known.between(
                batches[0].begin, batches[-1].end
            )
            return replace(known, a=known.a + 0.3 * (max(0.0, over) - known.a))
        return None


def key_of(status: "EngineStatus") -> str:
    """What makes prefills comparable: the engine, the model, its switches, and what it runs on."""
    on = "+".join(sorted(each.id for each in status.optimisations if each.requested))
    gpu = status.load.gpu.name if status.load.gpu else ""
    parts = (
        status.spec.backend if status.spec else "",
        status.base_url if status.spec and status.spec.backend == "attach" else "",
        status.model_name,
        on or "none",
        f"{status.threads or os.cpu_count()} threads",
        gpu,
    )
    return "|".join(parts)


def forecast_for(status: "EngineStatus") -> Forecast:
    """A forecast for a prompt to this engine. Blocks for a small file and a model's header."""
    key = key_of(status)
    curve = Curves().get(key)
    shape = None
    if curve is None and status.model_path.endswith(".gguf"):
        from engine_bridge.models import tensors

        with contextlib.suppress(OSError, ValueError):
            shape = tensors.attention_share(tensors.read(Path(status.model_path)))
    return Forecast(curve, shape, key)
