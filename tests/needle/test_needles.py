"""Facts planted at ten depths reach the model: checked in the tokens that the engine holds."""

import contextlib
from pathlib import Path

import pytest
from needle_documents import detokenize, haystack, tokenize, tokens_in

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.shelf.counting import Counter
from engine_bridge import paths
from engine_bridge.chat import kept, tokens, web
from engine_bridge.chat.flavour import LLAMA_SERVER
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import wait_until_ready
from engine_bridge.host.client import HostedEngine


@pytest.fixture
def own_spec(smol: Path, shared_home: Path) -> EngineSpec:
    return EngineSpec(model=str(smol), context_tokens=4096, optimisations={"ngram": False})


@contextlib.asynccontextmanager
async def running(spec: EngineSpec):
    engine = await HostedEngine.open()
    try:
        await engine.start(spec)
        await engine.keep(True)
        yield engine, await wait_until_ready(engine)
    finally:
        await engine.close()


def about(document, question: str = "") -> Conversation:
    parameters = Parameters(max_tokens=1, temperature=0)
    talk = Conversation(system="Answer from the document.", parameters=parameters)
    talk.attach(document)
    talk.turns = [Turn("user", question)] if question else []
    return talk


@pytest.mark.parametrize("length", [2_000, 8_000, 24_000])
async def test_every_fact_stands_in_the_prompt_as_it_is_tokenized(own_spec, length):
    document, needles = haystack(length)
    talk = about(document, needles[0].question)
    async with running(own_spec) as (engine, _), web.new_client("http://127.0.0.1") as http:
        at = engine.endpoint
        rendered = await tokens.render(at, LLAMA_SERVER, talk.messages(), http)
        listed = tokenize(at, rendered)
        assert len(listed) == await Counter().prompt(talk.messages(), engine)
        assert 0.9 * length < len(listed) < 1.15 * length
        read_back = detokenize(at, listed)
        assert read_back == rendered
        for needle in needles:
            assert read_back.count(needle.fact) == 1
        body = read_back.index("</document>") - read_back.index("<document")
        depths = [read_back.index(n.fact) / body for n in needles]
        assert depths == sorted(depths)
        assert max(abs(a - n.depth) for a, n in zip(depths, needles, strict=True)) < 0.05


async def test_what_the_engine_computed_is_the_prompt_token_for_token(own_spec):
    """Read from the file in which the engine itself wrote what is in its cache."""
    document, needles = haystack(2_000, seed=2)
    talk = about(document)
    async with running(own_spec) as (engine, _), web.new_client("http://127.0.0.1") as http:
        at = engine.endpoint
        async for _ in talk.ask(needles[5].question, engine):
            pass
        file = next(e for e in kept.entries() if document.sha256 in e.documents)
        computed = tokens_in(paths.kv_dir() / f"{file.name}.kv")
        asked = about(document, needles[5].question)
        rendered = await tokens.render(at, LLAMA_SERVER, asked.messages(), http)
        sent = tokenize(at, rendered)
        assert computed[: len(sent)] == sent
        assert talk.turns[-1].timings.prompt_tokens == len(sent)
        assert len(computed) - len(sent) <= 1  # the answer's one token
        inside = detokenize(at, computed)
        for needle in needles:
            assert needle.fact in inside
