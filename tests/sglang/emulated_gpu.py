"""Resolve SGLang command lines as if this machine had a certain GPU. Nothing is loaded.

    emulated_gpu.py sm_121|sm_90 < {"name": ["--flag", ...], ...}

Run by an interpreter that has SGLang. Prints one line of JSON: name → the settings that SGLang
would run with, or {"refused": why}.
"""

import importlib
import json
import os
import sys

MARK = "resolved:"
MACHINES = {
    "sm_121": ((12, 1), 121 * 1024, "NVIDIA GB10"),
    "sm_90": ((9, 0), 143_771, "NVIDIA H200"),
}
SETTINGS = (
    "attention_backend",
    "decode_attention_backend",
    "speculative_attention_mode",
    "chunked_prefill_size",
    "context_length",
    "cuda_graph_config",
    "disable_radix_cache",
    "enable_fp32_lm_head",
    "flashinfer_mxfp4_moe_precision",
    "fp8_gemm_runner_backend",
    "linear_attn_backend",
    "mamba_radix_cache_strategy",
    "max_mamba_cache_size",
    "max_running_requests",
    "mem_fraction_static",
    "moe_runner_backend",
    "page_size",
    "reasoning_parser",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_eagle_topk",
    "speculative_moe_runner_backend",
    "speculative_num_draft_tokens",
    "speculative_num_steps",
    "tool_call_parser",
)


def pretend(machine: str) -> None:
    """Let SGLang's questions about the platform be answered for this machine."""
    (major, minor), memory_mib, name = MACHINES[machine]
    import torch

    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_name = lambda device=None: name
    torch.cuda.get_device_capability = lambda device=None: (major, minor)
    importlib.import_module("sglang.srt.utils.common")  # states the true facts; these come after
    from sglang.srt.runtime_context import _PLATFORM

    facts = {f"is_{other}": False for other in ("hip", "npu", "xpu")}
    _PLATFORM._install(
        **facts,
        is_cuda=True,
        is_blackwell=major >= 10,
        is_sm90=major == 9,
        is_sm100=major == 10,
        is_sm120=major == 12,
    )
    hook = importlib.import_module("sglang.srt.arg_groups.memory_hook")
    hook.get_device_memory_capacity = lambda device=None: memory_mib


def resolve(argv: list[str]) -> dict[str, object]:
    from sglang.srt.arg_groups.overrides import resolving_view
    from sglang.srt.server_args import prepare_server_args

    args = prepare_server_args(["--device", "cuda", *argv])
    args.resolve_once()
    view = resolving_view(args)
    return {name: getattr(view, name, None) for name in SETTINGS}


def resolve_apart(argv: list[str]) -> dict[str, object]:
    """In a process of its own: resolving leaves traces in SGLang's globals."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            found = resolve(argv)
        except BaseException as error:
            found = {"refused": f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(found, default=str).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.wait()
    return answer


if __name__ == "__main__":
    os.environ.setdefault("SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK", "1")
    pretend(sys.argv[1])
    wanted = json.load(sys.stdin)
    print(MARK + json.dumps({name: resolve_apart(argv) for name, argv in wanted.items()}))
