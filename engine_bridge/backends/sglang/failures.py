"""Why SGLang ended: its last words and its exit code, what they mean, and what helps."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine_bridge.backends.base import Diagnosis
from engine_bridge.backends.sglang import switches
from engine_bridge.host.process import describe_exit

MEMORY_CURE = (
    "Close other programs or ask for a shorter --context; on a machine that shares its memory"
    " with the GPU, also drop the page cache: sync; echo 3 | sudo tee /proc/sys/vm/drop_caches"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern in the log, and what it means. `{0}` in a text is the pattern's first group."""

    pattern: str
    reason: str
    cure: str
    retry: bool = False
    remedy: Mapping[str, bool] = field(default_factory=dict)


# The first that is anywhere in the last lines wins: causes come before what follows from them,
# and SGLang's own advice ("set --mem-fraction-static to a smaller value") is never repeated.
SIGNATURES = (
    Signature(
        r"ling-chat: ((?:the )?FP8 (?:LM )?head was requested and is not on: .*)",
        "The engine refused to start: {0}",
        "Turn the FP8 LM head off, or see the log for what stands in its way.",
        remedy={switches.FP8_HEAD: False},
    ),
    Signature(
        r"ling-chat: (Humming was requested and is not on: .*)",
        "The engine refused to start: {0}",
        "Turn Humming off, or see the log for what stands in its way.",
        remedy={switches.HUMMING: False},
    ),
    Signature(
        r"ling-chat: (NEXTN was requested and is not on: .*)",
        "The engine refused to start: {0}",
        "Turn NEXTN off, or see the log for what stands in its way.",
        remedy={switches.NEXTN: False},
    ),
    Signature(
        r"ling-chat: (the SwiGLU clamp was requested and is not on: .*)",
        "The engine refused to start: {0}",
        "Turn Humming off: without the clamp it gives wrong answers.",
        remedy={switches.HUMMING: False},
    ),
    Signature(
        r"ling-chat: (split verification was requested and is not on: .*)",
        "The engine refused to start: {0}",
        "Turn split verification off: drafts then cost more to check.",
        remedy={switches.SPLIT: False},
    ),
    Signature(
        r"ling-chat: (.* was requested and is not on: .*)",
        "The engine refused to start: {0}",
        "Check that SGLang 0.5.19 to 0.5.23 is installed, or turn the optimisations off.",
    ),
    Signature(
        r"\"addmm_cuda\" not implemented for 'Float8_e4m3fn'",
        "The draft does not share the FP8 head: SGLang took the 8-bit weights for ordinary ones."
        " Its advice about memory and batch size does not help.",
        "Turn the FP8 LM head or NEXTN off, or use SGLang 0.5.19 to 0.5.23, where ling-chat can"
        " make them share it.",
        remedy={switches.FP8_HEAD: False},
    ),
    Signature(
        r"ling-chat: (.*)",
        "The engine refused to start: {0}",
        "`ling-chat engine logs` shows all it said.",
    ),
    Signature(
        r"error: unrecognized arguments: (\S+)",
        "SGLang does not know the flag {0}.",
        "Install the SGLang that ling-chat was made for: pip install 'ling-chat[spark]'.",
    ),
    Signature(
        r"error: argument (\S+): .*",
        "SGLang does not take this value of {0}.",
        "Install the SGLang that ling-chat was made for: pip install 'ling-chat[spark]'.",
    ),
    Signature(
        r"[Pp]ort is already in use|\[Errno 98\]|[Aa]ddress already in use",
        "The engine's port was taken.",
        "Start it again.",
        retry=True,
    ),
    Signature(
        r"sm_121a?' is not defined|sm_121a is not defined|ptxas .*(?:fatal|error)",
        "Triton's own assembler is too old for this GPU.",
        "Set TRITON_PTXAS_PATH to the CUDA toolkit's, such as /usr/local/cuda/bin/ptxas.",
    ),
    Signature(
        r"Could not load any common_ops library",
        "SGLang's kernels are not built for this GPU or this PyTorch.",
        "Install the whole set again: pip install --force-reinstall 'ling-chat[spark]'.",
    ),
    Signature(
        r"no kernel image is available|no kernel image",
        "A library has no kernels for this GPU.",
        "Install builds for it (on a DGX Spark: CUDA 13, sm_121), or use NVIDIA's container and"
        " set LING_CHAT_ENGINE_PYTHON to its Python.",
    ),
    Signature(
        r"OutOfResources.*|out of resource: shared memory.*Hardware limit: (\d+)",
        "A kernel needs more shared memory than this GPU has.",
        "Choose another attention backend, for instance"
        " LING_CHAT_ENGINE_ARGS='--attention-backend flashinfer'.",
    ),
    Signature(
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "Weights and caches do not fit into the share of memory the engine may take.",
        MEMORY_CURE,
    ),
    Signature(
        r"CUDA out of memory|torch\.OutOfMemoryError|NV_ERR_NO_MEMORY|cudaErrorMemoryAllocation",
        "The GPU ran out of memory.",
        MEMORY_CURE,
    ),
    Signature(
        r"No space left on device",
        "The disk is full.",
        "Make room where models, logs and ~/.cache are kept.",
    ),
    Signature(
        r"context_length \((\d+)\) is greater than the derived context_length",
        "The model cannot handle a context of {0} tokens.",
        "Ask for a shorter --context.",
    ),
    Signature(
        r"No module named '([\w.]+)'(?!.*Ignore import error)",
        "The engine's Python lacks the module {0}.",
        "Install the whole set again: pip install 'ling-chat[spark]'.",
    ),
    Signature(
        r"Capture cuda graph failed: (.*)",
        "Recording the CUDA graphs failed: {0}",
        "Turn CUDA graphs off; the engine is slower then, but says more about the cause.",
        remedy={switches.GRAPHS: False},
    ),
    Signature(
        r"KV cache pool is full\. Retract",
        "The conversations no longer fit into the KV cache.",
        "Start a new conversation, or ask for a shorter --context.",
    ),
)
_IGNORED = ("Ignore import error",)
KILLED = (-9, 137)


def diagnose(exit_code: int | None, log_tail: Sequence[str]) -> Diagnosis:
    """What the log's last lines mean; else what the exit code means."""
    lines = [line for line in log_tail if not any(text in line for text in _IGNORED)]
    for signature in SIGNATURES:
        for line in reversed(lines):
            if found := re.search(signature.pattern, line):
                first = (found.groups() or ("",))[0] or ""
                return Diagnosis(
                    signature.reason.replace("{0}", first.strip()[:300]),
                    signature.cure,
                    signature.retry,
                    signature.remedy,
                )
    if exit_code in KILLED:
        return Diagnosis("The engine was killed, most often because memory ran out.", MEMORY_CURE)
    return Diagnosis(
        f"The engine ended with {describe_exit(exit_code)}: {_last_words(lines)}",
        "Start it again; `ling-chat engine logs` shows all it said.",
    )


def _last_words(lines: Sequence[str]) -> str:
    """The last exception, not what SGLang says while it falls."""
    exceptions = [x for x in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b", x.strip())]
    plain = [x for x in lines if x.strip()]
    last = (exceptions or plain or ["it said nothing"])[-1]
    return last.strip()[:200]
