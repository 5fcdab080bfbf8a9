"""The user's settings: one TOML file, whose comments and unknown keys survive our writing."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from engine_bridge import files, paths
from engine_bridge.errors import BridgeError, UsageError


class EngineSettings(BaseModel):
    backend: str = "auto"
    model: str = ""
    url: str = ""
    python: str = ""
    """Interpreter that has SGLang, where it lives in another environment than ling-chat."""
    keep: bool = False
    """The engine stays when the last ling-chat leaves."""
    optimisations: dict[str, bool] = Field(default_factory=dict)


class Settings(BaseModel):
    """What the file may hold; everything has a default."""

    theme: str = "ling-dark"
    engine: EngineSettings = Field(default_factory=EngineSettings)

    def save(self) -> None:
        """Write what differs from the file, in one step.

        Raises UsageError for a broken file, BridgeError when it cannot be written.
        """
        import tomlkit

        document = tomlkit.parse(_text())
        _merge(document, self.model_dump())
        try:
            files.replace(path(), tomlkit.dumps(document))
        except OSError as error:
            raise BridgeError(
                f"The settings cannot be written to {path()} ({error.strerror or error}).",
                "Free some space there, or check the folder's permissions.",
            ) from error


def path() -> Path:
    return paths.config_dir() / "settings.toml"


def load() -> Settings:
    """The settings. Raises UsageError with the place of the mistake if the file is broken."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        return Settings.model_validate(tomlkit.parse(_text()).unwrap())
    except ParseError as problem:
        where = f"line {problem.line}"
    except ValidationError as problem:
        where = ".".join(str(part) for part in problem.errors()[0]["loc"])
    raise UsageError(f"The settings in {path()} are broken at {where}.", "Mend or remove the file.")


def _text() -> str:
    try:
        return path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(
            f"The settings in {path()} cannot be read: {problem}.", "Mend or remove the file."
        ) from problem


def _merge(table: Any, values: dict[str, Any]) -> None:
    """Set each value that differs, so that an untouched line keeps its comment."""
    for key, value in values.items():
        if isinstance(value, dict):
            if key not in table:
                table[key] = {}
            _merge(table[key], value)
        elif key not in table or table[key] != value:
            table[key] = value
