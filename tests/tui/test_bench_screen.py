"""The bench screen with the real engine: run, watch, stop, history, compare, export."""

import csv
from pathlib import Path

import pytest
from pilots import until

from app.bench import menu as bench_menu
from app.core.chat.conversation import Conversation
from app.tui.app import LingChat
from app.tui.screens.bench import BenchScreen
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine


def text_of(screen, name):
    return str(screen.query_one(name).render())


async def test_a_benchmark_is_picked_run_stopped_compared_and_exported(
    host_home: Path, spec: EngineSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_menu, "SHORT", (64, 24))
    app = LingChat(HostedEngine(lease=True), spec, Conversation())
    async with app.run_test(size=(110, 36)) as pilot:
        await until(pilot, lambda: app.engine.endpoint, "an engine")
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.screen, BenchScreen), "the screen")
        screen = app.screen
        assert isinstance(screen, BenchScreen)
        await until(
            pilot, lambda: "Nothing was measured" in text_of(screen, "#result-text"), "ready"
        )
        ids = [screen._menu.get_option_at_index(at).id for at in range(screen._menu.option_count)]
        assert {"synthetic-64-24", "roofline", "ab-ngram-rewrite", "lossless-ngram"} <= set(ids)
        assert "synthetic-32768-2048" not in ids, "longer than the context"

        # Stopped in the middle: nothing is left half-written, and the screen says so.
        await pilot.press("enter")
        await until(pilot, lambda: screen.is_measuring, "a run")
        await pilot.press("s")
        await until(pilot, lambda: "Stopped" in text_of(screen, "#now"), "its end")
        assert not screen._points

        for count in (1, 2):
            await pilot.press("enter")
            await until(pilot, lambda n=count: len(screen._points) == n, f"result {count}")
        assert "Done" in text_of(screen, "#now")
        assert "time per output token" in text_of(screen, "#result-text")
        await until(pilot, lambda: "●" in text_of(screen, "#plot"), "the plot")

        await pilot.press("tab", "space", "down", "space", "c")
        await until(pilot, lambda: "B/A" in text_of(screen, "#result-text"), "the comparison")
        await pilot.pause(0.2)
        shown = text_of(screen, "#result-text")
        assert "B/A" in shown, "the bar's own run does not come after it"
        assert "decode tokens/s" in shown
        await pilot.press("up", "down")
        await until(pilot, lambda: "B/A" not in text_of(screen, "#result-text"), "a run again")

        await pilot.press("e")
        folder = host_home / "data" / "ling-chat"
        await until(pilot, (folder / "benchmarks.csv").exists, "the export")
        rows = list(csv.DictReader((folder / "benchmarks.csv").open()))
        assert len(rows) == 2
        assert (folder / "benchmarks.md").read_text().startswith("# Benchmarks")

        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app._chat, "the conversation")
