"""Token counts are the engine's own, and asked for once."""

import httpx
import pytest
from shelf_engine import prose

from app.core.chat.conversation import Conversation, Parameters
from app.core.chat.prompt import document_prompt
from app.core.shelf.counting import Counter, estimated_tokens
from app.core.shelf.store import ShelfStore
from engine_bridge.chat import tokens


def by_engine(engine, text: str) -> list[int]:
    """What the engine makes of a text, by its own word."""
    body = {"content": text, "add_special": False, "parse_special": True}
    at = engine.endpoint
    answer = httpx.post(f"{at.base_url}/tokenize", json=body, headers=at.headers, timeout=60)
    return answer.json()["tokens"]


@pytest.mark.parametrize("text", ["", "a", "Ünïcödé 日本語 🙂", "<|im_end|> x", "a " * 5000])
async def test_count_of_a_text_is_the_length_of_the_engines_list(opened, text):
    async with opened() as engine:
        assert await Counter().text(text, engine) == len(by_engine(engine, text))


async def test_document_is_counted_with_its_marks_and_from_the_shelf_next_time(opened, tmp_path):
    document, shelf = prose("Lamp"), ShelfStore.open(tmp_path / "shelf.db")
    async with opened() as engine:
        exact = len(by_engine(engine, document_prompt(document)))
        first = Counter(shelf)
        assert first.known_document(document, engine) is None
        assert await first.document(document, engine) == exact
        assert first.known_document(document, engine) == exact
        asked: list[str] = []

        async def never(*_args, **_options):
            asked.append("again")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "count_text", never)
            assert await Counter(shelf).document(document, engine) == exact
        assert not asked
    shelf.close()


async def test_tokenizers_are_told_apart_by_how_they_split_not_by_their_name(opened):
    async with opened() as engine, httpx.AsyncClient() as http:
        from engine_bridge.chat.flavour import GENERIC, LLAMA_SERVER

        found = await tokens.identity(engine.endpoint, LLAMA_SERVER, http)
        assert found == await tokens.identity(engine.endpoint, LLAMA_SERVER, http)
        assert len(found) == 16
        assert await tokens.identity(engine.endpoint, GENERIC, http) is None


async def test_prompt_count_is_what_the_engine_then_reads(opened):
    async with opened() as engine:
        talk = Conversation(system="Be brief.", parameters=Parameters(max_tokens=1))
        talk.attach(prose("Clock", 10))
        talk.counter = Counter()
        async for _ in talk.ask("How many rooms? 日本語", engine):
            pass
        asked = talk.turns.pop().timings.prompt_tokens
        assert await talk.counter.prompt(talk.messages(), engine) == asked


def test_list_of_tokens_is_counted_without_being_parsed():
    assert tokens._listed(b'{"tokens":[]}') == 0
    assert tokens._listed(b'{"tokens":[ 5 ]}') == 1
    assert tokens._listed(b'{"tokens":[5,17,9]}') == 3
    assert tokens._listed(b'{"error":{"message":"[1,2]"}}') is None
    assert tokens._listed(None) is None
    assert tokens._counted(b'{"tokens":[5,17],"count": 2,"max_model_len":8192}') == 2


def test_estimate_is_near_for_english_and_counts_every_chinese_letter():
    assert estimated_tokens("The quick brown fox jumps. " * 100) == pytest.approx(700, rel=0.15)
    assert estimated_tokens("日本語" * 100) == 300
    assert estimated_tokens("") == 0


@pytest.mark.parametrize("text", ["", "a", 'x"\\\n' * 60_000, "é🙂" * 120_000, "\ud800"])
def test_body_written_in_pieces_is_the_same_json(text):
    import json

    for body in ({"content": text, "add_special": False}, {"a": text, "b": text}, {"n": 1}):
        clean = {k: v.replace("\ud800", "?") if isinstance(v, str) else v for k, v in body.items()}
        assert json.loads(tokens._dump(body)) == clean
