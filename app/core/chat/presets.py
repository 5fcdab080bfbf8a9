"""Presets: a system prompt and sampling settings under a name, one TOML file each.

    title = "Careful reader"
    description = "Answers from the documents alone."
    system = "…"
    [parameters]
    temperature = 0.3
    [zh_CN]
    title = "…"
    description = "…"

Those of the app are in assets/presets; a user's own, in the presets folder beside the settings,
stand before them, and replace one of the same file name.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from app.core.chat.conversation import Conversation
from app.core.i18n import _, language
from engine_bridge import files, paths
from engine_bridge.chat.events import Parameters
from engine_bridge.errors import BridgeError, UsageError


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    """The file's name without its end."""
    title: str
    description: str = ""
    system: str = ""
    parameters: Parameters = field(default_factory=Parameters)
    path: Path | None = None
    """The user's own file; None for one of the app's."""

    def apply(self, conversation: Conversation) -> None:
        """Take system text and parameters for what is asked from now on."""
        conversation.system = self.system
        conversation.parameters = self.parameters
        conversation.preset = self.name
        conversation.changed()


def folder() -> Path:
    """Where the user's own are. It may not exist yet."""
    return paths.config_dir() / "presets"


def every() -> tuple[list[Preset], list[str]]:
    """All presets, the user's own first; and a sentence for each file that is none."""
    found: dict[str, Preset] = {}
    problems = []
    for path in sorted(folder().glob("*.toml")):
        try:
            found[path.stem] = _parse(path.read_text(encoding="utf-8"), path.stem, path)
        except (OSError, ValueError) as error:
            problems.append(
                _("The preset {path} is left out: {why}.").format(
                    path=path, why=str(error).rstrip(".")
                )
            )
    shipped = resources.files("assets").joinpath("presets")
    for each in sorted(shipped.iterdir(), key=lambda each: each.name):
        name = each.name.removesuffix(".toml")
        if each.name.endswith(".toml") and name not in found:
            found[name] = _parse(each.read_text(encoding="utf-8"), name, None)
    return list(found.values()), problems


def find(name: str) -> Preset:
    """The preset of this name. Raises UsageError that names those there are."""
    found, _problems = every()
    for preset in found:
        if name in (preset.name, preset.title):
            return preset
    raise UsageError(
        _("There is no preset called {name}.").format(name=name),
        _("There are {names}.").format(names=", ".join(preset.name for preset in found)),
    )


def save(conversation: Conversation, title: str) -> Preset:
    """Keep the conversation's system text and parameters under this title, in place of an own
    preset of the same name. Raises BridgeError when it cannot be written."""
    import tomlkit

    title = " ".join(title.split())
    name = re.sub(r"[^\w-]+", "-", title.lower()).strip("-")
    if not name:
        raise UsageError(_("A title needs at least one letter."), _("Type one."))
    preset = Preset(
        name, title, "", conversation.system, conversation.parameters, folder() / f"{name}.toml"
    )
    given = {k: v for k, v in asdict(preset.parameters).items() if v not in (None, ())}
    text = tomlkit.document()
    text.update({"title": title, "system": preset.system, "parameters": given})
    assert preset.path is not None
    try:
        preset.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.replace(preset.path, tomlkit.dumps(text))
    except OSError as error:
        raise BridgeError(
            _("The preset cannot be written to {path} ({why}).").format(
                path=preset.path, why=error.strerror or error
            ),
            _("Free some space there, or check the folder's permissions."),
        ) from error
    conversation.preset = name
    conversation.changed()
    return preset


def _parse(text: str, name: str, path: Path | None) -> Preset:
    """Raises ValueError that says what is wrong."""
    found = tomllib.loads(text)
    parameters = found.get("parameters", {})
    if not isinstance(parameters, dict):
        raise ValueError("parameters is no table")
    named = found.get(language(), {})
    if not isinstance(named, dict):
        raise ValueError(f"{language()} is no table")
    return Preset(
        name,
        _text(named, "title") or _text(found, "title") or name,
        _text(named, "description") or _text(found, "description"),
        _text(found, "system"),
        Parameters(**{key: _value(key, parameters[key]) for key in parameters}),
        path,
    )


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return value.strip()


def _value(key: str, value: object) -> Any:
    if key not in {each.name for each in fields(Parameters)}:
        raise ValueError(f"there is no parameter {key}")
    if key == "stop":
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise ValueError("stop is no list of texts")
    wanted: type | tuple[type, ...] = (
        int if key in ("max_tokens", "top_k", "seed") else (int, float)
    )
    wanted = bool if key == "thinking" else wanted
    if not isinstance(value, wanted) or (isinstance(value, bool) and key != "thinking"):
        raise ValueError(f"{key} cannot be {value!r}")
    return value
