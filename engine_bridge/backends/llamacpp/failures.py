"""Why the embedded engine ended: what its last words and its exit code mean, and what helps."""

import re
from collections.abc import Sequence

from engine_bridge.backends.base import Diagnosis
from engine_bridge.host.process import describe_exit

SIGNATURES: tuple[tuple[str, Diagnosis], ...] = (
    (
        r"libgomp\.so\.1",
        Diagnosis(
            "The engine needs the system library libgomp, which is missing.",
            "Install it: apt install libgomp1, or dnf install libgomp.",
        ),
    ),
    (
        r"No module named 'xllamacpp'|DLL load failed|cannot open shared object",
        Diagnosis(
            "The embedded engine is not installed whole.",
            "Install it again: pip install --force-reinstall xllamacpp",
        ),
    ),
    (
        r"couldn't bind|bind.*(failed|in use)|Address already in use",
        Diagnosis("The engine's port was taken.", "Start it again.", retry=True),
    ),
    (
        r"failed to allocate|out of memory|bad_alloc|Cannot allocate memory|unable to allocate",
        Diagnosis(
            "The model and its context need more memory than is free.",
            "Close other programs, ask for a shorter --context, or choose a smaller model.",
        ),
    ),
    (
        r"unknown model architecture: '([^']*)'",
        Diagnosis(
            "This engine does not know the model's architecture.",
            "Choose another model, or update ling-chat.",
        ),
    ),
    (
        r"tensor .* (not found|data is not within)|missing tensor|wrong shape"
        r"|invalid magic|failed to read|corrupt|error loading model|failed to load model",
        Diagnosis(
            "The model file cannot be loaded: it is damaged or incomplete.",
            "Check it with `ling-chat models check`, or fetch it again.",
        ),
    ),
)
KILLED = (-9, 137)


def diagnose(exit_code: int | None, log_tail: Sequence[str]) -> Diagnosis:
    """The first known signature, read from the last line backwards; else the exit code's sense."""
    for line in reversed(log_tail):
        for pattern, diagnosis in SIGNATURES:
            if re.search(pattern, line, re.IGNORECASE):
                return diagnosis
    if exit_code in KILLED:
        return Diagnosis(
            "The engine was killed, most often because memory ran out.",
            "Start it again; if it happens again, choose a smaller model or a shorter --context.",
        )
    last = next((line for line in reversed(log_tail) if line.strip()), "it said nothing")
    return Diagnosis(
        f"The engine ended with {describe_exit(exit_code)}: {last.strip()[:200]}",
        "Start it again; `ling-chat engine logs` shows all it said.",
    )
