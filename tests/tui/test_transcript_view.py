"""The transcript on the screen: following, scrolling, resizing, selecting, folding."""

from pilots import TranscriptApp, drawn
from textual.geometry import Offset
from textual.selection import Selection

from app.tui.transcript.entries import Reply, UserEntry
from app.tui.transcript.stack import Look

PARAGRAPHS = "\n\n".join(f"Paragraph {n} " + "with words " * 12 for n in range(200))


def reply_of(text: str) -> Reply:
    reply = Reply()
    reply.feed(text)
    reply.finish()
    return reply


async def test_it_follows_the_end_while_text_arrives() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        reply = Reply()
        app.view.append(reply)
        for n in range(50):
            reply.feed(f"line {n}\n\n")
            app.view.flush()
        await pilot.pause()
        assert drawn(app.view)[-1] == "  line 49"
        assert app.view.scroll_y == app.view.max_scroll_y


async def test_it_stays_where_the_user_scrolled_and_tells_that_there_is_more() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        reply = Reply()
        app.view.append(reply)
        reply.feed("\n\n".join(f"line {n}" for n in range(50)))
        app.view.flush()
        await pilot.pause()
        app.view.scroll_to(y=10, animate=False)
        await pilot.pause()
        before = drawn(app.view)
        reply.feed("\n\nmore\n\nand more")
        app.view.flush()
        await pilot.pause()
        assert drawn(app.view) == before
        assert app.view._is_behind
        app.view.scroll_end(animate=False)
        await pilot.pause()
        assert drawn(app.view)[-1] == "  and more"
        assert not app.view._is_behind
        reply.feed("\n\nlast")
        app.view.flush()
        await pilot.pause()
        assert drawn(app.view)[-1] == "  last"


async def test_what_is_shown_equals_the_rows_of_the_entries() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 30)) as pilot:
        user, reply = UserEntry("question"), reply_of("# One\n\ntwo\n\n- three")
        app.view.append(user)
        app.view.append(reply)
        await pilot.pause()
        look = app.view._look
        rows = [
            line.text.rstrip() for e in (user, reply) for b in e.blocks for line in b.painted(look)
        ]
        assert drawn(app.view)[: len(rows)] == rows


async def test_a_resize_keeps_the_end_in_view_and_redraws_all_in_the_background() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(100, 20)) as pilot:
        reply = reply_of(PARAGRAPHS)
        app.view.append(reply)
        await pilot.pause(0.3)
        await pilot.resize_terminal(40, 20)
        await pilot.pause()
        assert "Paragraph 199" in " ".join(drawn(app.view))
        for _ in range(200):
            await pilot.pause(0.02)
            if app.view._idle_timer is None:
                break
        look = app.view._look
        assert look.width == 39
        assert all(block.is_fresh(look) for block in reply.blocks)
        fresh = Look(39, look.palette)
        assert app.view.stack.height == sum(len(block._paint(fresh)) for block in reply.blocks)


async def test_a_resize_keeps_the_paragraph_that_was_being_read() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(100, 20)) as pilot:
        app.view.append(reply_of(PARAGRAPHS))
        await pilot.pause(0.5)
        app.view.scroll_to(y=app.view.max_scroll_y // 2, animate=False)
        await pilot.pause()
        first = next(row for row in drawn(app.view) if "Paragraph" in row).split()[1]
        await pilot.resize_terminal(50, 20)
        await pilot.pause(0.5)
        shown = [row.split()[1] for row in drawn(app.view) if "Paragraph" in row]
        assert min(abs(int(first) - int(number)) for number in shown) <= 1


async def test_a_selection_copies_what_was_written_and_is_shown() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(40, 20)) as pilot:
        text = "One sentence that is long enough to be wrapped here. 然后一句中文。"
        app.view.append(reply_of(text))
        await pilot.pause()
        app.screen.selections = {app.view: Selection(Offset(0, 0), Offset(40, 10))}
        await pilot.pause()
        assert app.screen.get_selected_text().strip() == text
        style = app.screen.get_component_rich_style("screen--selection")
        marked = [s.text for s in app.view.render_line(1) if s.style.bgcolor == style.bgcolor]
        assert "".join(marked) == "One sentence that is long enough to"


async def test_dragging_the_mouse_selects() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(40, 20)) as pilot:
        app.view.append(reply_of("alpha beta gamma"))
        await pilot.pause()
        await pilot.mouse_down(app.view, offset=(2, 1))
        await pilot.hover(app.view, offset=(7, 1))
        await pilot.mouse_up(app.view, offset=(7, 1))
        await pilot.pause()
        assert app.screen.get_selected_text() == "alpha"


async def test_a_click_opens_and_folds_the_thinking() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        reply = Reply()
        reply.feed_thinking("secret thought")
        reply.feed("answer")
        reply.finish()
        app.view.append(reply)
        await pilot.pause()
        row = next(y for y, text in enumerate(drawn(app.view)) if "thought for" in text)
        assert "  secret thought" not in drawn(app.view)
        await pilot.click(app.view, offset=(4, row))
        await pilot.pause()
        assert "  secret thought" in drawn(app.view)
        app.view.focus()
        await pilot.press("t")
        assert "  secret thought" not in drawn(app.view)


async def test_thinking_streams_while_it_is_open() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        reply = Reply()
        app.view.append(reply)
        reply.feed_thinking("one\n\n")
        reply.toggle_thinking()
        app.view.flush()
        reply.feed_thinking("two")
        app.view.flush()
        await pilot.pause()
        assert [row for row in drawn(app.view) if row in ("  one", "  two")] == ["  one", "  two"]


async def test_an_entry_put_in_between_stands_in_between() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 20)) as pilot:
        first, last = UserEntry("first"), UserEntry("last", waits="sent after this reply")
        app.view.append(first)
        app.view.append(last)
        reply = Reply()
        app.view.insert(1, reply)
        reply.feed("in between")
        app.view.flush()
        await pilot.pause()
        rows = "\n".join(drawn(app.view))
        assert rows.index("first") < rows.index("in between") < rows.index("last")
        app.view.take_away(reply)
        await pilot.pause()
        assert "in between" not in "\n".join(drawn(app.view))
