"""How a model wants to be sampled: what its own files say, else what is known of its family."""

import functools
import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from engine_bridge.chat.events import Parameters

if TYPE_CHECKING:
    from app.core.settings.schema import ChatSettings

P = TypeVar("P", bound=Parameters)

NAMES = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty")
"""What a model's files and families may say."""
IN_GGUF = {"temperature": "temp"}


def filled(wanted: P, best: Parameters) -> P:
    """`wanted` with what it leaves open taken from `best`. An answer without chance (temperature
    0) needs nothing of it."""
    if wanted.temperature == 0:
        return wanted
    return replace(
        wanted,
        **{
            field.name: getattr(best, field.name)
            for field in fields(Parameters)
            if getattr(wanted, field.name) in (None, ())
        },
    )


def of_settings(chat: "ChatSettings") -> Parameters:
    """What a new conversation begins with; None where the settings leave it to the model."""
    given = {name: getattr(chat, name) for name in (*NAMES, "max_tokens")}
    return Parameters(**given, thinking={"on": True, "off": False}.get(chat.thinking))


@functools.lru_cache(maxsize=8)
def recommended(model: str, path: str = "") -> Parameters:
    """What is recommended for the model of this name and, where it is on this machine, this file
    or folder; all None where nobody says. Reads the file's head: 0.1 s for a GGUF."""
    said = _of_file(Path(path)) if path else {}
    return Parameters(**(said or _of_family(f"{model} {Path(path).name}".lower())))


def _of_file(path: Path) -> dict[str, Any]:
    if path.is_dir():
        try:
            found = json.loads((path / "generation_config.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return _numbers(found) if isinstance(found, dict) else {}
    from engine_bridge.errors import BridgeError
    from engine_bridge.models import tensors

    try:
        gguf = tensors.read(path)
    except BridgeError:
        return {}
    return _numbers(
        {name: gguf.get(f"general.sampling.{IN_GGUF.get(name, name)}") for name in NAMES}
    )


def _of_family(name: str) -> dict[str, Any]:
    text = resources.files("assets").joinpath("sampling.toml").read_text(encoding="utf-8")
    return next(
        (_numbers(each) for each in tomllib.loads(text)["models"] if each["match"] in name), {}
    )


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that are numbers; as short as they were meant (0.95 and not 0.949999988)."""
    taken = {
        name: round(found[name], 6)
        for name in NAMES
        if isinstance(found.get(name), int | float) and not isinstance(found[name], bool)
    }
    if "top_k" in taken:
        taken["top_k"] = int(taken["top_k"])
    return taken
