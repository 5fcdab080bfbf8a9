"""What fits is sent, what does not is refused with figures and choices that hold what they say."""

import pytest
from shelf_engine import prose

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.context import budget, fitting, parts
from app.core.context.budget import Budget, TooLongError, plan
from app.core.context.fitting import BiggerContext, BiggerModel, DropDocument, DropTurns, TakePart
from app.core.shelf.counting import Counter


def choice(found: budget.Budget, kind: type):
    return next(each for each in found.choices if isinstance(each, kind))


async def test_budget_is_what_the_engine_counts_and_says_who_takes_what(opened):
    talk = Conversation(system="Be brief.", parameters=Parameters(max_tokens=100))
    lamp, clock = prose("Lamp", 30), prose("Clock", 10)
    talk.attach(lamp)
    talk.attach(clock)
    counter = Counter()
    async with opened() as engine:
        found = await plan(talk, engine, counter, "Where is lamp 3?")
        talk.turns.append(Turn("user", "Where is lamp 3?"))
        exact = await counter.prompt(talk.messages(), engine)
        assert (found.prompt_tokens, found.how) == (exact, "exact")
        assert found.context_tokens == 2048
        assert found.reserve_tokens == 100
        assert [each.title for each in found.documents] == ["Lamp.txt", "Clock.txt"]
        for share, document in zip(found.documents, (lamp, clock), strict=True):
            assert share.tokens == await counter.document(document, engine)
        assert found.fits


async def test_sum_of_counted_parts_is_near_enough_for_the_limit(opened):
    """The slack must cover whatever stands at the seams."""
    counter = Counter()
    async with opened() as engine:
        for question in ("What?", "\n\n  Which one?", "日本語は？", "🙂" * 40, "a" * 300, "."):
            talk = Conversation()
            talk.attach(prose("Chair", 5))
            await plan(talk, engine, counter)  # as the app does when it was attached
            found = await plan(talk, engine, counter, question)
            assert found.how == "sum"
            talk.turns.append(Turn("user", question))
            exact = await counter.prompt(talk.messages(), engine)
            assert abs(found.prompt_tokens - exact) <= budget.SLACK_TOKENS // 2


async def test_whether_it_fits_is_decided_to_the_token(opened):
    """At the limit an exact count decides: what is let through the engine takes."""
    counter, talk = Counter(), Conversation(parameters=Parameters(max_tokens=16, temperature=0))
    talk.counter = counter
    async with opened() as engine:
        low, high = 1, 2048  # words of the longest question that fits, and one that does not
        while high - low > 1:
            middle = (low + high) // 2
            fits = (await plan(talk, engine, counter, "word " * middle)).fits
            low, high = (middle, high) if fits else (low, middle)
        last = await plan(talk, engine, counter, "word " * low)
        assert last.prompt_tokens + 16 <= 2048 < last.prompt_tokens + 16 + 4
        with pytest.raises(TooLongError):
            await budget.check(talk, engine, counter, "word " * high)


async def test_too_long_is_told_in_figures_and_nothing_is_asked(opened):
    talk = Conversation(parameters=Parameters(max_tokens=64))
    talk.attach(prose("Lamp", 60))
    talk.attach(prose("Clock", 120))
    async with opened() as engine:
        with pytest.raises(TooLongError, match=r"has [\d,]+ tokens.*context of 2,048") as told:
            async for _ in talk.ask("Where?", engine):
                pass
    assert "eave out" in told.value.cure
    assert "--context" in told.value.cure
    assert not talk.turns
    assert len(talk.documents) == 2


async def test_each_choice_frees_what_it_says(opened):
    counter = Counter()

    async def too_long(engine) -> tuple[Conversation, budget.Budget]:
        talk = Conversation(parameters=Parameters(max_tokens=64))
        talk.attach(prose("Lamp", 60))
        talk.attach(prose("Clock", 90))
        talk.turns = [Turn("user", "Hello?"), Turn("assistant", "Yes. " * 200)]
        return talk, await plan(talk, engine, counter, "Where?")

    async with opened() as engine:
        talk, found = await too_long(engine)
        assert found.over_tokens > 0
        for kind in (DropDocument, TakePart, BiggerContext):
            assert choice(found, kind).suffices
        for each in found.choices:
            talk, before = await too_long(engine)
            if not fitting.apply(each, talk):
                assert isinstance(each, BiggerContext)
                assert each.tokens >= before.prompt_tokens + before.reserve_tokens
                continue
            after = await plan(talk, engine, counter, "Where?")
            assert after.fits == each.suffices
            if isinstance(each, DropDocument | DropTurns):
                freed = before.prompt_tokens - after.prompt_tokens
                assert freed == pytest.approx(each.frees_tokens, abs=30)


async def test_dropped_turns_stay_in_the_conversation_and_leave_the_prompt(opened):
    talk = Conversation(parameters=Parameters(max_tokens=64))
    old = [Turn("user", "First?"), Turn("assistant", "Long. " * 900)]
    talk.turns = [*old, Turn("user", "Second?"), Turn("assistant", "Short.")]
    counter = Counter()
    async with opened() as engine:
        found = await plan(talk, engine, counter, "Third? " * 200)
        drop = choice(found, DropTurns)
        assert drop.turns == 2
        assert fitting.apply(drop, talk)
        assert (await plan(talk, engine, counter, "Third? " * 200)).fits
    assert [message.content for message in talk.messages()] == ["Second?", "Short."]
    assert talk.turns[:2] == old


def test_cure_names_one_model_that_is_large_enough():
    models = tuple(BiggerModel(name, name, 1 << 17) for name in ("one", "two", "three"))
    drop = DropDocument("a", "a.txt", 9000, suffices=True)
    _reason, cure = fitting.sentences(Budget(9000, "exact", 4096, 1024, choices=(drop, *models)))
    assert cure.count("--model") == 1
    assert "--model one" in cure
    assert "a.txt" in cure


def test_part_of_a_document_keeps_its_page_and_line_numbers():
    from dataclasses import replace

    from app.core.chat.prompt import document_prompt

    plain = prose("Lamp", 200)
    lines = parts.part(plain, 101, 150)
    assert lines.text.startswith("Lamp number 100 ")
    assert lines.text.rstrip().endswith(plain.text.split("\n")[149])
    assert lines.sha256 not in (plain.sha256, parts.part(plain, 101, 149).sha256)
    assert "[l.1]" not in document_prompt(lines)
    starts = tuple(plain.text.index(f"Lamp number {n} ") for n in (0, 50, 100, 150))
    paged = replace(plain, pages=starts)
    pages = parts.part(paged, 2, 3)
    assert pages.text == plain.text[starts[1] : starts[3]]
    assert "[p.2]" in document_prompt(pages)
    assert "[p.3]" in document_prompt(pages)
    assert "[p.1]" not in document_prompt(pages)
    again = parts.part(pages, 2, 2)
    assert "[p.3]" in document_prompt(again)
    assert again.text == plain.text[starts[2] : starts[3]]
