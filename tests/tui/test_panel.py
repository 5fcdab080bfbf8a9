"""The panel, the palette and the other screens, fed with fixed statuses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Footer

from app.core.settings import Settings
from app.core.settings import load as load_settings
from app.tui.app import LingChat
from app.tui.panel.switches import SwitchRow
from app.tui.screens.keys import KeysScreen
from app.tui.screens.welcome import Welcome
from engine_bridge import paths
from engine_bridge.contract import (
    Applies,
    Effect,
    EngineSpec,
    EngineState,
    EngineStatus,
    Optimisation,
    Verdict,
)
from engine_bridge.host.client import HostedEngine

SWITCHES = (
    Optimisation(
        id="a",
        title="First",
        summary="Does the first thing.",
        requested=True,
        resolved="Q8_0",
        observed="all tensors Q8_0",
        verdict=Verdict.VERIFIED,
        effect=Effect(prefill_ratio=1.72, how="probe"),
        evidence={"tensors": "290 Q8_0"},
        last_change_s=21.4,
    ),
    Optimisation(
        id="b",
        title="Second",
        summary="Does the second.",
        requested=True,
        verdict=Verdict.FELL_BACK,
        note="no memory for it",
        applies=Applies.NEXT_MESSAGE,
    ),
    Optimisation(
        id="c",
        title="Third",
        summary="Cannot.",
        verdict=Verdict.NOT_SUPPORTED,
        note="needs another engine",
    ),
)
READY = EngineStatus(
    state=EngineState.READY, model_name="a model", context_tokens=8192, optimisations=SWITCHES
)


@asynccontextmanager
async def running(
    size: tuple[int, int] = (120, 40), theme: str = "ling-dark"
) -> AsyncIterator[tuple[LingChat, Pilot[None]]]:
    settings = Settings(theme=theme)
    app = LingChat(HostedEngine(lease=True), EngineSpec(), settings=settings, start=False)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.status = READY
        await pilot.pause()
        yield app, pilot


def text_of(row: SwitchRow) -> str:
    return "\n".join(str(each) for each in row.rows(40))


async def test_each_switch_shows_verdict_effect_and_note(home: Path) -> None:
    async with running() as (app, _):
        first, second, third = (text_of(row) for row in app.query(SwitchRow))
        assert "verified" in first
        assert "+72% prefill" in first
        assert "fell back" in second
        assert "no memory for it" in second
        assert third == "· Third\n  needs another engine"


async def test_the_focused_switch_says_when_it_applies_and_i_shows_its_proof(home: Path) -> None:
    async with running() as (app, pilot):
        await pilot.press("tab")
        first = app.query(SwitchRow).first()
        assert app.focused is first
        flat = " ".join(text_of(first).split())
        assert "Space switches it off; the engine restarts (took 21 s last time)." in flat
        await pilot.press("i")
        proof = text_of(first)
        for words in ("requested on", "resolved  Q8_0", "observed  all tensors", "290 Q8_0"):
            assert words in proof
        await pilot.press("down")
        assert "for the next message" in " ".join(text_of(app.query(SwitchRow)[1]).split())


async def test_a_switch_that_is_not_supported_does_nothing(home: Path) -> None:
    async with running() as (app, pilot):
        app.query(SwitchRow).last().focus()
        await pilot.press("space")
        await pilot.click(app.query(SwitchRow).last())
        assert app.wanted == {}
        assert app.spec.optimisations == {}


async def test_the_panel_gives_way_to_one_row_on_narrow_screens(home: Path) -> None:
    async with running((99, 30)) as (app, pilot):
        assert not app.screen.query_one("#panel").display
        status = app.screen.query_one("#status")
        assert status.display
        assert "ready" in str(status.render())
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert app.screen.query_one("#panel").display
        assert not status.display
        await pilot.press("f3")
        await pilot.pause()
        assert not app.screen.query_one("#panel").display
        assert status.display


async def test_a_starting_engine_shows_its_phase_share_and_time_left(home: Path) -> None:
    async with running() as (app, pilot):
        app.status = EngineStatus(
            state=EngineState.STARTING, phase="loading weights", fraction=0.6, eta_s=4.0
        )
        await pilot.pause()
        welcome = "\n".join(str(row) for row in app.screen.query_one(Welcome).rows(80))
        assert "loading weights 60%, 4.0 s left" in welcome
        assert "Just type." in welcome
        app.status = EngineStatus(
            state=EngineState.FAILED, reason="It broke.", cure="Mend it.", model_name="m"
        )
        await pilot.pause()
        welcome = "\n".join(str(row) for row in app.screen.query_one(Welcome).rows(80))
        assert "It broke." in welcome
        assert "Mend it." in welcome
        assert "F5" in welcome


async def test_f1_shows_the_keys_and_escape_comes_back_to_the_box(home: Path) -> None:
    async with running() as (app, pilot):
        await pilot.press("f1")
        assert isinstance(app.screen, KeysScreen)
        await pilot.press("escape")
        assert app.focused is app._chat.composer


async def test_the_palette_finds_switches_by_number_and_themes_by_name(home: Path) -> None:
    async with running() as (app, pilot):
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "1 Switch off: First" in titles
        assert "2 Switch off: Second" in titles
        assert not any("Third" in title for title in titles)
        assert {"New chat", "Quit", "Keep the engine running after quit", "Verify"} <= set(titles)
        await pilot.press("ctrl+p")
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*"ling-light")
        await pilot.pause(0.5)
        await pilot.press("enter", "enter")
        await pilot.pause(0.2)
        assert app.theme == "ling-light"
        assert load_settings().theme == "ling-light", "a theme is remembered"


async def test_the_users_own_theme_is_used_and_a_broken_one_is_told(home: Path) -> None:
    folder = paths.config_dir() / "themes"
    folder.mkdir()
    (folder / "mine.toml").write_text('name = "mine"\n[colors]\nprimary = "#ff00ff"\n')
    (folder / "bad.toml").write_text("name = 3")
    async with running(theme="mine") as (app, pilot):
        await pilot.pause(0.3)
        assert app.theme == "mine"
        assert any("bad.toml" in each.message for each in app._notifications)


async def test_the_footer_fits_eighty_columns(home: Path) -> None:
    async with running((80, 24)) as (app, _):
        keys = app.screen.query_one(Footer).children
        assert keys
        assert max(key.region.right for key in keys if key.display) <= 80


async def test_ctrl_c_asks_before_it_quits(home: Path) -> None:
    async with running() as (app, pilot):
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app.is_running
        assert any("again" in each.message for each in app._notifications)
        await pilot.press("ctrl+c")
        await pilot.pause(0.2)
        assert not app.is_running
