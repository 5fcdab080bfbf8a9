"""Launch profiles as data: which flags and environment for which machine, model and switches."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine_bridge.backends.sglang import switches
from engine_bridge.backends.sglang.checkpoint import LING_CONTEXT_TOKENS, Checkpoint
from engine_bridge.contract import Gpu
from engine_bridge.errors import UsageError

Flags = Mapping[str, str | None]
"""Flag → its value; None for a flag that takes none."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of machine."""

    id: str
    title: str
    flags: Flags
    environment: Mapping[str, str]
    attention: str | None = None
    """Attention backend of plain decoding unless a measurement here says otherwise; None: SGLang's
    own choice."""
    memory_fraction: float | None = None
    """`--mem-fraction-static`: weights and caches as a share of memory; None: SGLang's choice."""
    baseline: Flags = field(default_factory=dict)
    """What replaces the optimisations when none is on."""


FP32_HEAD = "--enable-fp32-lm-head"
ATTENTION, PREFILL, DECODE = (f"--{part}attention-backend" for part in ("", "prefill-", "decode-"))
ONE_USER: Flags = {
    "--max-running-requests": "1",
    "--chunked-prefill-size": "8192",
    "--max-prefill-tokens": "16384",
    "--stream-interval": "1",
    "--enable-metrics": None,
    "--decode-log-interval": "10",
    "--enable-cache-report": None,
    # The host asks every second; the log is for what happens.
    "--uvicorn-access-log-exclude-prefixes": "/v1/loads",
}
LING: Flags = {
    "--dtype": "bfloat16",
    "--page-size": "64",
    "--max-mamba-cache-size": "64",
    "--linear-attn-backend": "triton",
    "--disable-shared-experts-fusion": None,
    "--reasoning-parser": "ling3",
    "--tool-call-parser": "ling3",
}
ENVIRONMENT = {
    "SGLANG_JIT_DEEPGEMM_PRECOMPILE": "0",
    "SGLANG_ENABLE_JIT_DEEPGEMM": "0",
    "SGLANG_DSV4_FP4_DEQUANT": "0",
    "HUMMING_COMPILER": "nvrtc",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
    # The model is a folder here; nothing it needs is asked of the network.
    "HF_HUB_OFFLINE": "1",
}

SPARK = Profile(
    id="spark",
    title="DGX Spark",
    flags={
        "--fp8-gemm-backend": "cutlass",
        "--disable-flashinfer-autotune": None,
        # The file's pages would else count twice against the memory that the GPU shares.
        "--weight-loader-drop-cache-after-load": None,
    },
    environment=ENVIRONMENT,
    attention="flashinfer",
    memory_fraction=0.68,  # 0.75 can lock the machine
    # The cookbook's own recipe.
    baseline={
        "--moe-runner-backend": "flashinfer_mxfp4",
        "--flashinfer-mxfp4-moe-precision": "default",
        FP32_HEAD: None,
    },
)
NVIDIA = Profile(
    id="nvidia",
    title="NVIDIA GPU",
    flags={"--disable-flashinfer-autotune": None},
    environment=ENVIRONMENT,
    attention="flashinfer",
)
CPU = Profile(
    id="cpu",
    title="CPU",
    flags={
        "--device": "cpu",
        "--attention-backend": "torch_native",
        "--disable-overlap-schedule": None,
        "--mem-fraction-static": "0.05",
        "--max-total-tokens": "4096",
    },
    environment={
        **ENVIRONMENT,
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1",
    },
)
"""SGLang on a processor, for tiny models and tests."""

GRAPHS_ON: Flags = {
    "--cuda-graph-backend-decode": "full",
    "--cuda-graph-max-bs-decode": "1",
    "--cuda-graph-bs-decode": "1",
    "--cuda-graph-backend-prefill": "disabled",
}
GRAPHS_OFF: Flags = {
    "--cuda-graph-backend-decode": "disabled",
    "--cuda-graph-backend-prefill": "disabled",
}
HUMMING: Flags = {"--moe-runner-backend": "humming"}
NEXTN: Flags = {
    "--speculative-algorithm": "NEXTN",
    "--speculative-num-steps": "3",
    "--speculative-eagle-topk": "1",
    "--speculative-num-draft-tokens": "4",
}


def profile_for(gpu: Gpu | None) -> Profile:
    """The profile of a machine by its GPU; `CPU` without one."""
    if gpu is None:
        return CPU
    return SPARK if gpu.unified and (gpu.capability or (0, 0))[0] == 12 else NVIDIA


def attention_for(profile: Profile, model: Checkpoint, on: frozenset[str]) -> str | None:
    """The attention backend that was measured to be best, two as "PREFILL+DECODE"; only Ling was
    measured.

    Plain decoding is fastest with flashinfer, in long contexts above all. Drafts are checked
    fastest by the split kernel of triton, which reads long prompts several times slower.
    """
    if profile.attention is None or not model.is_ling:
        return None
    return f"{profile.attention}+triton" if switches.SPLIT in on else profile.attention


def attention_of(words: Sequence[str]) -> str:
    """The backends that a command line asks for, as `attention_for` names them; of several values
    SGLang takes the last."""
    chosen = dict(itertools.pairwise(words))
    both = chosen.get(ATTENTION, "auto")
    prefill, decode = chosen.get(PREFILL, both), chosen.get(DECODE, both)
    return prefill if prefill == decode else f"{prefill}+{decode}"


def plan_context(model: Checkpoint, asked: int | None) -> tuple[int, Flags]:
    """Context length in tokens, and the override that reaches it.

    The checkpoint's own length, or Ling's published one; what is asked for beyond what it was
    trained on is reached with YaRN, at most four times as far. Raises UsageError beyond that.
    """
    trained = model.context_tokens
    wanted = asked or (max(trained, LING_CONTEXT_TOKENS) if model.is_ling else trained)
    if not trained or wanted <= trained:
        return wanted, {}
    if not model.is_ling or wanted > YARN_REACH * trained:
        raise UsageError(
            f"{model.name} handles {trained:,} tokens of context, not {wanted:,}.",
            "Ask for a shorter --context.",
        )
    scaling = {
        "rope_type": "yarn",
        "factor": wanted / trained,
        "original_max_position_embeddings": trained,
    }
    # SGLang does not stretch a length that comes with the original one: it is stated outright.
    override = {"rope_scaling": scaling, "max_position_embeddings": wanted}
    return wanted, {"--json-model-override-args": json.dumps(override)}


YARN_REACH = 4
"""The factor Ling's authors publish for YaRN."""


def flags(
    profile: Profile,
    model: Checkpoint,
    on: frozenset[str],
    context_tokens: int,
    attention: str | None,
) -> dict[str, str | None]:
    """All that decides how this model runs here, without address and key."""
    chosen: dict[str, str | None] = {
        "--model-path": str(model.path),
        "--served-model-name": model.name,
        **ONE_USER,
        **(LING if model.is_ling else {}),
        **profile.flags,
    }
    if context_tokens:
        chosen["--context-length"] = str(context_tokens)
    if attention:
        prefill, _, decode = attention.partition("+")
        chosen[ATTENTION] = prefill
        if decode:
            # Drafts are checked as tokens are decoded, not as prompts are read.
            chosen |= {DECODE: decode, "--speculative-attention-mode": "decode"}
    if profile.memory_fraction is not None:
        chosen["--mem-fraction-static"] = str(profile.memory_fraction)
    if profile is not CPU:
        chosen |= GRAPHS_ON if switches.GRAPHS in on else GRAPHS_OFF
    if switches.HUMMING in on:
        chosen |= HUMMING
    if switches.NEXTN in on:
        chosen |= {**NEXTN, "--speculative-draft-model-path": str(model.path)}
    if model.is_ling and not on & {switches.HUMMING, switches.FP8_HEAD, switches.NEXTN}:
        chosen |= profile.baseline
    return chosen


def argv(chosen: Flags) -> list[str]:
    """Flags as command-line words."""
    return [word for flag, value in chosen.items() for word in (flag, value) if word is not None]
