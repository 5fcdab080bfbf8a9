"""The panel, the palette and the other screens, fed with fixed statuses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pilots import until
from rich.cells import cell_len
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Footer, Static
from textual.widgets._footer import FooterKey

from app.core.settings.file import Settings
from app.core.settings.file import load as load_settings
from app.tui.app import LingChat
from app.tui.engine_app import TOLD_AFTER_S
from app.tui.panel.rows import labelled
from app.tui.panel.switches import SwitchRow, proof
from app.tui.screens.engine import EngineScreen
from app.tui.screens.keys import KeysScreen
from app.tui.screens.welcome import Welcome
from engine_bridge import paths
from engine_bridge.chat.events import Timings
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
        second = " ".join(text_of(app.query(SwitchRow)[1]).split())
        assert "it applies to the next message." in second


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
    async with running((80, 24)) as (app, pilot):
        await pilot.press("f1")
        assert isinstance(app.screen, KeysScreen)
        await until(pilot, lambda: app.screen.query(".keys"), "the keys")
        await pilot.pause()
        rows = [row for each in app.screen.query(".keys") for row in str(each.render()).split("\n")]
        assert any(row.strip() == "back" and row.startswith(" " * 20) for row in rows)
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
        assert load_settings().appearance.theme == "ling-light", "a theme is remembered"


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


def row_of(app: LingChat) -> str:
    return str(app.screen.query_one("#status").render())


async def test_on_narrow_screens_the_engines_state_comes_before_the_last_replys_figures(
    home: Path,
) -> None:
    async with running((80, 24)) as (app, pilot):
        app.live.end(Timings(decode_tokens_per_s=15.4, completion_tokens=20))
        await pilot.pause()
        assert "15.4 tok/s" in row_of(app)
        shown = [
            (EngineStatus(), "stopped · F5 starts it"),
            (
                EngineStatus(state=EngineState.FAILED, reason="Broke."),
                "failed · F5 starts it again",
            ),
            (EngineStatus(state=EngineState.FAILED, remedy={"a": False}), "F6 does what helps"),
            (EngineStatus(state=EngineState.STOPPING), "stopping"),
            (
                EngineStatus(
                    state=EngineState.STARTING,
                    phase="downloading Some-Very-Long-Name-Of-A-Model · 12 MB/s · official hub",
                    fraction=0.45,
                    eta_s=80.0,
                ),
                "45%, 1 min 20 s left  downloading",
            ),
        ]
        for status, words in shown:
            app.status = status
            await pilot.pause()
            assert words in row_of(app)
            assert "tok/s" not in row_of(app)
            assert cell_len(row_of(app)) <= 80


async def test_a_stopped_engine_keeps_its_switches_for_the_next_start(home: Path) -> None:
    async with running() as (app, pilot):
        app.status = EngineStatus(spec=EngineSpec())
        await pilot.pause()
        commands = {each.title: each for each in app.get_system_commands(app.screen)}
        command = commands["1 Switch off: First"]
        assert "next start" in command.help
        command.callback()
        await pilot.pause()
        assert app.wanted == {"a": False}
        assert app.spec.optimisations == {}, "nothing is started by it"
        row = app.query(SwitchRow).first()
        assert "switches off at the next start" in text_of(row)
        assert "1 Switch on: First" in [c.title for c in app.get_system_commands(app.screen)]
        welcome = "\n".join(str(row) for row in app.screen.query_one(Welcome).rows(80))
        assert "F5 starts it" in welcome
        starts: list[EngineSpec] = []
        app.use_spec = starts.append  # type: ignore[method-assign]
        app.action_start_engine()
        assert [spec.optimisations for spec in starts] == [{"a": False}]
        assert app.wanted == {}


async def test_the_outcome_of_a_switch_is_told_once_with_its_effect(home: Path) -> None:
    async with running() as (app, pilot):
        app._switched = {"a": True, "b": False}
        app.status = READY.model_copy(update={"state": EngineState.BUSY})
        await pilot.pause(TOLD_AFTER_S + 0.2)
        app.status = READY
        await pilot.pause(TOLD_AFTER_S + 0.2)
        assert [each.message for each in app._notifications] == ["First: verified, +72% prefill"]
        assert app._switched == {"b": False}, "the engine does not have this one off yet"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_engine_screen_switches_by_number_and_by_the_focused_row(
    home: Path, size: tuple[int, int]
) -> None:
    async with running(size) as (app, pilot):
        starts: list[EngineSpec] = []
        app.use_spec = starts.append  # type: ignore[method-assign]
        await pilot.press("f2")
        await pilot.pause()
        rows = app.screen.query(SwitchRow)
        first, second, third = (text_of(row) for row in rows)
        assert first.startswith("● 1 First")
        assert second.startswith("! 2 Second")
        assert "290 Q8_0" in first, "the proof is shown"
        assert third.startswith("· Third"), "no key does nothing"
        await pilot.press("2", "3", "9")
        await pilot.pause()
        assert [spec.optimisations for spec in starts] == [{"b": False}]
        rows.first().focus()
        await pilot.press("space")
        await pilot.pause()
        assert starts[-1].optimisations["a"] is False


async def test_page_down_on_the_engine_screen_scrolls_the_details(home: Path) -> None:
    async with running((80, 24)) as (app, pilot):
        await pilot.press("f2")
        await pilot.pause()
        facts = app.screen.query_one("#facts")
        assert app.focused is facts
        await pilot.press("pagedown")
        await pilot.pause(0.5)
        assert facts.scroll_y > 0
        keys = app.screen.query(FooterKey)
        assert "PgDn" in [key.key_display for key in keys]
        assert max(key.region.right for key in keys) <= 80


def test_the_proof_reads_as_people_say_it_and_leaves_out_what_was_not_asked_for() -> None:
    switch = SWITCHES[0].model_copy(
        update={
            "evidence": {
                "slots.speculative": True,
                "draft_rounds": 18.0,
                "accept_length": 2.5,
                "layers_bytes": {"Q5_0": 173_000_000, "Q6_K": 43_000_000},
                "trial": {"as shipped": {"in": 21.5, "out": 4.25}},
            }
        }
    )
    assert dict(proof(switch)) | {
        "slots speculative": "yes",
        "draft rounds": "18",
        "accept length": "2.50",
        "layers": "Q5_0 173 MB, Q6_K 43 MB",
        "trial": "as shipped: 21.5 s for 2,048 tokens in, 4.2 s for 128 out",
    } == dict(proof(switch))
    off = SWITCHES[2]
    assert not any("not yet" in words for _, words in proof(off))
    assert ("observed", "not yet") in proof(SWITCHES[1])
    long = str(labelled("slots speculative", "yes", 40, column=10)[0])
    assert long == "slots speculative yes"


async def test_f1_on_the_engine_screen_begins_with_its_keys_and_f2_goes_back(home: Path) -> None:
    async with running() as (app, pilot):
        for screen, title in ((app.screen, "Writing"), (None, "Engine screen")):
            if screen is None:
                await pilot.press("f2")
            await pilot.press("f1")
            await pilot.pause()
            assert str(app.screen.query(".title").first(Static).render()) == title
            await pilot.press("escape")
        assert isinstance(app.screen, EngineScreen)
        await pilot.press("f2")
        assert app.screen is app._chat


async def test_the_theme_in_use_is_marked_in_the_palette(home: Path) -> None:
    async with running(theme="ling-light") as (app, _):
        marked = [c.title for c in app.get_system_commands(app.screen) if "in use" in c.help]
        assert marked == ["Theme: ling-light"]


async def test_the_footer_writes_keys_in_one_way(home: Path) -> None:
    async with running() as (app, _):
        shown = {key.key_display for key in app.screen.query(FooterKey)}
        assert {"F1", "F2", "^j", "^p"} <= shown
