"""The real engine with a switch more: one that does nothing, and one that costs a tenth."""

import sys
from dataclasses import replace
from pathlib import Path

from engine_bridge.backends.base import Backend, Launch, Report
from engine_bridge.backends.llamacpp.backend import LlamaCpp
from engine_bridge.contract import EngineSpec, Optimisation

NOTHING = Optimisation(id="nothing", title="Nothing", summary="Does nothing at all.")
BURNER = Optimisation(id="burner", title="Burner", summary="Costs the engine CPU time besides.")
BURNING_SERVE = Path(__file__).with_name("burning_serve.py")
TENTH = 1 / 9
"""CPU seconds burned per CPU second of work, so that a tenth of all is burned."""


class WithNothing(LlamaCpp):
    def optimisations(self, spec: EngineSpec) -> tuple[Optimisation, ...]:
        return (*super().optimisations(spec), NOTHING)


class WithBurner(LlamaCpp):
    """Switched on, the engine's own process really works a tenth of its time for nothing."""

    def optimisations(self, spec: EngineSpec) -> tuple[Optimisation, ...]:
        return (*super().optimisations(spec), BURNER)

    def prepare(self, spec: EngineSpec, report: Report) -> Launch:
        launch = super().prepare(spec, report)
        if not spec.optimisations.get(BURNER.id):
            return launch
        return replace(launch, argv=[sys.executable, str(BURNING_SERVE), str(TENTH)])


def with_nothing(name: str) -> Backend:
    return WithNothing()


def with_burner(name: str) -> Backend:
    return WithBurner()
