"""A long history: laid out as it comes into view, forgotten when it is far away, walked by key."""

from pilots import TranscriptApp, drawn

from app.tui.transcript.entries import Entry, Reply, UserEntry
from app.tui.transcript.stack import KEPT_ROWS

CODE = "```python\n" + "".join(f"x{n} = {n}\n" for n in range(150)) + "```"


def history(count: int) -> list[Entry]:
    entries: list[Entry] = []
    for n in range(count):
        entries.append(UserEntry(f"question {n}"))
        entries.append(Reply.stored(f"# Answer {n}\n\n" + "with some words " * 40 + "\n\n- a\n- b"))
    return entries


async def test_only_what_is_in_view_of_a_loaded_history_is_laid_out() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        entries = history(500)
        app.view.load(entries)
        await pilot.pause()
        assert drawn(app.view)[-1].strip() == "• b"
        folded = [entry for entry in entries if entry.is_folded]
        assert len(folded) > 490
        app.view.scroll_to(y=0, animate=False)
        await pilot.pause()
        assert "question 0" in drawn(app.view)[1]
        assert "Answer 0" in "\n".join(drawn(app.view))
        assert len([entry for entry in entries if entry.is_folded]) > 480


async def test_scrolling_up_a_row_moves_the_view_by_a_row_whatever_is_laid_out_above() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.load(history(30))
        await pilot.pause()
        for _ in range(70):
            before = drawn(app.view)
            app.view.scroll_relative(y=-1, animate=False)
            await pilot.pause()
            assert drawn(app.view)[1:] == before[:-1]


async def test_lines_that_nobody_looks_at_are_forgotten() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 50)) as pilot:
        app.view.load(history(700))
        for _ in range(150):
            app.view.scroll_relative(y=-50, animate=False)
            await pilot.pause()
        kept = sum(len(block.lines) for block in app.view.stack.blocks)
        assert 20 < kept <= KEPT_ROWS + 100
        assert app.view.stack.height > 2 * KEPT_ROWS
        app.view.scroll_end(animate=False)
        await pilot.pause()
        assert drawn(app.view)[-1].strip() == "• b"


async def test_what_was_said_long_ago_becomes_one_block_again_in_its_place() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 50)) as pilot:
        text = "\n\n".join(f"Paragraph {n}" for n in range(400))
        for number in range(30):
            reply = Reply()
            app.view.append(reply)
            reply.feed(f"Reply {number}.\n\n{text}")
            reply.finish()
            app.view.flush()
            await pilot.pause()
        replies = [entry for entry in app.view.entries if isinstance(entry, Reply)]
        folded = [reply for reply in replies if reply.is_folded]
        assert len(folded) > 10
        assert all(len(reply.blocks) == 1 for reply in folded)
        assert app.view.stack.height == sum(b.height for r in replies for b in r.blocks)
        app.view.scroll_to(y=0, animate=False)
        await pilot.pause()
        assert drawn(app.view)[1] == "  Reply 0."
        assert "  Paragraph 10" in drawn(app.view)


async def test_the_keyboard_marks_blocks_and_code_counts_as_one() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.load(
            [UserEntry("my question"), Reply.stored(f"Some **words**.\n\n{CODE}\n\n1. one\n2. two")]
        )
        await pilot.pause()
        cursor, found = app.view.cursor, []
        while cursor.move(-1):
            if not found or found[-1] != cursor.text:
                found.append(cursor.text)
        code = CODE.removeprefix("```python\n").removesuffix("\n```")
        assert found == ["2. two", "1. one", code, "Some **words**.", "my question"]
        marked = [row for row in drawn(app.view) if row.startswith("▌")]
        assert marked == ["▌ my question"]


async def test_a_block_taller_than_the_view_is_scrolled_through_before_the_next() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.load([Reply.stored(f"First.\n\n{CODE}\n\nLast.")])
        app.view.scroll_to(y=0, animate=False)
        await pilot.pause()
        assert app.view.cursor.move(1)
        assert app.view.cursor.text == "First."
        steps = 0
        while app.view.cursor.text != "Last.":
            assert app.view.cursor.move(1)
            await pilot.pause()
            steps += 1
        assert 5 < steps < 12
