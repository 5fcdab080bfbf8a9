"""Real SGLang servers on random weights of Ling-3.0-flash's size, with this checkout's plugin.

    serve_plugin.py OUT_DIR --site SITE NAME [NAME ...] [--prompts 1024,8192,30000] [--triton ...]

SITE is a folder with SGLang and its needs (`make_sglang_env.sh`'s site-packages, say); names are
keys of CONFIGURATIONS. For each one NAME.log and NAME.json (evidence from the file and from
/server_info, measurements) are written to OUT_DIR, and one table is printed at the end.
Speeds are real, text is not. Only ratios within one run mean anything.
"""

import argparse
import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "sglang_plugin"))
import sglang_cpu  # noqa: E402
import tiny_models  # noqa: E402

PORT = 31017
FLAGS = shlex.split("""--load-format dummy --served-model-name ling-3.0-flash-fp4 --host 127.0.0.1
--dtype bfloat16 --max-running-requests 1 --page-size 64 --context-length 65536
--max-mamba-cache-size 16 --chunked-prefill-size 8192 --mem-fraction-static 0.75 --random-seed 1
--enable-metrics --enable-cache-report --decode-log-interval 10 --cuda-graph-max-bs-decode 1
--cuda-graph-backend-prefill disabled --sampling-backend pytorch --fp8-gemm-backend triton
--disable-flashinfer-autotune --disable-shared-experts-fusion""")
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1",
    "HUMMING_COMPILER": "nvrtc", "SGLANG_JIT_DEEPGEMM_PRECOMPILE": "0",
    "SGLANG_ENABLE_JIT_DEEPGEMM": "0", "SGLANG_DSV4_FP4_DEQUANT": "0",
}  # fmt: skip
HUMMING = {"humming": True, "clamp": True}
ALL = HUMMING | {"fp8_head": True, "nextn": True}
# What is asked of the plugin, and the accept length SGLang is to simulate (None: no speculation).
CONFIGURATIONS = {
    "humming": (HUMMING, None),
    "humming-fp8": (HUMMING | {"fp8_head": True}, None),
    "humming-nextn": (HUMMING | {"nextn": True}, 2.68),
    "all": (ALL, 2.68),
    "all-390": (ALL, 3.90),
    "unclamped": ({"humming": True}, None),
}


def call(path, body=None, timeout=600):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}", data=data, headers={"Content-Type": "application/json"}
    )
    return urllib.request.urlopen(request, timeout=timeout)


def generate(rng, prompt, tokens):
    """One streamed answer: seconds to the first token, then decode tokens/s and accept length."""
    body = {
        "input_ids": [rng.randrange(300, 150_000) for _ in range(prompt)], "stream": True,
        "sampling_params": {"max_new_tokens": tokens, "temperature": 0.6, "top_p": 0.95,
                            "top_k": 20, "ignore_eos": True},
    }  # fmt: skip
    begin, first, meta = time.perf_counter(), None, {}
    with call("/generate", body) as answer:
        for raw in answer:
            line = raw.decode().strip()
            if line.startswith("data: {"):
                first = first or time.perf_counter()
                meta = json.loads(line[6:])["meta_info"]
    seconds = time.perf_counter() - first
    rounds = meta.get("spec_verify_ct") or meta["completion_tokens"] - 1
    return {
        "ttft_s": round(first - begin, 3),
        "tokens_per_s": round((meta["completion_tokens"] - 1) / seconds, 2),
        "round_ms": round(1000 * seconds / rounds, 3),
        "accept_length": round(meta["completion_tokens"] / rounds, 3),
    }


def start(name, options, folder, model):
    wanted, accept = CONFIGURATIONS[name]
    evidence = folder / f"{name}.evidence"
    evidence.unlink(missing_ok=True)
    plugin = Path(tempfile.mkdtemp())
    sglang_cpu.entry_point(plugin)
    environment = os.environ | ENVIRONMENT
    environment["PYTHONPATH"] = f"{plugin}:{ROOT}:{options.site}"
    environment["PATH"] = f"{options.site}/bin:{environment['PATH']}"
    stub = options.site / "nccl_stub.so"  # newer NCCL symbols, where the installed one is older
    if stub.exists():
        environment["LD_PRELOAD"] = str(stub)
    environment["LING_CHAT_ENGINE"] = json.dumps(wanted | {"evidence": str(evidence)})
    flags = [*FLAGS, "--attention-backend", options.attention, "--moe-runner-backend", "humming"]
    if accept:
        environment["SGLANG_SIMULATE_ACC_LEN"] = str(accept)
        environment["SGLANG_SIMULATE_ACC_TOKEN_MODE"] = "real-draft-token"
        flags += ["--speculative-algorithm", "NEXTN", "--speculative-num-steps", "3",
                  "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
                  "--speculative-draft-model-path", str(model)]  # fmt: skip
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(model),
               "--port", str(PORT), *flags]  # fmt: skip
    with (folder / f"{name}.log").open("wb") as log:
        return evidence, subprocess.Popen(
            command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def stop(server):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, number)
            server.wait(15)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    time.sleep(3)


def run(name, options, folder, model):
    """Start, measure and stop one configuration; returns what was seen, failures included."""
    seen = {"name": name, "attention": options.attention, "ready_s": None, "runs": {}}
    begin = time.perf_counter()
    evidence, server = start(name, options, folder, model)
    try:
        while server.poll() is None and time.perf_counter() - begin < options.ready:
            try:
                call("/health", timeout=5).close()
                seen["ready_s"] = round(time.perf_counter() - begin, 1)
                break
            except OSError:
                time.sleep(1)
        if evidence.exists():
            seen["evidence_file"] = json.loads(evidence.read_text())
        if seen["ready_s"] is None:
            return seen
        rng = random.Random(0)
        generate(rng, 256, 64)
        for prompt in map(int, options.prompts.split(",")):
            times = 3 if prompt <= 2048 else 2
            seen["runs"][prompt] = [generate(rng, prompt, options.tokens) for _ in range(times)]
        state = json.loads(call("/server_info").read())["internal_states"][0]
        seen["evidence"] = state["ling_chat"]
        seen["accept_length"] = state.get("avg_spec_accept_length")
        seen["memory"] = state.get("memory_usage")
    except Exception as error:
        seen["failed"] = f"{type(error).__name__}: {error}"
    finally:
        stop(server)
        evidence.unlink(missing_ok=True)
    return seen


def table(results):
    base = {}
    print("| configuration | attention | prompt | decode tok/s | against the first | round ms "
          "| accept | TTFT s | ready s |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for seen in results:
        if not seen["runs"]:
            refused = (seen.get("evidence_file") or {}).get("refused")
            print(f"| {seen['name']} | {seen['attention']} | did not run: {refused} |")
        for prompt, runs in seen["runs"].items():
            speed = statistics.median(each["tokens_per_s"] for each in runs)
            base.setdefault(prompt, speed)
            last = runs[-1]
            print(
                f"| {seen['name']} | {seen['attention']} | {prompt} | {speed} | "
                f"{speed / base[prompt]:.2f} | {last['round_ms']} | {last['accept_length']} | "
                f"{last['ttft_s']} | {seen['ready_s']} |"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+", choices=CONFIGURATIONS)
    parser.add_argument("--site", type=Path, required=True)
    parser.add_argument("--attention", default="triton")
    parser.add_argument("--prompts", default="1024,30000")
    parser.add_argument("--tokens", type=int, default=384)
    parser.add_argument("--ready", type=float, default=420, help="seconds to wait for a start")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    model = tiny_models.write(Path(tempfile.gettempdir()) / "ling-dims", tiny_models.LING_FLASH)
    results = []
    for name in options.names:
        results.append(run(name, options, options.out, model))
        file = options.out / f"{name}.{options.attention}.json"
        file.write_text(json.dumps(results[-1], indent=1))
        print(json.dumps({k: v for k, v in results[-1].items() if "evidence" not in k}), flush=True)
    table(results)


if __name__ == "__main__":
    main()
