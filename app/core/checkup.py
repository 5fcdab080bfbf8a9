"""What `doctor` looks at: each thing with its state and, where something is amiss, its cure."""

import importlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine_bridge import paths
from engine_bridge.errors import BridgeError

LOW_DISK_BYTES = 2_000_000_000


class Health(StrEnum):
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `cure` is empty where nothing is amiss."""

    area: str
    health: Health
    text: str
    cure: str = ""


def examine() -> Iterator[Finding]:
    """Look at everything, one finding at a time. Never raises."""
    for area, look in _AREAS.items():
        try:
            yield from look()
        except BridgeError as problem:
            yield Finding(area, Health.BAD, problem.reason, problem.cure)
        except Exception as problem:
            yield Finding(area, Health.WARNING, f"could not be looked at: {problem!r}")


def _hardware() -> Iterator[Finding]:
    from engine_bridge import machine
    from engine_bridge.models.choose import SMALL_BELOW_BYTES
    from engine_bridge.models.progress import size_text

    free = machine.free_memory()
    yield Finding(
        "hardware",
        Health.GOOD,
        f"{platform.system()} {platform.machine()}, {machine.free_threads()} of {os.cpu_count()}"
        f" cores free, Python {platform.python_version()}",
    )
    if free < SMALL_BELOW_BYTES:
        yield Finding(
            "memory",
            Health.WARNING,
            f"{size_text(free)} free",
            "Only the smallest model fits; close other programs.",
        )
    else:
        yield Finding("memory", Health.GOOD, f"{size_text(free)} free")
    disk = shutil.disk_usage(paths.models_dir()).free
    low = disk < LOW_DISK_BYTES
    yield Finding(
        "disk",
        Health.WARNING if low else Health.GOOD,
        f"{size_text(disk)} free in {paths.models_dir()}",
        "Free some, or move the models with LING_CHAT_MODELS." if low else "",
    )


def _engine() -> Iterator[Finding]:
    from importlib.metadata import version

    try:
        importlib.import_module("xllamacpp")
    except ImportError as problem:
        from engine_bridge.backends.llamacpp.failures import diagnose

        found = diagnose(1, [str(problem)])
        yield Finding("engine", Health.BAD, found.reason, found.cure)
        return
    yield Finding("engine", Health.GOOD, f"embedded llama.cpp, xllamacpp {version('xllamacpp')}")


def _model() -> Iterator[Finding]:
    from engine_bridge.models import store
    from engine_bridge.models.progress import size_text

    models = store.installed()
    if not models:
        yield Finding(
            "model",
            Health.WARNING,
            "none is here yet",
            "The first start fetches one; or run: ling-chat models pull",
        )
    for each in models:
        yield Finding("model", Health.GOOD, f"{each.name}, {size_text(each.size)}, {each.path}")


def _keyring() -> Iterator[Finding]:
    from engine_bridge import secrets

    yield Finding("keyring", Health.GOOD, f"secrets are kept in {secrets.where()}")


def _settings() -> Iterator[Finding]:
    from app.core import settings

    settings.load()
    there = settings.path().exists()
    yield Finding("settings", Health.GOOD, f"{settings.path()}{'' if there else ' (not made yet)'}")


def _terminal() -> Iterator[Finding]:
    term = os.environ.get("TERM", "")
    columns, rows = shutil.get_terminal_size()
    inside = "tmux, " if os.environ.get("TMUX") else "screen, " if term.startswith("screen") else ""
    colours = os.environ.get("COLORTERM", "no COLORTERM")
    text = f"{inside}TERM={term or 'unset'}, {colours}, {columns}×{rows}, {sys.stdout.encoding}"
    if term in {"", "dumb"}:
        yield Finding(
            "terminal",
            Health.WARNING,
            text,
            "The app needs cursor movement: use another terminal, or `ling-chat ask`.",
        )
    elif "utf" not in (sys.stdout.encoding or "").lower():
        yield Finding("terminal", Health.WARNING, text, "Set a UTF-8 locale, such as C.UTF-8.")
    else:
        yield Finding("terminal", Health.GOOD, text)


_AREAS: dict[str, Callable[[], Iterator[Finding]]] = {
    "hardware": _hardware,
    "engine": _engine,
    "model": _model,
    "keyring": _keyring,
    "settings": _settings,
    "terminal": _terminal,
}
