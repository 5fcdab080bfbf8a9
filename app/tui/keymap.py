"""Keys by what they do: every binding has an id, and `[keys]` of the settings gives it others."""

import asyncio
import functools
import importlib
import pkgutil
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, KEY_TO_UNICODE_NAME, Keys
from textual.screen import Screen

from app.core.i18n import _

_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "meta", "hyper"})
_NAMES = frozenset(key.value for key in Keys)
_UNICODE = {short: name for name, short in KEY_NAME_REPLACEMENTS.items()}
"""What Unicode calls the keys that Textual has a shorter name for, like slash and plus."""
_SHORT = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "enter": "Enter",
    "space": "Space",
    "delete": "Del",
    "up": "↑",
    "down": "↓",
}
_LONG = _SHORT | {
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "up": "Up",
    "down": "Down",
    "delete": "Delete",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that has an id, and the class that has it."""

    id: str
    keys: tuple[str, ...]
    description: str
    owner: type[DOMNode]

    @property
    def section(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


def every_binding() -> dict[str, Bound]:
    """All bindings of the app by id, those of screens never opened too: loads their modules."""
    import app.tui

    for module in pkgutil.walk_packages(app.tui.__path__, "app.tui."):
        importlib.import_module(module.name)
    return {each.id: each for each in _bound(DOMNode)}


def key(name: str, long: bool = True) -> str:
    """The first key of the binding with this id as people write it: "Ctrl+R", or short "^r".

    Empty where no loaded class has such a binding.
    """
    found = keys(name)
    return display(found[0], long) if found else ""


def keys(name: str) -> tuple[str, ...]:
    """The keys in use of the binding with this id, as Textual names them."""
    return _chosen.get(name) or _defaults(name)


def use(overrides: Mapping[str, str]) -> None:
    """The keys that `key` tells from now on."""
    _chosen.clear()
    _chosen.update((name, split(text)) for name, text in overrides.items())


async def apply(app: App[None], overrides: Mapping[str, str]) -> None:
    """Use these keys at once; what is wrong with them is told and left out a moment later."""
    use(overrides)
    app.set_keymap(dict(overrides))
    if overrides:
        good, problems = await asyncio.to_thread(check, overrides)
        use(good)
        app.set_keymap(good)
        if problems:
            app.notify("\n".join(problems), severity="warning", timeout=10, markup=False)


def check(overrides: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The overrides that can be used, and a sentence for each that cannot. Slow: loads modules."""
    known = every_binding()
    good: dict[str, str] = {}
    problems: list[str] = []
    for name, text in overrides.items():
        if name not in known:
            problems.append(
                _(
                    "The settings name keys for {id}, which does not exist; F1 lists what does."
                ).format(id=name)
            )
        elif wrong := [each for each in split(text) or [text] if not _is_key(each)]:
            problems.append(
                _("{key} is no key that {id} could have; write it like ctrl+r or f4.").format(
                    key=wrong[0] or "''", id=name
                )
            )
        else:
            good[name] = text
    for name in list(good):
        for other, taken in _clashes(name, good, known):
            problems.append(
                _("{key} is the key of both {id} and {other}; {id} keeps its own.").format(
                    key=display(taken), id=name, other=other
                )
            )
            good.pop(name, None)
    return good, problems


def split(text: str) -> tuple[str, ...]:
    """The keys of a list like "ctrl+j,shift+enter"; a comma itself is called comma."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def display(name: str, long: bool = True) -> str:
    """A key as people write it: "Ctrl+R", "PageUp"; short as the footer has room: "^r", "PgUp"."""
    *modifiers, last = name.split("+")
    shown = (_LONG if long else _SHORT).get(last, last)
    if len(last) > 1 and shown == last:
        shown = _character(last) or last[:1].upper() + last[1:]
    if long:
        is_letter = len(shown) == 1 and modifiers
        return "+".join(
            [*(each.capitalize() for each in modifiers), shown.upper() if is_letter else shown]
        )
    if "ctrl" in modifiers:
        modifiers.remove("ctrl")
        shown = f"^{shown}"
    return "+".join([*modifiers, shown])


_chosen: dict[str, tuple[str, ...]] = {}


@functools.cache
def _defaults(name: str) -> tuple[str, ...]:
    return next((each.keys for each in _bound(DOMNode) if each.id == name), ())


def _bound(parent: type[DOMNode]) -> Iterator[Bound]:
    for each in parent.__subclasses__():
        if each.__module__.startswith("app."):
            for binding in each.__dict__.get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.id:
                    text = binding.tooltip or binding.description
                    yield Bound(binding.id, split(binding.key), text, each)
        yield from _bound(each)


def _clashes(
    name: str, overrides: Mapping[str, str], known: Mapping[str, Bound]
) -> Iterator[tuple[str, str]]:
    """Other ids that would have a key of `name` at the same time, each with that key."""
    mine = set(split(overrides[name]))
    for other, bound in known.items():
        theirs = split(overrides[other]) if other in overrides else bound.keys
        by_design = mine.intersection(known[name].keys, bound.keys)
        shared = mine.intersection(theirs) - by_design
        if other != name and shared and _meet(known[name].owner, bound.owner):
            yield other, min(shared)


def _meet(one: type[DOMNode], other: type[DOMNode]) -> bool:
    """Whether the bindings of both classes can be in force together."""
    if one is other or issubclass(one, App) or issubclass(other, App):
        return True
    a_screen_and_its_widget = issubclass(one, Screen) is not issubclass(other, Screen)
    return a_screen_and_its_widget and _place(one) == _place(other)


def _place(owner: type[DOMNode]) -> str:
    """The module of the screen on which this class is: widgets of no screen's are the chat's."""
    is_screens = owner.__module__.startswith("app.tui.screens.")
    return owner.__module__ if is_screens else "app.tui.screens.chat"


def _is_key(name: str) -> bool:
    *modifiers, last = name.split("+")
    is_known = len(last) == 1 or last in _NAMES or bool(_character(last))
    return is_known and set(modifiers) <= _MODIFIERS


def _character(name: str) -> str:
    """The character that Textual calls by this name, like question_mark; else ""."""
    called = _UNICODE.get(name, name)
    called = KEY_TO_UNICODE_NAME.get(called, called)
    try:
        found = unicodedata.lookup(called.upper().replace("_", " "))
    except KeyError:
        return ""
    return found if found.isprintable() else ""
