"""The app with the real engine and the real small model, through Textual's Pilot."""

import os
import signal
from pathlib import Path

from pilots import drawn, replies, say, until
from textual import events

from app.core.chat.conversation import Conversation, Parameters
from app.core.shelf.counting import Counter
from app.tui.app import LingChat
from app.tui.panel.switches import SwitchRow
from app.tui.screens.engine import EngineScreen
from app.tui.transcript.entries import NoteEntry, Reply, UserEntry
from engine_bridge.contract import EngineSpec, EngineState, Verdict
from engine_bridge.host.client import HostedEngine

LONG = "Write a long story about a ship that crosses the ocean."


def new_app(spec: EngineSpec) -> LingChat:
    conversation = Conversation(parameters=Parameters(temperature=0.0))
    return LingChat(HostedEngine(lease=True), spec, conversation)


async def test_a_message_typed_while_the_engine_starts_is_answered_when_it_is_ready(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press(*"Say hi", "enter")
        assert app.status.state is not EngineState.READY
        asked = app._chat.transcript.entries[0]
        assert isinstance(asked, UserEntry)
        assert asked.waits == "sent when the engine is ready"
        await pilot.press(*"more")

        await until(pilot, lambda: replies(app) and replies(app)[0].is_done, "an answer")
        assert asked.waits == ""
        reply = replies(app)[0]
        assert reply.text.strip()
        assert reply.timings is not None
        assert reply.timings.by_engine
        assert app._chat.composer.text == "more", "what is being typed stays"
        await until(
            pilot, lambda: any("tok/s" in row for row in drawn(app._chat.transcript)), "its speed"
        )
        # Not the reply's own tokens: text is not always cut as it was made.
        messages = app.conversation.messages()
        counted = await Counter(None).prompt(messages, app.engine, app.conversation.thinking)
        await until(pilot, lambda: app.live.context_used == counted, "what the engine counts")
        assert app.status.phases, "the start's phases were seen"
        assert "tok/s" in "".join(str(row) for row in app.screen.query_one("#speed").rows(34))


async def test_escape_stops_the_reply_in_the_engine_too_and_ctrl_r_asks_again(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec)
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, LONG)
        await until(pilot, lambda: replies(app) and len(replies(app)[0].text) > 40, "some text")
        await pilot.press("escape")
        await until(pilot, lambda: replies(app)[0].is_done, "the end of the reply")
        stopped = replies(app)[0]
        assert stopped.reason == "Stopped."
        assert len(stopped.text) > 40
        assert app.conversation.turns[-1].finish_reason == "stopped"
        await until(pilot, lambda: app.status.load.running == 0, "an idle engine")
        await until(pilot, lambda: app.status.state is EngineState.READY, "a ready engine")

        await pilot.press("ctrl+r")
        await until(pilot, lambda: replies(app) and replies(app)[0].text, "a new answer")
        assert len(replies(app)) == 1
        assert replies(app)[0] is not stopped
        assert len(app.conversation.turns) == 2
        await pilot.press("escape")


async def test_two_messages_are_answered_in_order(host_home: Path, spec: EngineSpec) -> None:
    app = new_app(spec)
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, LONG)
        await say(pilot, app, "And now backwards.")
        await until(pilot, lambda: replies(app) and replies(app)[0].text, "the first answer")
        kinds = [type(entry) for entry in app._chat.transcript.entries]
        assert kinds == [UserEntry, Reply, UserEntry]
        await pilot.press("escape")
        await until(pilot, lambda: len(replies(app)) == 2 and replies(app)[1].text, "the second")
        kinds = [type(entry) for entry in app._chat.transcript.entries]
        assert kinds == [UserEntry, Reply, UserEntry, Reply]
        await pilot.press("escape")


async def test_the_death_of_the_engine_loses_nothing_and_f5_starts_it_again(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec)
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, LONG)
        await until(pilot, lambda: replies(app) and len(replies(app)[0].text) > 40, "some text")
        app._chat.composer.insert("half a thou")
        assert app.status.engine_pid
        os.kill(app.status.engine_pid, signal.SIGKILL)
        await until(pilot, lambda: replies(app)[0].is_done, "the end of the reply")
        await until(pilot, lambda: app.status.state is EngineState.FAILED, "the failure")
        broken = replies(app)[0]
        assert len(broken.text) > 40
        assert broken.reason
        assert "Ctrl+R" in broken.cure
        await pilot.pause(0.2)
        notes = [e for e in app._chat.transcript.entries if isinstance(e, NoteEntry)]
        assert len(notes) == 1
        assert "F5" in notes[0].cure
        assert app._chat.composer.text == "half a thou"

        await pilot.press("f5")
        await until(pilot, lambda: app.status.state is EngineState.READY, "a new engine")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: replies(app) and replies(app)[-1].text, "an answer")
        assert not replies(app)[-1].reason
        await pilot.press("escape")


async def test_a_switch_waits_for_the_running_reply_and_then_restarts_the_engine(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.status.state is EngineState.READY, "a ready engine")
        await until(pilot, lambda: app.query(SwitchRow), "the switches")
        await say(pilot, app, LONG)
        await until(pilot, lambda: replies(app) and replies(app)[0].text, "some text")
        row = next(r for r in app.query(SwitchRow) if "ram" in r.optimisation.title)
        was = row.optimisation.requested
        pid = app.status.engine_pid
        row.focus()
        await pilot.press("space")
        await pilot.pause(0.2)
        assert app.wanted == {row.optimisation.id: not was}
        assert "after this reply" in str(row.render())
        assert app.status.engine_pid == pid, "the reply goes on"

        await pilot.press("escape")
        await until(
            pilot,
            lambda: app.status.state is EngineState.READY and app.status.engine_pid != pid,
            "another engine",
        )
        switched = next(o for o in app.status.optimisations if o.id == row.optimisation.id)
        assert switched.requested is not was
        assert switched.verdict is (Verdict.OFF if was else switched.verdict)
        assert not app.wanted
        assert app.settings.engine.optimisations[row.optimisation.id] is not was


async def test_the_engine_screen_shows_its_proofs_and_its_log_and_restarts_it(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.status.state is EngineState.READY, "a ready engine")
        await pilot.press("f2")
        log = app.screen.query_one("#log")
        await until(pilot, lambda: log.line_count > 3, "lines of the log")
        facts = "\n".join(str(row) for row in app.screen.query_one("#engine-facts").rows(60))
        assert str(app.status.engine_pid) in facts
        rows = [line for each in app.screen.query(SwitchRow) for line in each.rows(60)]
        proofs = "\n".join(map(str, rows))
        for word in ("requested", "resolved", "observed", "verdict"):
            assert word in proofs
        pid = app.status.engine_pid
        await pilot.press("r")
        await until(
            pilot,
            lambda: app.status.state is EngineState.READY and app.status.engine_pid != pid,
            "another engine",
        )
        await pilot.press("s")
        await until(pilot, lambda: app.status.state is EngineState.STOPPED, "no engine")
        await pilot.press("escape")


async def test_an_engine_that_cannot_start_is_told_with_its_cure_and_keeps_the_message(
    host_home: Path, tmp_path: Path
) -> None:
    app = new_app(EngineSpec(model=str(tmp_path / "missing.gguf")))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: app.status.state is EngineState.FAILED, "the failure")
        await until(
            pilot,
            lambda: app._chat.transcript.entries[0].waits.startswith("kept until the engine"),
            "the message that waits",
        )
        assert "F5 starts it" in app._chat.transcript.entries[0].waits
        assert app.status.reason
        assert app.status.cure
        await pilot.press("escape")
        assert app._chat.composer.text == "hello", "Esc takes a waiting message back"


async def test_a_reply_stopped_while_its_prompt_is_read_is_over_when_the_engine_is_idle(
    host_home: Path, smol: Path
) -> None:
    app = new_app(EngineSpec(model=str(smol), context_tokens=8192))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.status.state is EngineState.READY, "a ready engine")
        app._chat.talk.say("The quick brown fox jumps over the lazy dog. " * 600)
        await until(pilot, lambda: app.live.prefill is not None, "the prompt being read")
        assert "left" not in replies(app)[0].activity, "the panel tells the time left"
        await until(pilot, lambda: app.status.state is EngineState.BUSY, "a busy engine")
        await pilot.press("escape")
        reply = replies(app)[0]
        await until(pilot, lambda: reply.activity == "stopping…", "the reply to be stopping")
        assert not reply.is_done
        await until(pilot, lambda: reply.is_done, "the end of the reply")
        assert reply.reason == "Stopped."
        assert app.status.state is EngineState.READY
        assert not app._chat.talk.is_running


async def test_a_switch_of_a_stopped_engine_is_applied_by_f5_and_its_outcome_told(
    host_home: Path, spec: EngineSpec
) -> None:
    app = new_app(spec)
    async with app.run_test(size=(80, 30)) as pilot:
        await until(pilot, lambda: app.status.state is EngineState.READY, "a ready engine")
        ngram = next(o for o in app.status.optimisations if "ram" in o.title)
        number = app.status.optimisations.index(ngram) + 1
        await pilot.press("f2", "s")
        await until(pilot, lambda: app.status.state is EngineState.STOPPED, "no engine")
        await pilot.press(str(number))
        await pilot.pause(0.3)
        assert app.wanted == {ngram.id: not ngram.requested}
        assert app.status.state is EngineState.STOPPED

        await pilot.press("f5")
        await until(pilot, lambda: app.status.state is EngineState.READY, "a new engine")
        switched = next(o for o in app.status.optimisations if o.id == ngram.id)
        assert switched.requested is not ngram.requested
        told = f"{ngram.title}: "
        await until(
            pilot,
            lambda: any(each.message.startswith(told) for each in app._notifications),
            "the outcome",
        )
        assert not app.wanted


async def test_f2_right_after_esc_opens_the_engine_again(host_home: Path, spec: EngineSpec) -> None:
    app = LingChat(HostedEngine(lease=True), spec, start=False)
    async with app.run_test(size=(100, 30)) as pilot:
        for opening in ("f2", "f1"):
            await pilot.press(opening)
            assert len(app.screen_stack) == 2
            for key in ("escape", "f2"):
                app.post_message(events.Key(key, None))
            await pilot.pause(0.2)
            assert isinstance(app.screen, EngineScreen)
            await pilot.press("escape")
            assert app.screen is app.chat
