"""Loads the themes' files, and loads them again when they are saved."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App
from textual.theme import Theme

from app.core.i18n import _
from app.tui import no_colour, themes

if TYPE_CHECKING:
    from app.tui.app import LingChat

LOOK_S = 1.0
"""Seconds between two looks at the files; a look is a few system calls in a thread."""

_Stamp = tuple[int, int]


class ThemeWatch:
    """The app's themes. A file that breaks is told, and what it last said stays in use."""

    def __init__(self, app: "LingChat") -> None:
        self._app = app
        self._seen: dict[Path, _Stamp] = {}
        self._ours: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The themes to choose from: ours and the user's, without Textual's own."""
        return sorted(self._ours)

    def begin(self, wanted: str) -> str:
        """Register the app's own themes; returns the one to begin with."""
        self._register(themes.ours())
        if self._app.no_color:
            return no_colour.THEME
        return wanted if wanted in self._app.available_themes else themes.DEFAULT

    async def run(self) -> None:
        """Load the user's themes, then watch all files until cancelled."""
        self._seen = await asyncio.to_thread(_stamps, themes.our_files())
        told = await self._load(await asyncio.to_thread(themes.user_files))
        wanted = self._app.settings.appearance.theme
        if wanted in self._app.available_themes:
            self.use(wanted)
        elif not told:
            self._tell(_("There is no theme {name}.").format(name=wanted))
        while True:
            await asyncio.sleep(LOOK_S)
            now = await asyncio.to_thread(_look)
            changed = [file for file, stamp in now.items() if self._seen.get(file) != stamp]
            if changed:
                await self._load(changed)

    def use(self, name: str) -> None:
        """Draw with this theme, unless nothing may have a colour."""
        self._app.theme = no_colour.THEME if self._app.no_color else name

    async def _load(self, files: list[Path]) -> bool:
        """Load these files; returns whether something had to be told."""
        found, problems = await asyncio.to_thread(themes.load, files)
        self._seen |= await asyncio.to_thread(_stamps, files)
        self._register(found)
        if self._app.theme in {each.name for each in found}:
            self._app.mutate_reactive(App.theme)  # the same name with other colours
        for problem in problems:
            self._tell(str(problem))
        return bool(problems)

    def _register(self, found: Iterable[Theme]) -> None:
        for theme in found:
            self._ours.add(theme.name)
            self._app.register_theme(theme)

    def _tell(self, sentence: str) -> None:
        self._app.notify(sentence, severity="warning", timeout=10, markup=False)


def _look() -> dict[Path, _Stamp]:
    return _stamps([*themes.our_files(), *themes.user_files()])


def _stamps(files: Iterable[Path]) -> dict[Path, _Stamp]:
    found = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue  # gone since it was listed
        found[file] = (status.st_mtime_ns, status.st_size)
    return found
