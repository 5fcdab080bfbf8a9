"""The SwiGLU clamp of Ling's last expert layers, which SGLang's Humming runner drops.

SGLang's Triton path computes `min(silu(gate), L) * clamp(up, -L, L)` where a layer has a
`gemm1_clamp_limit` (`_swiglu_silu_clamp_mul` in `moe_runner/triton_utils/fused_moe.py`; compiled,
so in float32, with one rounding at the end). Humming's runner reads only `swiglu_limit`, which
clamps *before* SiLU and means another thing.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 1024

applied_layers: set[int] = set()
"""Layers whose activation has run with the clamp in this process."""
calls = 0
"""How often: counts eager passes and graph captures, not replays of a captured graph."""


@triton.jit
def _clamped_swiglu(x_ptr, out_ptr, width, limit, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gate = tl.load(x_ptr + row * 2 * width + column, inside, 0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * width + width + column, inside, 0.0).to(tl.float32)
    # The limits let NaN through, as torch.clamp does: an engine gone wrong must not look healthy.
    gate = tl.minimum(gate * tl.sigmoid(gate), limit, propagate_nan=tl.PropagateNan.ALL)
    up = tl.clamp(up, -limit, limit, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + row * width + column, (gate * up).to(out_ptr.dtype.element_ty), inside)


def clamped_swiglu(inputs: torch.Tensor, outputs: torch.Tensor, limit: float) -> None:
    """Write `min(silu(gate), limit) * clamp(up, -limit, limit)` into `outputs`.

    `inputs` is [..., 2 * width], gate first, then up; `outputs` is [..., width]; contiguous.
    """
    width = outputs.shape[-1]
    gate_up, out = inputs.view(-1, 2 * width), outputs.view(-1, width)
    if inputs.is_cuda:
        grid = (len(out), triton.cdiv(width, BLOCK))
        _clamped_swiglu[grid](gate_up, out, width, float(limit), BLOCK)
        return
    gate, up = gate_up.float().chunk(2, dim=-1)
    out.copy_(torch.nn.functional.silu(gate).clamp(max=limit) * up.clamp(-limit, limit))


def apply_activation(
    original: Callable[..., None], runner: Any, inputs: torch.Tensor, outputs: torch.Tensor
) -> None:
    """Around `HummingRunnerCore.apply_activation`: clamp where the layer's config has the limit."""
    global calls  # noqa: PLW0603
    config = runner.config
    limit = config.gemm1_clamp_limit
    # With an alpha the limit belongs to another activation (gpt-oss), not to Ling's.
    if limit is None or config.gemm1_alpha is not None or runner.activation != "silu":
        return original(runner, inputs, outputs)
    clamped_swiglu(inputs, outputs, limit)
    applied_layers.add(int(config.layer_id))
    calls += 1
    return None
