"""How documents look: the shelf beside an answer with its sources; the choice when too long."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from leases import lease
from stills import STATUS, TIMINGS
from textual.pilot import Pilot

from app.core.context.budget import Budget, Share
from app.core.context.fitting import BiggerContext, DropDocument, DropTurns, TakePart
from app.core.documents import Progress, document_from_bytes
from app.core.settings.file import Settings
from app.tui.app import LingChat
from app.tui.glyphs import UNICODE
from app.tui.screens.budget import BudgetScreen
from app.tui.shelf.reading import Reading
from app.tui.shelf.rows import Row
from app.tui.transcript.entries import Reply, UserEntry
from engine_bridge.contract import EngineSpec
from engine_bridge.host.client import HostedEngine

ANSWER = (
    "The rent is due on the first day [lease.txt l.90], and “the landlord shall never repair a"
    " thing”; see [租赁合同.docx l.40]."
)


def new_app(theme: str = "ling-dark") -> LingChat:
    other = document_from_bytes("第一条 租金 \n".encode() * 900, "租赁合同.docx")
    engine, settings = HostedEngine(lease=True), Settings()
    settings.only_now("appearance.theme", theme)
    return LingChat(
        engine,
        EngineSpec(),
        documents=[lease(120), other],
        settings=settings,
        glyphs=UNICODE,
        start=False,
    )


async def fill(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, LingChat)
    chat = app._chat
    chat.composer.cursor_blink = False
    await pilot.pause(0.2)
    first, second = app.conversation.documents
    rows = [Row(first, 9000, 32_768, "warm", 1.0), Row(second, 4000, 32_768, "warming", 0.4, 6.0)]
    chat.desk.rows = lambda: rows  # type: ignore[method-assign]
    reading = Reading("reports/annual report.pdf", lambda: None)
    reading.progress = Progress("reading", 12, 48)
    chat.desk._readings.append(reading)
    reply = Reply()
    reply.feed(ANSWER)
    reply.finish(replace(TIMINGS, queue_s=0.01, prefill_s=0.6, first_token_s=0.16))
    app.status = STATUS
    app.live.end(TIMINGS)
    shares = (Share(first.sha256, "lease.txt", 9000), Share(second.sha256, "租赁合同.docx", 4000))
    app.live.budget = Budget(14_200, "exact", 32_768, 1024, shares, 1200)
    chat.transcript.append(UserEntry("Who pays, see [pasted: 214 lines #1]?"))
    chat.transcript.append(reply)
    chat._show_middle()
    await chat.desk.trail.check(reply)
    await chat.desk.show()
    await pilot.pause(0.3)


def test_a_wide_screen(home: Path, snap_compare: Any) -> None:
    assert snap_compare(new_app(), terminal_size=(160, 30), run_before=fill)


def test_the_choice_when_too_long(home: Path, snap_compare: Any) -> None:
    async def choose(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, LingChat)
        app._chat.composer.cursor_blink = False
        shares = (Share("a", "report.pdf", 61_204), Share("b", "租赁合同.docx", 9870))
        choices = (
            DropDocument("a", "report.pdf", 61_204, True),
            TakePart("a", "report.pdf", "pages", 1, 41, 48, 52_000),
            BiggerContext(73_728),
            DropTurns(4, 700, False),
        )
        budget = Budget(71_930, "exact", 65_536, 1024, shares, 700, 20, choices)
        await app.push_screen(BudgetScreen(budget, app.glyphs))
        await pilot.pause(0.2)

    assert snap_compare(new_app("ling-light"), terminal_size=(80, 24), run_before=choose)
