"""`bench ab` on real engines: a switch that does nothing, one that changes words, one that is
not there. What it decides under noise is tested on recorded noise, in test_bench_stats."""

import pytest
from bench_backends import with_nothing

from app.bench import ab, ab_result, lossless, tasks
from app.bench.engines import pair_for
from app.bench.text import ab_text, lossless_text
from engine_bridge.contract import EngineSpec
from engine_bridge.errors import UsageError

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def off_spec(smol, home):
    return EngineSpec(model=str(smol), context_tokens=1024, optimisations={"ngram": False})


async def test_a_switch_that_does_nothing(off_spec, ledger):
    steps = []
    result = await ab_result.run(
        off_spec,
        "nothing",
        "chat",
        tasks.questions("chat")[:3],
        ab.Settings(rounds=2, max_tokens=16),
        ledger,
        steps.append,
        find=with_nothing,
    )
    assert result["verdict"] == "no difference seen"
    assert result["interval"][0] <= 1 <= result["interval"][1]
    told = ab_result.public(result)
    assert list(told) == ["toggle", "ratio", "interval", "verdict", "details"]
    assert told["details"]["sentence"] == result["sentence"]
    details = result["details"]
    assert details["same_answers"] == details["answers"] == 3
    assert details["what"].startswith("decode tokens per engine CPU second")
    assert details["off"]["ttft_s"]["n"] == 3
    assert "No difference seen for nothing" in ab_text(result)
    assert steps[-1].done == steps[-1].total
    run = ledger.runs("ab")[0]
    answers = ledger.answers(run)
    assert {"0/off/0", "0/on/0", "2/on/1"} <= answers.keys()
    assert run.result["ratio"] == result["ratio"]


async def test_speculation_leaves_the_words_as_they_are(off_spec, ledger):
    result = await lossless.run(
        off_spec,
        "ngram",
        tasks.questions("rewrite")[:2],
        max_tokens=24,
        probe_count=1,
        ledger=ledger,
    )
    assert result["same_bytes"] == {"same": 2, "n": 2}
    told = result["next_token"]
    assert told["n"] >= 10
    assert told["same"] >= told["n"] - 1  # batches round differently: a tie may fall otherwise
    assert result["identifiers"]["off"]["found"] == result["identifiers"]["on"]["found"]
    assert "greedy answers with the same bytes" in lossless_text(result)
    assert [run.kind for run in ledger.runs()] == ["lossless"]


async def test_a_switch_that_is_not_there(off_spec):
    with pytest.raises(UsageError, match=r"no switch 'turbo'\. It has cpu-layout, light-head, n"):
        await pair_for(off_spec, "turbo")
    attached = EngineSpec(backend="attach", url="http://127.0.0.1:1")
    with pytest.raises(UsageError, match="cannot be switched from here"):
        await pair_for(attached, "ngram")


async def test_identifiers_are_counted_letter_by_letter():
    probe = lossless.probes(1)[0]
    assert len(set(probe.identifiers)) == lossless.IDENTIFIERS
    assert all(each in probe.prompt for each in probe.identifiers)
    assert probe.found("\n".join(probe.identifiers)) == lossless.IDENTIFIERS
    wrong = probe.identifiers[0][:-1] + "#"
    assert probe.found("\n".join([wrong, *probe.identifiers[1:]])) == lossless.IDENTIFIERS - 1
    assert lossless.probes(2, seed=2) != lossless.probes(2, seed=3)


async def test_accuracy_is_compared_on_the_same_questions():
    grades = ab.Grades.of([(True, True), (True, False), (False, True), (False, False)] * 2)
    assert (grades.n, grades.off, grades.on) == (8, 4, 4)
    assert (grades.only_off, grades.only_on, grades.p) == (2, 2, 1.0)


async def test_tasks_come_by_name_or_from_a_file(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "2+2?", "answer": "#### 4"}\nplain words\n')
    first, second = tasks.questions(str(file))
    assert first.is_right("It is 4")
    assert not first.is_right("It is 5")
    assert (second.prompt, second.answer) == ("plain words", None)
    file.write_text("\n")
    with pytest.raises(UsageError, match="holds no prompt"):
        tasks.questions(str(file))
    with pytest.raises(UsageError, match="no task"):
        tasks.questions("nowhere")
