"""The start of a real server, told from its recorded log."""

from itertools import groupby, pairwise

import pytest
from sglang_replay import EXPERT_LAYERS, lines

from engine_bridge.backends.sglang import phases
from engine_bridge.backends.sglang.phases import Prefill, ServingLog, StartLog

READY = "The server is fired up and ready to roll!"


def story(recorded: list[str], expert_layers: int = EXPERT_LAYERS):
    start = StartLog(expert_layers)
    end = next((i for i, line in enumerate(recorded) if READY in line), len(recorded))
    return [phase for line in recorded[:end] if (phase := start.phase_of(line))]


@pytest.mark.parametrize("name", ["all_on", "humming_only", "fp8_head_not_shared"])
def test_replay_passes_each_step_once_and_only_forward(name, tmp_path):
    told = story(lines(name, tmp_path))
    steps = [title for title, _ in groupby(phase.title.split(" · ")[0] for phase in told)]
    assert len(steps) > 5
    again = {title for title in steps if steps.count(title) > 1}
    # Target and draft each get a KV cache and graphs of their own.
    assert again <= {phases.KV}
    for before, after in pairwise(told):
        if before.title == after.title and before.fraction is not None:
            assert after.fraction is not None
            assert after.fraction >= before.fraction


def test_replay_with_drafts_tells_target_and_draft_apart(tmp_path):
    steps = [title for title, _ in groupby(p.title for p in story(lines("all_on", tmp_path)))]
    assert steps == [
        phases.SCHEDULER,
        phases.WEIGHTS,
        phases.EXPERTS,
        phases.DRAFT_WEIGHTS,
        phases.DRAFT_EXPERTS,
        phases.STATES,
        phases.KV,
        "capturing CUDA graphs: target verify",
        "capturing CUDA graphs: draft decode",
        "capturing CUDA graphs: draft extend",
        phases.SERVER,
        phases.WARMING,
    ]


def test_replay_counts_the_expert_layers_to_the_end(tmp_path):
    told = story(lines("all_on", tmp_path))
    fractions = [p.fraction for p in told if p.title == phases.EXPERTS]
    assert len(fractions) == EXPERT_LAYERS
    assert fractions[0] == pytest.approx(1 / EXPERT_LAYERS)
    assert fractions[-1] == 1


def test_replay_of_a_first_start_announces_the_kernels_it_compiles(tmp_path):
    told = [phase.title for phase in story(lines("humming_only", tmp_path))]
    assert any(t.startswith(f"{phases.COMPILING} · chunk_kda") for t in told)


def test_replay_cut_at_every_byte_tells_the_same_story(tmp_path):
    # One line is longer than the reader keeps; where it is broken depends on the pieces.
    def kept(recorded: list[str]) -> list[str]:
        return [line for line in recorded if line.startswith("[2026") and len(line) < 3000]

    whole = lines("all_on", tmp_path)
    for piece in (1, 2, 3, 7, 1448):
        cut = lines("all_on", tmp_path, piece)
        assert kept(cut) == kept(whole)
        assert story(cut) == story(whole)


def test_weights_move_on_shard_by_shard():
    start = StartLog()
    bar = "Loading safetensors checkpoint shards: {0:3d}% Completed | {1}/4 [00:01<00:03]"
    said = ["Load weight begin. avail mem=100 GB", *(bar.format(n * 25, n) for n in range(5))]
    said += ["Load weight begin. avail mem=40 GB", "Multi-thread loading shards:  50% 1/2"]
    told = [start.phase_of(line) for line in said]
    assert [p.fraction for p in told] == [None, 0, 0.25, 0.5, 0.75, 1, None, 0.5]
    assert told[-1].title == phases.DRAFT_WEIGHTS


def test_replay_of_a_long_prompt_shows_its_prefill_chunk_by_chunk(tmp_path):
    serving, seen = ServingLog(), []
    for line in lines("all_on", tmp_path):
        serving.hear(line)
        if serving.prefill and (not seen or seen[-1] != serving.prefill):
            seen.append(serving.prefill)
    assert seen == [Prefill(8192, 30000), Prefill(16384, 30000), Prefill(24576, 30000)]
    assert serving.prefill is None
    assert serving.cuda_graph is True
    assert serving.state_usage == 0.25


def test_a_prompt_that_is_given_up_does_not_count_for_the_next():
    serving = ServingLog()
    line = "Prefill batch, #new-token: {}, #cached-token: {}, mamba usage: 0.25, #pending-token: {}"
    serving.hear(line.format(8192, 0, 20000))
    serving.hear(line.format(8192, 4096, 30000))
    assert serving.prefill == Prefill(12288, 42288)
    assert serving.prefill.fraction == pytest.approx(0.29, abs=0.01)


def test_replay_says_why_a_first_prompt_is_slow_and_stops_when_it_decodes(tmp_path):
    serving, advice = ServingLog(), []
    for line in lines("humming_only", tmp_path):
        serving.hear(line)
        advice.append(serving.advice)
    assert any("compiles kernels (6 so far" in said for said in advice)
    assert advice[-1] == ""
