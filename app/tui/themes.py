"""Themes from TOML files: ours, and the user's own in the configuration folder."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from app.core.i18n import _
from engine_bridge import files, paths
from engine_bridge.errors import UsageError

DEFAULT = "ling-dark"
OURS = Path(__file__).parents[2] / "themes"
_COLOURS = frozenset(
    {
        "primary",
        "secondary",
        "accent",
        "success",
        "warning",
        "error",
        "foreground",
        "background",
        "surface",
        "panel",
        "boost",
    }
)
_STYLES = frozenset(
    {"bold", "italic", "underline", "underline2", "reverse", "strike", "dim", "none", "not"}
)


def parse(text: str, where: str) -> Theme:
    """The theme a TOML text describes. Raises UsageError with what is wrong and where."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"The theme {where} is no valid TOML: {error}.", "Mend it.") from error
    name, colours = data.get("name"), data.get("colors")
    if not isinstance(name, str) or not isinstance(colours, dict) or "primary" not in colours:
        raise UsageError(
            f"The theme {where} lacks a name, or [colors] with at least `primary`.",
            "Copy one of the app's themes and change that.",
        )
    variables = data.get("variables", {})
    if unknown := set(colours) - _COLOURS:
        raise UsageError(
            f"The theme {where} names unknown colours: {', '.join(sorted(unknown))}.",
            f"There are: {', '.join(sorted(_COLOURS))}.",
        )
    checked: dict[str, Any] = {key: _colour(key, value, where) for key, value in colours.items()}
    return Theme(
        name=name,
        dark=bool(data.get("dark", True)),
        variables=_variables(variables, where),
        **checked,
    )


def _colour(key: str, value: Any, where: str) -> str:
    try:
        return Color.parse(value).hex
    except (ColorParseError, TypeError, AttributeError) as error:
        raise UsageError(
            f"The theme {where} has no colour in `{key}` but {value!r}.",
            'Write it like "#79c7a3".',
        ) from error


def _variables(values: Any, where: str) -> dict[str, str]:
    if not isinstance(values, dict):
        raise UsageError(f"[variables] of the theme {where} is no table.", "Mend it.")
    for key, value in values.items():
        if not isinstance(value, str):
            raise UsageError(
                f"The theme {where} has no text in the variable `{key}` but {value!r}.",
                "Put it in quotation marks.",
            )
        if not key.endswith("-style"):
            _colour(key, value.split()[0] if value.split() else value, where)
        elif not set(value.split()) <= _STYLES:
            raise UsageError(
                f"The theme {where} has no text style in `{key}` but {value!r}.",
                f"Text styles are: {', '.join(sorted(_STYLES))}.",
            )
    return dict(values)


def ours() -> list[Theme]:
    """The themes that come with the app."""
    return [parse(file.read_text(encoding="utf-8"), file.name) for file in our_files()]


def title(name: str) -> str:
    """What a theme looks like, in a few words; empty for one that is not ours."""
    looks = {
        "ling-dark": _("jade on ink"),
        "ling-light": _("ink on paper"),
        "ling-contrast": _("high contrast"),
        "ling-mono": _("no colours"),
    }
    return looks.get(name, "")


def our_files() -> list[Path]:
    """The theme files that come with the app."""
    return sorted(OURS.glob("*.toml"))


def user_files() -> list[Path]:
    """The theme files of the user's own."""
    return sorted((paths.config_dir() / "themes").glob("*.toml"))


def load(found: Iterable[Path]) -> tuple[list[Theme], list[UsageError]]:
    """The themes of these files, and what is wrong with those that are left out."""
    themes: list[Theme] = []
    problems: list[UsageError] = []
    for file in found:
        try:
            themes.append(parse(files.text_of(file), str(file)))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(
                UsageError(
                    _("The theme {file} cannot be read: {why}.").format(file=file, why=error),
                    _("Mend it."),
                )
            )
        except UsageError as error:
            problems.append(error)
    return themes, problems
