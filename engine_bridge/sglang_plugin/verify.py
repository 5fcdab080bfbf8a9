"""Checking drafts in a long context on the whole GPU, without planning on the CPU.

SGLang's Triton attention checks drafts with its prefill kernel, which walks the whole context once
for each head on a few of the GPU's processors: on an H200, 30,000 tokens take 4.56 ms a layer. The
kernel that splits the context among all of them (`sglang.kernels.ops.attention.verify_mla`, 0.12 ms
there) is part of SGLang, but used on AMD's GPUs only. FlashInfer is fast too, but plans each round
on the CPU, and SGLang captures no CUDA graph of the draft's last pass with it: a round can take
twice as long for that. Here the split kernel serves any GPU, for the target's check and for the
pass in which the draft takes over what was accepted. Prompts stay with the backend that reads them
for the target; SGLang would give the draft's to Triton, which is slow at long ones.

The kernel is right for a chain of drafts (top-k 1) only; SGLang has the same rule.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from engine_bridge.sglang_plugin.refusal import Refused

WHAT = "split verification"
ROW = 576
"""Numbers that MLA keeps of a token: 512 latent, 64 rotary."""
SPLITS = 64
"""Parts a context is cut into, at most: 32 of the larger blocks leave half of an H200 idle."""
LARGE, SMALL = (16, 32, 8), (8, 32, 8)
"""Heads and cached tokens a block works on, and its warps: the fastest of eleven on an H200 from
8,192 tokens on, and the fastest of those that fit the shared memory of a Spark (99 KiB)."""
LARGE_BYTES = 110_592
"""Shared memory of a large block compiled for sm_121; 106,496 for sm_90."""
_OF_THE_KERNEL = frozenset(
    {"logit_cap", "sliding_window_size", "sinks", "window_kv_offsets", "xai_temperature_len"}
)

calls: Counter[str] = Counter()
"""What the split kernel served ("target", "draft") and what it left to another ("target_declined",
"draft_declined"): eager passes and graph captures, not replays of a captured graph."""


def block_for(shared_memory: int) -> tuple[int, int, int]:
    """The block for a GPU by the bytes of shared memory that one block may have there."""
    return LARGE if shared_memory >= LARGE_BYTES else SMALL


def prepare(original: Callable[..., None], backend: Any, *args: Any, **kw: Any) -> None:
    """Around `TritonAttnBackend.__init__`: the split kernel checks drafts.

    Raises Refused where this SGLang's backend has no such kernel.
    """
    original(backend, *args, **kw)
    if not backend.use_mla or backend.topk != 1:
        return
    if not {"use_verify_shared_kv", "verify_shared_kv_fwd"} <= set(vars(backend)):
        raise Refused(WHAT, "this SGLang's Triton attention has no kernel for it")
    _fit_this_gpu()
    backend.use_verify_shared_kv = True
    backend.verify_shared_kv_fwd = _counted("target", backend.verify_shared_kv_fwd)


def mix(original: Callable[[Any], Any], factory: Any) -> Any:
    """Around `DraftBackendFactory.create_draft_extend_backend`: what serves the draft's prompts
    and its taking over of accepted tokens, each by the backend that is fast at it."""
    from sglang.srt.layers.attention.triton_backend import TritonAttnBackend
    from sglang.srt.runtime_context import attention_backends

    triton = original(factory)
    if attention_backends()[0] != "flashinfer" or not isinstance(triton, TritonAttnBackend):
        return triton
    requests = triton.req_to_token_pool.size
    triton.extend_attention_fwd = _split_first(triton.extend_attention_fwd, requests)
    name, flashinfer = factory._create_flashinfer_prefill_backend()
    usual_metadata, usual_forward = triton.init_forward_metadata, triton.forward_extend

    def metadata(batch: Any) -> None:
        reads = batch.forward_mode.is_extend_without_speculative()
        (flashinfer.init_forward_metadata if reads else usual_metadata)(batch)

    def forward(q: Any, k: Any, v: Any, layer: Any, batch: Any, *args: Any, **kw: Any) -> Any:
        reads = batch.forward_mode.is_extend_without_speculative()
        run = flashinfer.forward_extend if reads else usual_forward
        return run(q, k, v, layer, batch, *args, **kw)

    # It stays an object of Triton's class: for FlashInfer's, SGLang captures no graph of this pass.
    triton.init_forward_metadata, triton.forward_extend = metadata, forward
    triton.init_mha_chunk_metadata = flashinfer.init_mha_chunk_metadata
    triton.prefill_attention_backend_str = name
    return triton


def facts() -> dict[str, Any] | None:
    """The kernel's block and calls; None while it served nothing."""
    if not calls:
        return None
    from sglang.kernels.ops.attention import verify_mla

    return {"block": list(verify_mla.block_config(ROW)), "calls": dict(calls)}


def _fit_this_gpu() -> None:
    """Give SGLang's kernel the block for this GPU; its own was chosen on AMD's."""
    import torch
    from sglang.kernels.ops.attention import verify_mla

    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    verify_mla._BLOCK_CONFIG[ROW] = block_for(properties.shared_memory_per_block_optin)
    verify_mla.MAX_N_SPLITS = SPLITS


def _counted(who: str, split: Callable[..., bool]) -> Callable[..., bool]:
    def counted(*args: Any, **kw: Any) -> bool:
        taken = split(*args, **kw)
        calls[who if taken else f"{who}_declined"] += 1
        return taken

    return counted


def _split_first(whole: Callable[..., None], requests: int) -> Callable[..., None]:
    """`extend_attention_fwd` for a backend that only ever takes over accepted tokens: the split
    kernel needs a context that is not empty, and here it holds the prompt at least. The kernel has
    room for `requests` at once, as for the target: a captured graph keeps pointing at that room."""
    from sglang.kernels.ops.attention.verify_mla import verify_shared_kv_fwd

    split = _counted("draft", verify_shared_kv_fwd)

    def extend(*args: Any, **kw: Any) -> None:
        known = {name: value for name, value in kw.items() if name in _OF_THE_KERNEL}
        if kw.get("score_mod") is not None or not split(*args, **known, max_bs=requests):
            whole(*args, **kw)

    return extend
