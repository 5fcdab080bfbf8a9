"""The user's settings: one TOML file, whose comments and unknown keys survive our writing."""

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, ValidationError, model_validator

from app.core.i18n import _
from app.core.settings import schema
from engine_bridge import files, paths
from engine_bridge.errors import BridgeError, UsageError


class Settings(schema.Settings):
    """The settings in use. What is changed here reaches the file with `save`."""

    _saved: dict[str, Any] = PrivateAttr(default_factory=lambda: schema.Settings().model_dump())
    """What the file says as far as we know."""

    @model_validator(mode="before")
    @classmethod
    def _from_before(cls, values: Any) -> Any:
        """The theme stood alone at the top of the file once."""
        if isinstance(values, dict) and isinstance(values.get("theme"), str):
            theme = {"theme": values["theme"]}
            return values | {"appearance": theme | values.get("appearance", {})}
        return values

    def get(self, key: str) -> Any:
        """The value of a setting like `engine.keep`."""
        section, _dot, name = key.partition(".")
        return getattr(getattr(self, section), name)

    def put(self, key: str, value: Any) -> None:
        """Set a setting like `engine.keep` and save it. Raises what `save` raises."""
        section, _dot, name = key.partition(".")
        setattr(getattr(self, section), name, value)
        self.save()

    def only_now(self, key: str, value: Any) -> None:
        """Set a setting for this run: it is not saved."""
        section, _dot, name = key.partition(".")
        setattr(getattr(self, section), name, value)
        self._saved[section][name] = value

    def save(self) -> None:
        """Write what was changed here, in one step; another process's changes stay.

        Raises UsageError for a broken file, BridgeError when it cannot be written.
        """
        import tomlkit
        from tomlkit.exceptions import ParseError

        now = self.model_dump()
        try:
            document = tomlkit.parse(_text())
        except ParseError as problem:  # broken by another hand while the app runs
            raise _broken(_("line {line}").format(line=problem.line)) from problem
        _merge(document, now, self._saved)
        try:
            files.replace(path(), tomlkit.dumps(document))
        except OSError as error:
            raise BridgeError(
                _("The settings cannot be written to {path} ({why}).").format(
                    path=path(), why=error.strerror or error
                ),
                _("Free some space there, or check the folder's permissions."),
            ) from error
        self._saved = now


def path() -> Path:
    return paths.config_dir() / "settings.toml"


def load() -> Settings:
    """The settings. Raises UsageError with the place of the mistake if the file is broken."""
    try:
        found = Settings.model_validate(_values())
    except ValidationError as problem:
        raise _broken(".".join(str(part) for part in problem.errors()[0]["loc"])) from problem
    found._saved = found.model_dump()
    return found


def sets_keys_or_theme() -> bool:
    """Whether the user has keys or a theme of their own. False where that cannot be read."""
    try:
        found = load()
        return bool(
            found.keys
            or found.appearance.theme != schema.Appearance().theme
            or any((paths.config_dir() / "themes").glob("*.toml"))
        )
    except (BridgeError, OSError):
        return False


def unknown() -> list[str]:
    """Names in the file that no setting has: they are kept, and do nothing. Raises UsageError."""
    found = []
    for section, values in _values().items():
        field = schema.Settings.model_fields.get(section)
        kind = field.annotation if field else None
        if field is None and section != "theme":  # it stood there once, and is read
            found.append(str(section))
        elif isinstance(kind, type) and issubclass(kind, schema.Section):
            found += [f"{section}.{name}" for name in values if name not in kind.model_fields]
    return found


def _values() -> dict[str, Any]:
    text = _text()
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        line = re.search(r"at line (\d+)", str(problem))
        last = len(text.splitlines())  # for what is missing at the end
        raise _broken(_("line {line}").format(line=line[1] if line else last)) from problem


def _broken(where: str) -> UsageError:
    return UsageError(
        _("The settings in {path} are broken at {where}.").format(path=path(), where=where),
        _("Mend or remove the file."),
    )


def _text() -> str:
    try:
        return files.text_of(path())
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(
            _("The settings in {path} cannot be read: {why}.").format(path=path(), why=problem),
            _("Mend or remove the file."),
        ) from problem


def _merge(table: Any, values: dict[str, Any], saved: dict[str, Any]) -> None:
    """Set each value that differs from what was saved, so that all else stays as it is written.

    What is None goes from the table: TOML has no word for it.
    """
    for key, value in values.items():
        was = saved.get(key)
        if value == was:
            continue
        if isinstance(value, dict):
            if key not in table:
                table[key] = {}
            _merge(table[key], value, was if isinstance(was, dict) else {})
        elif value is None:
            table.pop(key, None)
        else:
            table[key] = value
    for key in saved.keys() - values.keys():
        table.pop(key, None)
