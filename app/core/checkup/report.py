"""What `doctor` looks at: each thing with its state and, where something is amiss, its cure."""

import importlib
import os
import platform
from collections.abc import Callable, Iterator

from app.core.checkup import home
from app.core.checkup.findings import Finding, Health
from app.core.i18n import _, shown
from engine_bridge.errors import BridgeError, brief

__all__ = ["Finding", "Health", "examine"]

Look = Callable[[], Iterator[Finding]]


def examine() -> Iterator[Finding]:
    """Look at everything, one finding at a time. Never raises."""
    bad = set()
    for area, look in _AREAS.items():
        for found in _looked_at(area, look):
            if found.health is Health.BAD:
                if found.text in bad:
                    continue  # several areas stumble over the same folder
                bad.add(found.text)
            yield found


def _looked_at(area: str, look: Look) -> Iterator[Finding]:
    try:
        yield from look()
    except BridgeError as problem:
        yield Finding(area, Health.BAD, shown(problem.reason), shown(problem.cure))
    except Exception as problem:
        why = _("could not be looked at: {why}").format(why=brief(problem))
        yield Finding(area, Health.WARNING, why)


def _hardware() -> Iterator[Finding]:
    from engine_bridge import machine
    from engine_bridge.models.choose import SMALL_BELOW_BYTES
    from engine_bridge.models.progress import size_text

    free = machine.free_memory()
    yield Finding(
        "hardware",
        Health.GOOD,
        _("{system} {machine}, {free} of {all} cores free, Python {python}").format(
            system=platform.system(),
            machine=platform.machine(),
            free=machine.free_threads(),
            all=os.cpu_count(),
            python=platform.python_version(),
        ),
    )
    if free < SMALL_BELOW_BYTES:
        yield Finding(
            "memory",
            Health.WARNING,
            _("{size} free").format(size=size_text(free)),
            _("Only the smallest model fits; close other programs."),
        )
    else:
        yield Finding("memory", Health.GOOD, _("{size} free").format(size=size_text(free)))


def _engine() -> Iterator[Finding]:
    from importlib.metadata import version

    try:
        importlib.import_module("xllamacpp")
    except ImportError as problem:
        from engine_bridge.backends.llamacpp.failures import diagnose

        found = diagnose(1, [str(problem)])
        yield Finding("engine", Health.BAD, shown(found.reason), shown(found.cure))
        return
    yield Finding(
        "engine",
        Health.GOOD,
        _("embedded llama.cpp, xllamacpp {version}").format(version=version("xllamacpp")),
    )


def _model() -> Iterator[Finding]:
    from engine_bridge.models import store
    from engine_bridge.models.progress import size_text

    models = store.installed()
    if not models:
        yield Finding(
            "model",
            Health.WARNING,
            _("none is here yet"),
            _("The first start fetches one; or run: ling-chat models pull"),
        )
    for each in models:
        yield Finding("model", Health.GOOD, f"{each.name}, {size_text(each.size)}, {each.path}")


_AREAS: dict[str, Look] = {
    "hardware": _hardware,
    "disk": home.disks,
    "engine": _engine,
    "model": _model,
    "settings": home.settings,
    "keyring": home.secrets,
    "sessions": home.sessions,
    "terminal": home.screen,
}
