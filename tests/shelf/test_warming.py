"""What is warm is what the engine says, token for token what a question starts with."""

import asyncio
from functools import partial

import httpx
from shelf_engine import prose, until, warming

from app.core.chat.conversation import Conversation, Parameters
from app.core.shelf.cached import Warm
from app.core.shelf.counting import Counter
from engine_bridge.chat import kept, tokens, warm
from engine_bridge.chat.events import Prefill
from engine_bridge.chat.flavour import LLAMA_SERVER
from engine_bridge.contract import EngineState
from engine_bridge.engine import wait_until_ready


def talk_about(*topics: str, sentences: int = 20) -> Conversation:
    talk = Conversation(system="Be brief.", parameters=Parameters(max_tokens=2, temperature=0))
    for topic in topics:
        talk.attach(prose(topic, sentences))
    talk.counter = Counter()
    return talk


def is_warm(warmer, talk) -> bool:
    return all(warmer.warmth(each.sha256).state is Warm.WARM for each in talk.documents)


async def timings_of(talk: Conversation, engine, question: str):
    async for _ in talk.ask(question, engine):
        pass
    return talk.turns[-1].timings


async def split(engine, text: str) -> list[int]:
    body = {"content": text, "add_special": True, "parse_special": True}
    at = engine.endpoint
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{at.base_url}/tokenize", json=body, headers=at.headers)
    return answer.json()["tokens"]


async def test_warm_prefix_is_what_the_question_starts_with_token_for_token(opened):
    talk = talk_about("Lamp", "Clock", sentences=5)
    async with opened() as engine, httpx.AsyncClient() as http:
        at = engine.endpoint
        prefix = await warm.prefix(at, LLAMA_SERVER, talk.messages(), http)
        for question in ("Where is lamp 3?", "日本語", "\nWhich?"):
            asked = talk.messages()
            whole = (*asked[:-1], warm.Message("user", asked[-1].content + question))
            rendered = await tokens.render(at, LLAMA_SERVER, whole, http)
            assert rendered.startswith(prefix)
            short, long = await split(engine, prefix), await split(engine, rendered)
            same = (
                next(i for i, token in enumerate(short) if token != long[i : i + 1][0])
                if short != long[: len(short)]
                else len(short)
            )
            assert len(short) - same <= 1  # the token at the seam, where a blank line joins it
        assert warm.MARK not in prefix


async def test_attached_document_becomes_warm_and_the_question_finds_it(opened):
    talk = talk_about("Table")
    async with opened() as engine, warming(engine, talk) as warmer:
        document = talk.documents[0].sha256
        assert warmer.warmth(document).state is Warm.COLD
        warmer.poke()
        await until(lambda: warmer.warmth(document).state is Warm.WARMING, "warming")
        await until(lambda: is_warm(warmer, talk), "warm")
        warmer.hold()
        found = await timings_of(talk, engine, "Where is table 3?")
        size = await talk.counter.document(talk.documents[0], engine)
        assert found.cached_tokens > size
        assert found.prompt_tokens - found.cached_tokens < 40
        warmer.release()
        assert is_warm(warmer, talk)


async def test_sending_stops_the_warm_up_at_once_and_nothing_of_it_is_lost(opened):
    talk = talk_about("Garden", sentences=45)
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.poke()
        document = talk.documents[0].sha256
        await until(lambda: 0.2 < warmer.warmth(document).share < 0.8, "a part is read")
        size = await talk.counter.document(talk.documents[0], engine)
        read = warmer.warmth(document).share * size
        warmer.hold()
        assert not warmer.is_warming
        found = await timings_of(talk, engine, "Where is garden 3?")
        assert found.cached_tokens >= read - 20
        assert found.cached_tokens < found.prompt_tokens - 64  # it was not read to the end
        warmer.release()


async def test_what_the_user_stops_rests_until_it_is_asked_for(opened):
    talk = talk_about("Orchard", sentences=60)
    async with opened() as engine, warming(engine, talk) as warmer:
        assert not warmer.stop()
        warmer.poke()
        document = talk.documents[0].sha256
        await until(lambda: 0.1 < warmer.warmth(document).share < 0.8, "a part is read")
        assert warmer.stop()
        await until(lambda: engine.status.state is EngineState.READY, "a resting engine")
        warmer.poke()
        await asyncio.sleep(1.5)  # it says that it is ready once a second
        assert not warmer.is_warming
        assert warmer.warmth(document).share < 1
        warmer.warm_now()
        await until(lambda: is_warm(warmer, talk), "read on when asked")


async def test_second_document_warms_what_is_new_and_the_first_stays(opened):
    talk = talk_about("Door")
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.poke()
        await until(lambda: is_warm(warmer, talk), "warm")
        talk.attach(prose("Window", 20))
        warmer.poke()
        first, second = (each.sha256 for each in talk.documents)
        assert warmer.warmth(first).state is Warm.WARM
        assert warmer.warmth(second).state is not Warm.WARM
        await until(lambda: is_warm(warmer, talk), "both warm")
        del talk.documents[0]
        warmer.poke()
        assert warmer.warmth(second).state is not Warm.WARM  # it stands elsewhere now


async def test_other_conversation_is_cold_and_coming_back_costs_nothing(opened):
    one, other = talk_about("River"), talk_about("Hill")
    current = [one]
    async with opened() as engine:
        from app.core.shelf.warming import Warmer

        warmer = Warmer(engine, lambda: current[0], Counter())
        running = asyncio.create_task(warmer.run())
        try:
            warmer.poke()
            await until(lambda: is_warm(warmer, one), "the first is warm")
            current[0] = other
            warmer.poke()
            assert warmer.warmth(other.documents[0].sha256).state is not Warm.WARM
            await until(lambda: is_warm(warmer, other), "the other is warm")
            found = await timings_of(one, engine, "Where is river 3?")
            size = await one.counter.document(one.documents[0], engine)
            assert found.cached_tokens > size  # kept in memory beside the other one
        finally:
            running.cancel()


async def test_restart_is_cold_and_what_was_kept_comes_back_without_computing(opened, own_spec):
    talk = talk_about("Library")
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.poke()
        await until(lambda: is_warm(warmer, talk), "warm")
        await until(lambda: not warmer.is_warming, "kept")
        assert talk.documents[0].sha256 in kept.entries()[0].documents
        await engine.stop()
        await until(lambda: engine.status.state is EngineState.STOPPED, "stopped")
        await engine.start(own_spec)
        await wait_until_ready(engine)
        await until(lambda: is_warm(warmer, talk), "warm again")
        found = await timings_of(talk, engine, "Where is library 3?")
        assert found.prompt_tokens - found.cached_tokens < 40
        assert await prompt_tokens_read(engine) < 100  # by the engine's own count since its start


async def test_restart_without_a_kept_file_is_warmed_only_when_asked(opened, own_spec):
    talk = talk_about("Harbour")
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.poke()
        await until(lambda: is_warm(warmer, talk), "warm")
        await until(lambda: not warmer.is_warming, "kept")
        assert kept.forget(talk.documents[0].sha256) == 1
        await engine.stop()
        await engine.start(own_spec)
        await wait_until_ready(engine)
        await until(lambda: bool(warmer.problem), "it is told")
        document = talk.documents[0].sha256
        assert warmer.warmth(document).state is Warm.COLD
        assert await prompt_tokens_read(engine) < 100
        warmer.warm_now()
        await until(lambda: is_warm(warmer, talk), "warm again")


async def test_damaged_kept_file_is_deleted_and_never_given_to_the_engine(opened, own_spec):
    talk = talk_about("Tower")
    async with opened() as engine:
        await timings_of(talk, engine, "Where is tower 3?")
        from engine_bridge import paths

        entry = next(e for e in kept.entries() if talk.documents[0].sha256 in e.documents)
        file = paths.kv_dir() / f"{entry.name}.kv"
        file.write_bytes(file.read_bytes()[:100_000])
        await engine.stop()
        await engine.start(own_spec)
        await wait_until_ready(engine)
        pid = engine.status.engine_pid
        talk.turns.clear()
        found = await timings_of(talk, engine, "Where is tower 4?")
        assert found.cached_tokens < 100
        assert engine.status.engine_pid == pid
        again = next(e for e in kept.entries() if talk.documents[0].sha256 in e.documents)
        assert file.stat().st_size == again.bytes > 100_000  # kept anew


def test_kept_files_make_room_for_new_ones(home):
    from engine_bridge import paths

    for n in range(4):
        (paths.kv_dir() / f"new-{n}.kv").write_bytes(b"x" * 1000)
        assert kept._take_in(f"new-{n}.kv", f"name{n}", 300, (f"doc{n}",), 2500)
    assert {each.documents for each in kept.entries()} == {("doc2",), ("doc3",)}
    assert kept.total_bytes() == 2000
    assert {file.suffix for file in paths.kv_dir().iterdir()} == {".kv", ".json"}
    assert kept.forget("doc3") == 1
    assert kept.forget() == 1
    assert not list(paths.kv_dir().iterdir())


async def test_server_of_others_is_not_warmed_unasked(opened, monkeypatch):
    from engine_bridge.backends.attach import AttachedEngine
    from engine_bridge.contract import EngineSpec

    talk = talk_about("Bridge", sentences=12)
    async with opened() as ours:
        monkeypatch.setenv("LING_CHAT_API_KEY", ours.endpoint.api_key)
        spec = EngineSpec(backend="attach", url=ours.endpoint.base_url)
        engine = await AttachedEngine.open(spec)
        try:
            await engine.start(spec)
            await wait_until_ready(engine)
            before = await prompt_tokens_read(ours)
            async with warming(engine, talk) as warmer:
                warmer.poke()
                await asyncio.sleep(1.5)
                assert warmer.warmth(talk.documents[0].sha256).state is Warm.COLD
                assert await prompt_tokens_read(ours) == before
                warmer.attached = True
                warmer.poke()
                await until(lambda: is_warm(warmer, talk), "warm when asked")
        finally:
            await engine.close()


async def test_prefill_of_a_question_tells_how_long_it_takes_and_ttft_is_split(opened):
    talk = talk_about("Forest")
    seen = []
    async with opened() as engine:
        async for event in talk.ask("Where is forest 3?", engine):
            seen.append(event)
    reading = [event for event in seen if isinstance(event, Prefill)]
    assert all(event.eta_s is not None for event in reading[1:])
    assert reading[-1].eta_s == 0
    found = talk.turns[-1].timings
    parts = found.queue_s + found.prefill_s + found.first_token_s
    assert found.prefill_s > found.queue_s
    assert abs(parts - found.ttft_s) < 0.02 + 0.02 * found.ttft_s


async def prompt_tokens_read(engine) -> float:
    """The engine's own count of prompt tokens it had to compute."""
    at = engine.endpoint
    async with httpx.AsyncClient() as http:
        text = (await http.get(f"{at.base_url}/metrics", headers=at.headers)).text
    row = next(row for row in text.splitlines() if row.startswith("llamacpp:prompt_tokens_total "))
    return float(row.split()[1])


async def test_after_an_answer_only_the_words_of_the_next_question_are_new(opened):
    talk = talk_about("Bridge")
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.hold()
        async with asyncio.timeout(60):
            async for event in talk.ask("Where is bridge 3?", engine):
                warmer.take(event)
        warmer.release()
        assert is_warm(warmer, talk)
        await until(lambda: warmer.is_warming, "the end of the answer is read")
        await until(lambda: not warmer.is_warming, "it was read")
        warmer.poke()
        await asyncio.sleep(0.2)
        assert not warmer.is_warming  # nothing is left to read
        warmer.hold()
        question = "And where is bridge number 5?"
        found = await timings_of(talk, engine, question)
        words = await talk.counter.text(question, engine)
        closing = await split(engine, "<|im_end|>\n<|im_start|>assistant\n")
        assert found.prompt_tokens - found.cached_tokens <= words + len(closing)
        warmer.release()


async def test_typed_words_are_read_while_the_user_rests_and_others_cost_only_themselves(opened):
    talk = talk_about("Church")
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.poke()
        await until(lambda: is_warm(warmer, talk) and not warmer.is_warming, "warm")
        for typed in ("Where is chur", "Where is church number 3 kept?"):
            warmer.typed(typed)
            await until(partial(warmer.has_read, typed), "the words are read")
        warmer.hold()
        found = await timings_of(talk, engine, "Where is church number 3 kept?")
        assert found.prompt_tokens - found.cached_tokens == 1
        warmer.release()
        assert is_warm(warmer, talk)


async def test_words_being_read_stop_when_they_change_and_are_not_kept_on_disk(opened):
    talk = talk_about("Mill")
    async with opened() as engine, warming(engine, talk) as warmer:
        warmer.poke()
        await until(lambda: is_warm(warmer, talk) and not warmer.is_warming, "warm")
        before = kept.entries()
        warmer.typed("How many mills " + "and their millers " * 60)
        await until(lambda: warmer.is_warming, "the words are read")
        warmer.typed("")
        assert not warmer.is_warming
        warmer.with_words = False
        warmer.typed("How many mills?")
        await asyncio.sleep(0.2)
        assert not warmer.is_warming
        assert kept.entries() == before
