"""Finds the fastest form of a model's weights on this machine by trying short cuts of it."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_bridge.backends.base import Report
from engine_bridge.contract import Effect


@dataclass(frozen=True, slots=True)
class Form:
    """A way to store and run the weights. None leaves a part as shipped."""

    title: str
    layers: str | None = None
    head: str | None = None
    no_extra_bufts: bool = False
    n_ubatch: int = 512


@dataclass(frozen=True, slots=True)
class Finding:
    form: Form
    effect: Effect
    note: str = ""
    trial: dict[str, Any] = field(default_factory=dict)
    """What was measured, for the evidence."""


def layout(model: Path, threads: int, report: Report, cancel: threading.Event) -> Finding:
    raise NotImplementedError


def head(model: Path, threads: int, report: Report, cancel: threading.Event) -> Finding:
    raise NotImplementedError
