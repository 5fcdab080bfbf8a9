"""Themes in files: loaded again when saved, the last good one kept, and none at all."""

import subprocess
import sys
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from settings_apps import running
from textual.color import Color

from app.core.settings.file import Settings
from app.tui import no_colour, theme_watch, themes
from engine_bridge import paths

MINE = 'name = "mine"\n[colors]\nprimary = "#0000ff"\nbackground = "#101010"\n'


async def test_a_saved_theme_shows_and_a_broken_one_leaves_the_last(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theme_watch, "LOOK_S", 0.05)
    folder = paths.config_dir() / "themes"
    folder.mkdir()
    file = folder / "mine.toml"
    file.write_text(MINE)
    async with running(Settings(appearance={"theme": "mine"})) as (app, pilot):

        async def until(primary: str) -> None:
            while app.theme_variables["primary"].lower() != primary:
                await pilot.pause(0.05)

        await until("#0000ff")
        file.write_text(MINE.replace("#0000ff", "#00ff00"))
        await until("#00ff00")
        file.write_text("name = ")
        while not any("no valid TOML" in each.message for each in app._notifications):
            await pilot.pause(0.05)
        assert app.theme_variables["primary"].lower() == "#00ff00"
        (folder / "other.toml").write_text(MINE.replace("mine", "other"))
        while "other" not in app.themes.names:
            await pilot.pause(0.05)


async def test_no_color_draws_without_any_colour(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as (app, pilot):
        assert app.theme == no_colour.THEME
        await pilot.press("f8")
        await pilot.pause(0.2)
        drawn = [
            style
            for row in app.screen._compositor.render_strips()
            for _, style, _ in row
            if style is not None
        ]
        assert all(each.color is None or each.color.is_default for each in drawn)
        assert all(each.bgcolor is None or each.bgcolor.is_default for each in drawn)
        assert any(each.reverse for each in drawn), "the row under the cursor"
        assert any(each.dim for each in drawn), "what matters less"


def test_a_light_ground_is_reversed_and_grey_is_dim() -> None:
    def drawn(style: str) -> Style:
        [found] = no_colour.NoColours().apply([Segment("x", Style.parse(style))], Color(0, 0, 0))
        assert found.style is not None
        return found.style

    assert drawn("bold #000000 on #ffffff").reverse
    assert drawn("bold #000000 on #ffffff").bold
    assert drawn("#808080 on #000000").dim
    assert not drawn("#ffffff on #000000").dim


@pytest.mark.parametrize(
    ("terminal", "has_some"), [("vt100", False), ("xterm", True), ("xterm-256color", True)]
)
def test_terminals_without_colours_are_known(terminal: str, has_some: bool) -> None:
    # In a process of its own: the terminal's description can be loaded once.
    code = f"from app.core import terminal; print(terminal.has_colours({{'TERM': {terminal!r}}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(has_some)


def test_our_themes_name_the_same_things() -> None:
    found = {each.name: each for each in themes.ours()}
    assert {"ling-dark", "ling-light", "ling-contrast", "ling-mono"} <= set(found)
    wanted = set(found["ling-dark"].variables)
    assert all(wanted <= set(each.variables) for each in found.values())
