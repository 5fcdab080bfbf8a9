"""The settings screen: drawn from the schema, saved at once."""

from pathlib import Path

from settings_apps import running
from textual.widgets import Input, OptionList, Static

from app.core.settings import file as settings
from app.core.settings.fields import items
from app.tui.screens.settings import SettingsScreen


async def test_a_choice_a_switch_and_a_number_are_changed_and_saved(home: Path) -> None:
    settings.path().write_text("# mine\n[appearance]\nlanguage = 'en'  # short\n")
    async with running(settings.load(), (80, 24)) as (app, pilot):
        await pilot.press("f8")
        await pilot.pause(0.2)
        screen = app.screen
        assert isinstance(screen, SettingsScreen)
        rows = screen.query_one(OptionList)
        assert {each.id for each in rows.options if not each.disabled} == {
            each.key for each in items()
        }

        rows.highlighted = rows.get_option_index("appearance.theme")
        was = app.theme
        await pilot.press("right")
        await pilot.pause()
        assert app.theme == settings.load().appearance.theme != was
        await pilot.press("left")
        assert app.theme == was

        rows.highlighted = rows.get_option_index("engine.keep")
        await pilot.press("enter")
        assert settings.load().engine.keep
        await pilot.press("delete")
        assert not settings.load().engine.keep

        rows.highlighted = rows.get_option_index("appearance.frames_per_second")
        await pilot.press("enter")
        box = screen.query_one(Input)
        assert box.has_focus
        box.value = "900"
        await pilot.press("enter")
        problem = str(screen.query_one("#problem", Static).content)
        assert "A whole number from 0 to 60." in problem
        assert settings.load().appearance.frames_per_second == 0
        box.value = "12"
        await pilot.press("enter")
        assert settings.load().appearance.frames_per_second == 12
        assert rows.has_focus
        assert "12" in str(rows.get_option("appearance.frames_per_second").prompt)

        text = settings.path().read_text()
        assert text.startswith("# mine\n[appearance]\nlanguage = 'en'  # short\n")
        await pilot.press("escape")
        assert not isinstance(app.screen, SettingsScreen)


async def test_escape_leaves_the_box_without_saving(home: Path) -> None:
    async with running(size=(80, 24)) as (app, pilot):
        await pilot.press("f8")
        await pilot.pause(0.2)
        rows = app.screen.query_one(OptionList)
        rows.highlighted = rows.get_option_index("engine.model")
        await pilot.press("enter", "x", "backspace", "y", "escape")
        assert isinstance(app.screen, SettingsScreen)
        assert settings.load().engine.model == ""
