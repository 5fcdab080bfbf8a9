"""Documents with the real engine and the real small model: counted, warmed, cited, made to fit."""

import re
from pathlib import Path

from leases import lease
from pilots import drawn, replies, say, until
from textual.pilot import Pilot
from textual.widgets import OptionList

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.chat.prompt import document_prompt
from app.core.documents import Document
from app.core.sessions.store import SessionStore
from app.core.shelf.store import ShelfStore
from app.tui.app import LingChat
from app.tui.composer.chips import Chip
from app.tui.screens.budget import BudgetScreen
from app.tui.screens.preview import PreviewScreen
from app.tui.transcript.entries import Reply
from engine_bridge.contract import EngineSpec, EngineState
from engine_bridge.host.client import HostedEngine


def new_app(spec: EngineSpec, *documents: Document) -> LingChat:
    conversation = Conversation(parameters=Parameters(temperature=0.0, max_tokens=16))
    return LingChat(HostedEngine(lease=True), spec, conversation, documents)


def panel(app: LingChat) -> str:
    return "".join(str(row) for row in app.screen.query_one("#speed").rows(40))


async def test_a_document_is_counted_and_warmed_and_the_question_finds_it_read(
    host_home: Path, spec: EngineSpec
) -> None:
    document = lease(25)
    app = new_app(spec, document)
    async with app.run_test(size=(160, 40)) as pilot:
        desk = app._chat.desk
        await until(pilot, lambda: desk.rows()[0].tokens, "an exact count")
        row = desk.rows()[0]
        assert row.tokens is not None
        assert app.screen.query_one("#side").display, "a wide screen keeps the shelf open"
        await until(pilot, lambda: desk.rows()[0].warm == "warm", "a warm document")
        await until(pilot, lambda: "docs" in panel(app), "the context's parts")

        await say(pilot, app, "Who pays?")
        await until(pilot, lambda: replies(app) and replies(app)[0].is_done, "an answer")
        timings = replies(app)[0].timings
        assert timings is not None
        assert timings.cached_tokens is not None
        assert timings.cached_tokens >= row.tokens - 8, "what was warmed is not read again"
        assert timings.prompt_tokens is not None
        assert timings.prompt_tokens > row.tokens

        app._chat.composer.put("And when does the tenant pay?")
        warmer = desk.context.warmer
        assert warmer is not None
        await until(pilot, lambda: warmer.has_read("And when does the tenant pay?"), "words read")
        await pilot.press("enter")
        await until(pilot, lambda: len(replies(app)) == 2 and replies(app)[1].is_done, "an answer")
        timings = replies(app)[1].timings
        assert timings is not None
        assert timings.prompt_tokens is not None
        assert timings.cached_tokens == timings.prompt_tokens - 1, "only the last token is new"


async def test_a_chip_tells_how_far_it_is_read_and_escape_lets_the_engine_rest(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec.model_copy(update={"context_tokens": 4096}), lease(150))
    async with app.run_test(size=(100, 30)) as pilot:
        warmer = app._chat.desk.context

        def chip() -> str:
            return str(app.screen.query_one(Chip).render())

        await until(pilot, lambda: re.search(r"warming [1-9]\d?%", chip()), "how far it is read")
        assert app.screen.check_action("stop", ())
        await pilot.press("escape")
        assert not warmer.is_warming
        await until(pilot, lambda: app.status.state is EngineState.READY, "a resting engine")
        await pilot.pause(1.5)
        assert not warmer.is_warming
        assert not app.screen.check_action("stop", ())
        assert " tok " in chip()
        warmer.warm_again()
        await until(pilot, lambda: app._chat.desk.rows()[0].warm == "warm", "read on when asked")


async def test_what_is_too_long_is_asked_about_and_nothing_is_cut(
    host_home: Path, spec: EngineSpec
) -> None:
    long, short = lease(80, "long.txt"), lease(4, "short.txt")
    app = new_app(spec, short, long)
    async with app.run_test(size=(120, 40)) as pilot:
        await say(pilot, app, "Who pays?")
        await until(pilot, lambda: isinstance(app.screen, BudgetScreen), "the choice")
        assert app.conversation.turns == []
        figures = str(app.screen.query_one("#figures").render())
        assert "long.txt" in figures
        assert "too many" in figures
        assert "1,024" in str(app.screen.query_one("#reason").render())
        await pilot.press("escape")
        await until(pilot, lambda: app._chat.composer.text == "Who pays?", "the question again")
        assert app._chat.transcript.entries == []
        assert [each.title for each in app.conversation.documents] == ["short.txt", "long.txt"]

        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BudgetScreen), "the choice")
        await take_lines(pilot, app, "2-9")
        await until(pilot, lambda: replies(app) and replies(app)[0].is_done, "an answer")
        part = app.conversation.documents[1]
        assert part.text.startswith("Clause 2:")
        assert part.text.count("\n") == 8
        assert app.conversation.turns[0].text == "Who pays?"
        assert long.text.count("\n") == 80


async def take_lines(pilot: Pilot[None], app: LingChat, lines: str) -> None:
    choices = app.screen.query_one(OptionList)
    for index in range(choices.option_count):
        choices.highlighted = index
        if "take lines" in str(choices.get_option_at_index(index).prompt).lower():
            break
    await pilot.press("e", "ctrl+u", *lines, "enter")


async def test_a_citation_opens_its_place_and_an_invented_quote_is_flagged(home: Path) -> None:
    document = lease(120)
    app = LingChat(HostedEngine(lease=True), EngineSpec(), documents=[document], start=False)
    async with app.run_test(size=(100, 30)) as pilot:
        reply = Reply()
        reply.feed(
            "The rent is due [lease.txt l.90], and “the landlord shall never repair a thing”;"
            " see [lease.txt l.999]. It says “the tenant pays the rent on the first day”."
        )
        reply.finish()
        app._chat.transcript.append(reply)
        app._chat._show_middle()
        await app._chat.desk.trail.check(reply)
        await pilot.pause(0.1)
        view = app._chat.transcript
        rows = [view.render_line(y).text for y in range(view.size.height)]
        text = " ".join(" ".join(rows).split())
        assert "Sources: [lease.txt l.90]" in text
        assert "Not in the documents: “the landlord shall never repair a thing”" in text
        assert "[lease.txt l.999] is no place" in text
        assert "Not in the documents: “the tenant pays" not in text

        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen), "the preview")
        screen = app.screen
        assert isinstance(screen, PreviewScreen)
        view = screen._view
        await until(pilot, lambda: any("Clause 90:" in row for row in drawn(view)), "line 90")
        assert screen._view.found.needle.startswith("clause 90")
        await pilot.press("escape")

        row = next(y for y, row in enumerate(rows) if "[lease.txt l.90]" in row)
        column = rows[row].index("[lease.txt") + 3
        await pilot.click("#transcript", offset=(column, row))
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen), "the preview")


async def test_a_session_opened_again_says_the_same_of_its_sources(home: Path) -> None:
    document = lease(120)
    said = "The rent is due [lease.txt l.90]; “the landlord shall never repair a thing”."
    conversation = Conversation([Turn("user", "When?"), Turn("assistant", said)])
    conversation.turns[-1].finish_reason = "stop"
    conversation.attach(document)
    shelf, store = ShelfStore.open(), SessionStore.open()
    shelf.add(document)
    session = store.begin(conversation)
    session.close()
    store.close()
    shelf.close()

    app = LingChat(HostedEngine(lease=True), EngineSpec(), start=False)
    async with app.run_test(size=(100, 30)) as pilot:
        document_prompt.cache_clear()
        await app.sessions.resume(session.key)
        written = document_prompt.cache_info().misses
        app.conversation.messages()
        assert document_prompt.cache_info().misses == written == 1, "written in a thread"
        view = app._chat.transcript

        def shown() -> str:
            rows = [view.render_line(y).text for y in range(view.size.height)]
            return " ".join(" ".join(rows).split())

        await until(pilot, lambda: "Sources: [lease.txt l.90]" in shown(), "the sources")
        assert "Not in the documents: “the landlord shall never repair a thing”" in shown()
