"""The FP8 head cut over two ranks of a real SGLang: the same model, the same logprobs."""

import subprocess

import pytest
import tiny_models
from test_sglang_server import Server

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(1500)]

CORES = {1: "0", 2: "0|1"}
"""The cores of each rank: by itself SGLang wants a NUMA node for each."""
ON_CPU = {"SGLANG_NCCL_SO_PATH": "none"}
"""Without NCCL, which it would use on any machine, SGLang lets its ranks talk through Gloo."""
SAVE = """
import sys
import torch
from transformers import AutoConfig, AutoModelForCausalLM
torch.manual_seed(3)
config = AutoConfig.from_pretrained(sys.argv[1])
config.initializer_range = 0.2  # logits far enough apart to tell one order from another
AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(sys.argv[2])
"""


@pytest.fixture(scope="module")
def weights(sglang_python, sglang_environment, tmp_path_factory):
    """A tiny Llama with weights in a file, so that every number of ranks loads the same ones."""
    folder = tiny_models.write(tmp_path_factory.mktemp("llama"), tiny_models.LLAMA)
    saved = tmp_path_factory.mktemp("saved")
    subprocess.run(
        [sglang_python, "-c", SAVE, folder, saved], env=sglang_environment, check=True, timeout=600
    )
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (saved / file).write_bytes((folder / file).read_bytes())
    return saved


@pytest.fixture(scope="module")
def answers(sglang_python, sglang_environment, weights, tmp_path_factory):
    """What one rank and two ranks answer, and what their plugin saw of the head."""
    found = {}
    for ranks in (2, 1):
        server = Server(
            sglang_python,
            sglang_environment | ON_CPU | {"SGLANG_CPU_OMP_THREADS_BIND": CORES[ranks]},
            tmp_path_factory.mktemp(f"ranks{ranks}"),
            {"fp8_head": True}, "--load-format", "safetensors", "--model-path", str(weights),
            "--tp-size", str(ranks),
        )  # fmt: skip
        try:
            assert server.wait(), server.log.read_text(errors="replace")[-4000:]
            answer = server.generate(return_logprob=True, logprob_start_len=0, top_logprobs_num=5)
            found[ranks] = answer["meta_info"], server.head()
        finally:
            server.stop()
    return found


def test_each_rank_holds_its_share_of_the_head_in_fp8(answers):
    (_, whole), (_, half) = answers[1], answers[2]
    assert whole["dtype"] == half["dtype"] == "float8_e4m3fn"
    assert half["rows"] * 2 == whole["rows"]
    assert half["columns"] == whole["columns"]


def test_two_ranks_say_what_one_says(answers):
    (one, _), (two, _) = answers[1], answers[2]
    assert [t for _, t, _ in one["output_token_logprobs"]] == [
        t for _, t, _ in two["output_token_logprobs"]
    ]
    for name in ("input_token_logprobs", "output_token_logprobs"):
        for (a, _, _), (b, _, _) in zip(one[name][1:], two[name][1:], strict=True):
            assert a == pytest.approx(b, abs=0.1)  # sums in BF16, in another order
