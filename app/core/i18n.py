"""The language of the app: English in the source, other languages in assets/locale.

`_("{n} documents").format(n=n)` translates a sentence of ours; `shown(text)` one that
engine_bridge has written in English, figures and names filled in.
"""

import functools
import gettext
import os
from collections.abc import Mapping
from pathlib import Path

DOMAIN = "ling-chat"
LOCALES = Path(__file__).parents[2] / "assets" / "locale"
VARIABLE = "LING_CHAT_LANGUAGE"
LANGUAGES = {"en": "English", "zh_CN": "简体中文"}
"""What can be chosen, each in its own words."""


class Catalogue(gettext.GNUTranslations):
    """A compiled catalogue that can also be looked through."""

    _catalog: dict[str, str]

    def messages(self) -> Mapping[str, str]:
        """Every translation by its English text; that of a plural by (text, number)."""
        return self._catalog


def _(message: str) -> str:
    """`message` in the user's language; `message` itself where there is no translation."""
    found = catalogue()
    return found.gettext(message) if found and message else message


def ngettext(one: str, many: str, n: int) -> str:
    """The form for `n` things, in the user's language: `ngettext("{n} file", "{n} files", n)`."""
    found = catalogue()
    return found.ngettext(one, many, n) if found else (one if n == 1 else many)


def shown(text: str) -> str:
    """A finished English sentence of engine_bridge, in the user's language where it is known."""
    found = catalogue()
    if found is None or not text:
        return text
    from app.core.sentences import translate

    return translate(text, found)


@functools.cache
def language() -> str:
    """The language in use: a key of LANGUAGES.

    LING_CHAT_LANGUAGE wins over the setting `appearance.language`, which wins over the locale.
    """
    return (
        _known(os.environ.get(VARIABLE, ""))
        or _known(_setting())
        or _known(next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), ""))
        or "en"
    )


@functools.cache
def catalogue() -> Catalogue | None:
    """The catalogue of the language in use; None for English. Loaded when first asked for."""
    if (wanted := language()) == "en":
        return None
    try:
        with (LOCALES / wanted / "LC_MESSAGES" / f"{DOMAIN}.mo").open("rb") as file:
            return Catalogue(file)
    except OSError:
        return None


def lend_to_libraries() -> None:
    """Let libraries that use gettext too, as click does for "Usage:", find their words with us."""
    if (wanted := language()) != "en":
        os.environ["LANGUAGE"] = wanted
        gettext.bindtextdomain(DOMAIN, LOCALES)
        gettext.textdomain(DOMAIN)


def use(wanted: str | None) -> None:
    """Use this language from now on; None asks environment and settings again."""
    language.cache_clear()
    catalogue.cache_clear()
    if wanted is not None:
        os.environ[VARIABLE] = wanted


def _known(locale: str) -> str:
    """The key of LANGUAGES that a locale's name means, as in zh_CN.UTF-8 or zh-Hans; else ""."""
    parts = locale.partition(".")[0].partition("@")[0].replace("-", "_").lower().split("_")
    match parts:
        case ["zh", *rest] if not {"tw", "hk", "mo", "hant"} & set(rest):
            return "zh_CN"
        case ["en" | "c" | "posix", *_rest]:
            return "en"
    return ""


def _setting() -> str:
    """The language of the settings, read without what checks them: that takes longer than this."""
    import tomllib

    from engine_bridge import paths
    from engine_bridge.errors import BridgeError

    try:
        text = (paths.config_dir() / "settings.toml").read_text(encoding="utf-8")
        if "language" not in text:
            return ""
        found = tomllib.loads(text)["appearance"]["language"]
    except (OSError, ValueError, KeyError, TypeError, BridgeError):
        return ""
    return found if isinstance(found, str) else ""
