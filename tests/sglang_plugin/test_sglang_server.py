"""A real SGLang server on the CPU with the plugin: what it serves, proves, and refuses to start."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import tiny_models

from engine_bridge.machine import free_port

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(1500)]
START_S = 600  # a busy machine takes minutes to import SGLang four times


class Server:
    """One SGLang process group, its log and, where asked for, its evidence file."""

    def __init__(self, python, environment, folder: Path, wanted=None, *arguments):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log, self.evidence = folder / "server.log", folder / "evidence.json"
        model = tiny_models.write(folder / "llama", tiny_models.LLAMA)
        environment = dict(environment)
        if wanted is not None:
            environment["LING_CHAT_ENGINE"] = json.dumps(wanted | {"evidence": str(self.evidence)})
        command = [
            python, "-m", "sglang.launch_server", "--model-path", model, "--device", "cpu",
            "--load-format", "dummy", "--attention-backend", "torch_native", "--host", "127.0.0.1",
            "--port", self.url.rpartition(":")[2], "--mem-fraction-static", "0.05",
            "--max-total-tokens", "4096", "--disable-overlap-schedule", "--random-seed", "1",
            *arguments,
        ]  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    def wait(self) -> bool:
        """Wait for the server to serve (True) or to end (False)."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/health", timeout=30).status_code == 200:
                    return True
            time.sleep(1)
        return False

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)

    def generate(self, **more) -> dict:
        body = {
            "input_ids": list(range(10, 60)),
            "sampling_params": {"max_new_tokens": 12, "temperature": 0, "ignore_eos": True},
        }
        answer = httpx.post(f"{self.url}/generate", json=body | more, timeout=120)
        answer.raise_for_status()
        return answer.json()

    def head(self) -> dict:
        """What the plugin saw of the head."""
        info = httpx.get(f"{self.url}/server_info", timeout=60).json()
        return info["internal_states"][0]["ling_chat"]["head"]

    def sentence(self) -> str:
        """The plugin's sentence in the log."""
        lines = self.log.read_text(errors="replace").splitlines()
        found = [line for line in lines if "ling-chat: " in line]
        assert found, "\n".join(lines[-40:])
        return found[-1]


@pytest.fixture(scope="module")
def server(sglang_python, sglang_environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    server = Server(sglang_python, sglang_environment, folder, {"fp8_head": True})
    try:
        assert server.wait(), server.log.read_text(errors="replace")[-4000:]
        yield server
    finally:
        server.stop()


def test_the_evidence_is_in_server_info_and_in_the_file(server):
    info = httpx.get(f"{server.url}/server_info", timeout=60).json()
    told = info["internal_states"][0]["ling_chat"]
    assert told["head"] == {
        "dtype": "float8_e4m3fn", "method": "Fp8HeadMethod", "rows": 320, "columns": 64,
        "scales": [320], "kernels": {}, "shared_with_draft": None,
    }  # fmt: skip
    assert set(told["hooks"].values()) == {"applied"}
    assert len(told["hooks"]) == 3
    assert told["refused"] == []
    assert told["speculation"] is None
    assert json.loads(server.evidence.read_text()) == told


def test_the_quantised_head_generates_with_logprobs_of_prompt_and_answer(server):
    answer = server.generate(return_logprob=True, logprob_start_len=0, top_logprobs_num=3)
    meta = answer["meta_info"]
    assert meta["completion_tokens"] == 12
    assert len(meta["input_token_logprobs"]) == 50
    # Random weights make ties, so the best logprob is compared and not its token.
    for (chosen, _, _), top in zip(
        meta["output_token_logprobs"], meta["output_top_logprobs"], strict=True
    ):
        assert chosen == max(logprob for logprob, _, _ in top)
        assert chosen < 0


def test_prefill_and_decode_give_the_same_logprobs(server):
    answer = server.generate(return_logprob=True)["meta_info"]["output_token_logprobs"]
    tokens = [token for _, token, _ in answer]
    again = server.generate(
        input_ids=list(range(10, 60)) + tokens, return_logprob=True, logprob_start_len=49
    )["meta_info"]["input_token_logprobs"]
    echoed = {position: logprob for position, (logprob, _, _) in enumerate(again[1:])}
    for position, (logprob, _, _) in enumerate(answer[: len(echoed)]):
        assert echoed[position] == pytest.approx(logprob, abs=0.05)


def test_a_grammar_masks_the_logits_of_the_quantised_head(server):
    body = {
        "text": "pick",
        "sampling_params": {"max_new_tokens": 4, "temperature": 1, "regex": "(yes|no)"},
    }
    answer = httpx.post(f"{server.url}/generate", json=body, timeout=300)
    answer.raise_for_status()
    assert answer.json()["text"] in {"yes", "no"}


def test_without_a_request_the_plugin_leaves_sglang_alone(
    sglang_python, sglang_environment, tmp_path
):
    server = Server(sglang_python, sglang_environment, tmp_path)
    try:
        assert server.wait(), server.log.read_text(errors="replace")[-4000:]
        info = httpx.get(f"{server.url}/server_info", timeout=60).json()
        assert "ling_chat" not in info["internal_states"][0]
        assert server.generate()["meta_info"]["completion_tokens"] == 12
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("wanted", "arguments", "words"),
    [
        ({"humming": True}, [], "Humming was requested and is not on"),
        ({"nextn": True}, [], "NEXTN was requested and is not on"),
        ({"fp8_head": True}, ["--enable-fp32-lm-head"], "--enable-fp32-lm-head"),
        ({"warp_drive": True}, [], "its request cannot be read"),
    ],
    ids=["humming", "nextn", "fp32 head", "unknown"],
)
def test_what_cannot_be_had_ends_the_start_with_its_name(
    sglang_python, sglang_environment, tmp_path, wanted, arguments, words
):
    server = Server(sglang_python, sglang_environment, tmp_path, wanted, *arguments)
    try:
        assert not server.wait()
        assert server.process.poll() not in (None, 0)
        sentence = server.sentence()
        assert words in sentence
        if "warp_drive" not in wanted:
            told = json.loads(server.evidence.read_text())["refused"]
            assert len(told) == 1
            assert sentence.endswith(told[0])
    finally:
        server.stop()
