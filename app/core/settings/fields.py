"""The settings as a list that any face can show: each with its control, limits and default.

Read from the schema, so that a new field needs no other line anywhere.
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from app.core.i18n import LANGUAGES, _
from app.core.settings import schema
from app.core.settings.file import Settings
from engine_bridge.errors import UsageError


class Control(StrEnum):
    """How a setting is changed."""

    SWITCH = "switch"
    CHOICE = "choice"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Item:
    """One setting. `key` is its name in the file, like `engine.keep`."""

    key: str
    section: str
    title: str
    description: str
    control: Control
    choices: tuple[str, ...]
    default: Any
    applies: str
    rule: str
    """What a value must be, as a sentence; empty where anything will do."""

    def shown(self, value: Any) -> str:
        """The value in words."""
        if isinstance(value, bool):
            return _("on") if value else _("off")
        if value is None and self.control is Control.NUMBER:
            return _("left to the model")
        if value is None or value == "":
            return _("not set")
        return LANGUAGES.get(value, value) if self.key.endswith(".language") else str(value)


def items() -> Iterator[Item]:
    """Every setting that one line can show, in the schema's order."""
    for section, table in Settings.model_fields.items():
        if isinstance(table.annotation, type) and issubclass(table.annotation, schema.Section):
            for name, field in table.annotation.model_fields.items():
                if field.title:
                    yield _item(f"{section}.{name}", _(table.title or section), field)


def item(key: str) -> Item:
    """The setting of this name. Raises UsageError if there is none."""
    for each in items():
        if each.key == key:
            return each
    raise UsageError(
        _("There is no setting {key}.").format(key=key),
        _("There are: {keys}.").format(keys=", ".join(each.key for each in items())),
    )


def change(settings: Settings, key: str, value: Any) -> None:
    """Set and save one setting; `value` may be the text a person typed.

    Raises UsageError with the rule for a value that does not fit, else what `save` raises.
    """
    which = item(key)
    if which.control is not Control.SWITCH and isinstance(value, str):
        value = value.strip()
        if value == "" and which.control is Control.NUMBER:
            value = which.default
    try:
        settings.put(key, value)
    except ValidationError as problem:
        raise UsageError(
            _("{value} does not fit {key}.").format(value=value, key=key), which.rule
        ) from problem


def _item(key: str, section: str, field: FieldInfo) -> Item:
    control, choices = _control(field.annotation)
    return Item(
        key=key,
        section=section,
        title=_(field.title or key),
        description=_(field.description or ""),
        control=control,
        choices=choices,
        default=field.get_default(call_default_factory=True, validated_data={}),
        applies=_(schema.applies(field)),
        rule=_rule(field, control, choices),
    )


def _control(annotation: Any) -> tuple[Control, tuple[str, ...]]:
    if isinstance(annotation, types.UnionType):  # `int | None`: empty is None
        annotation = next(each for each in annotation.__args__ if each is not type(None))
    if typing.get_origin(annotation) is typing.Literal:
        return Control.CHOICE, tuple(map(str, typing.get_args(annotation)))
    if annotation is bool:
        return Control.SWITCH, ()
    return (Control.NUMBER if annotation in (int, float) else Control.TEXT), ()


def _rule(field: FieldInfo, control: Control, choices: tuple[str, ...]) -> str:
    match control:
        case Control.SWITCH:
            return _("It is on or off.")
        case Control.CHOICE:
            return _("It is one of: {choices}.").format(choices=", ".join(choices))
        case Control.TEXT:
            return _("It has no spaces.") if _limit(field, "pattern") else ""
    low, high = _limit(field, "ge"), _limit(field, "le")
    whole = "float" not in str(field.annotation)
    if low is not None and high is not None:
        sentence = (
            _("A whole number from {low} to {high}.")
            if whole
            else _("A number from {low} to {high}.")
        )
    elif whole:
        sentence = _("A whole number from {low} on.")
    else:
        sentence = _("A number from {low} on.")
    return sentence.format(low=low, high=high)


def _limit(field: FieldInfo, name: str) -> Any:
    return next(
        (getattr(each, name) for each in field.metadata if getattr(each, name, None) is not None),
        None,
    )
