"""The interpreter that runs SGLang, and what it has installed."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from engine_bridge.errors import UnavailableError

CHOICE = "LING_CHAT_ENGINE_PYTHON"
SUPPORTED = ((0, 5, 19), (0, 5, 23))
"""The first release with Ling 3.0 and Humming for it, and the last that was read and run."""
_ASK = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {"python": sys.version.split()[0]}
for name in ("sglang", "torch", "humming-kernels"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that has SGLang."""

    path: str
    versions: dict[str, str]
    """Of "python", "sglang", "torch", "humming-kernels"; absent where not installed."""

    @property
    def sglang(self) -> str:
        return self.versions["sglang"]


def find(settings: str | None = None) -> Interpreter:
    """The interpreter the user chose (`LING_CHAT_ENGINE_PYTHON`, else the one of the settings),
    else this one.

    Takes about 0.1 s. Raises UnavailableError when it cannot be run or has no SGLang.
    """
    chosen = os.environ.get(CHOICE, "").strip() or (settings or "").strip()
    cure = (
        "Install it: pip install 'ling-chat[spark]', or name a Python that has it: engine.python"
        f" in the settings, or {CHOICE}."
    )
    if not chosen and importlib.util.find_spec("sglang") is None:
        raise UnavailableError("SGLang is not installed.", cure)
    path = shutil.which(os.path.expanduser(chosen)) if chosen else sys.executable
    if path is None:
        raise UnavailableError(
            f"The engine's Python, {chosen}, is no program that can be run.",
            f"Set {CHOICE} to a Python interpreter that has SGLang.",
        )
    versions = _versions(path)
    if "sglang" not in versions:
        raise UnavailableError(f"{path} has no SGLang.", cure)
    return Interpreter(path, versions)


def unsupported(sglang: str) -> str:
    """Why our optimisations cannot be trusted with this SGLang, or nothing.

    The plugin reaches into SGLang's insides, which change from release to release.
    """
    first, last = (".".join(map(str, each)) for each in SUPPORTED)
    try:
        found = tuple(int(part) for part in sglang.split(".post", maxsplit=1)[0].split(".")[:3])
    except ValueError:
        found = (0,)
    if SUPPORTED[0] <= found <= SUPPORTED[1]:
        return ""
    return f"SGLang {sglang} is installed; the optimisations are made for {first} to {last}."


def _versions(path: str) -> dict[str, str]:
    try:
        answer = subprocess.run(
            [path, "-c", _ASK], check=True, capture_output=True, timeout=60, cwd=Path.home()
        )
        found = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise UnavailableError(
            f"The engine's Python, {path}, does not run: {type(error).__name__}.",
            f"Set {CHOICE} to a Python interpreter that has SGLang.",
        ) from error
    return {str(name): str(version) for name, version in found.items()}
