"""Logits from an FP8 head: weight-only, activations stay as they are, sums in float32.

Weights are e4m3 with one float32 scale a row, so a shard of rows needs nothing of the others.
With few rows of activations (decode, and the verify window of NEXTN) the weights need only be
read, once and at full bandwidth: up to four rows can be multiplied and summed, more go to the
tensor cores. Which way is fastest depends on the GPU, so `tune` tries them when a head is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
import triton
import triton.language as tl
from triton.errors import TritonError

FP8_MAX = 448.0  # the largest finite e4m3 (OCP 8-bit floating point, E4M3)
TILE = 8192  # rows of the vocabulary worked on at once outside the kernels
TENSOR_CORE_ROWS = 16  # their least


@dataclass(frozen=True)
class Shape:
    """How one launch is cut: a tile of vocabulary × hidden, threads, and tiles under way.

    Without `stages` it multiplies and sums; with them it goes through the tensor cores.
    """

    vocab: int
    hidden: int
    warps: int
    stages: int = 0


# Rows of activations worked on together -> shapes worth trying. The first of each is what an H200
# found fastest for 157,184 x 2,560, where that was measured (tests/gpu/bench_head.py).
FEW = (
    Shape(64, 128, 4, 3),
    Shape(16, 256, 1, 3),
    Shape(16, 512, 1, 2),
    Shape(32, 256, 2, 3),
    Shape(32, 128, 2, 4),
)
WAYS: dict[int, tuple[Shape, ...]] = {
    1: (Shape(4, 512, 1), Shape(8, 512, 2), Shape(4, 1024, 2)),
    2: (Shape(4, 256, 1), Shape(2, 512, 1), *FEW),
    4: (*FEW, Shape(2, 256, 1), Shape(4, 256, 1)),
    16: FEW,
    64: (Shape(64, 128, 4, 4),),
    128: (Shape(128, 64, 8, 4),),
}
FIRST = {together: shapes[0] for together, shapes in WAYS.items()}


def quantise(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """FP8 e4m3 weights [rows, columns] and their float32 scales [rows] from a wider matrix.

    A row's scale maps its largest magnitude to 448; a row of zeros gets the scale 1.
    """
    quantised = torch.empty_like(weight, dtype=torch.float8_e4m3fn)
    scales = torch.empty(len(weight), dtype=torch.float32, device=weight.device)
    for start in range(0, len(weight), TILE):
        tile = weight[start : start + TILE].float()
        scale = tile.abs().amax(dim=1) / FP8_MAX
        scale = torch.where(scale > 0, scale, 1.0)
        scales[start : start + TILE] = scale
        scaled = (tile / scale[:, None]).clamp(-FP8_MAX, FP8_MAX)
        quantised[start : start + TILE] = scaled.to(torch.float8_e4m3fn)
    return quantised, scales


@triton.jit(do_not_specialize=["rows"])
def _few_rows(  # type: ignore[no-untyped-def]
    x_ptr,
    w_ptr,
    scale_ptr,
    out_ptr,
    rows,
    vocab,
    hidden: tl.constexpr,
    ROWS: tl.constexpr,
    VOCAB: tl.constexpr,
    HIDDEN: tl.constexpr,
):
    """out[r, v] = scale[v] * sum_k w[v, k] * x[r, k], multiplied and summed"""
    r = tl.arange(0, ROWS)[:, None, None]
    v = (tl.program_id(0) * VOCAB + tl.arange(0, VOCAB))[None, :, None]
    k = tl.arange(0, HIDDEN)[None, None, :]
    products = tl.zeros([ROWS, VOCAB, HIDDEN], tl.float32)
    # Unrolled, so that the next tiles' loads are under way while one is worked on.
    for start in tl.static_range(0, hidden, HIDDEN):
        in_hidden = start + k < hidden
        w = tl.load(
            w_ptr + v.to(tl.int64) * hidden + start + k,
            (v < vocab) & in_hidden,
            0.0,
            eviction_policy="evict_first",
        )
        x = tl.load(x_ptr + r * hidden + start + k, (r < rows) & in_hidden, 0.0)
        products += w.to(tl.float32) * x.to(tl.float32)
    r = tl.arange(0, ROWS)
    v = tl.program_id(0) * VOCAB + tl.arange(0, VOCAB)
    scale = tl.load(scale_ptr + v, v < vocab, 0.0)
    logits = tl.sum(products, axis=2) * scale[None, :]
    tl.store(
        out_ptr + r[:, None] * vocab + v[None, :],
        logits.to(out_ptr.dtype.element_ty),
        (r < rows)[:, None] & (v < vocab)[None, :],
    )


@triton.jit(do_not_specialize=["rows"])
def _any_rows(  # type: ignore[no-untyped-def]
    x_ptr,
    w_ptr,
    scale_ptr,
    out_ptr,
    rows,
    vocab,
    hidden,
    ROWS: tl.constexpr,
    VOCAB: tl.constexpr,
    HIDDEN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """out[r, v] = scale[v] * sum_k w[v, k] * x[r, k], on the tensor cores

    Weights are the left operand, so that few rows waste little of a tensor core's tile. Programs
    that share a tile of weights run next to each other, so that memory is asked for it once.
    """
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    v = (tl.program_id(1) * VOCAB + tl.arange(0, VOCAB)).to(tl.int64)
    k = tl.arange(0, HIDDEN)
    in_rows, in_vocab = r < rows, v < vocab
    logits = tl.zeros([VOCAB, ROWS], tl.float32)
    for start in tl.range(0, hidden, HIDDEN, num_stages=STAGES):
        in_hidden = start + k < hidden
        w = tl.load(
            w_ptr + v[:, None] * hidden + (start + k)[None, :],
            in_vocab[:, None] & in_hidden[None, :],
            0.0,
        )
        x = tl.load(
            x_ptr + r[None, :] * hidden + (start + k)[:, None],
            in_rows[None, :] & in_hidden[:, None],
            0.0,
        )
        # By way of float32: e4m3 straight to bfloat16 is a conversion at an eighth of the rate.
        logits = tl.dot(w.to(tl.float32).to(x.dtype), x, logits)
    scale = tl.load(scale_ptr + v, in_vocab, 0.0)
    tl.store(
        out_ptr + r[:, None] * vocab + v[None, :],
        tl.trans(logits * scale[:, None]).to(out_ptr.dtype.element_ty),
        in_rows[:, None] & in_vocab[None, :],
    )


def run(
    x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, together: int, shape: Shape
) -> torch.Tensor:
    """Logits [rows, vocab] of hidden states [rows, hidden], `together` rows at once, on a GPU.

    A shape that multiplies and sums takes no more than `together` rows in all.
    """
    rows, (vocab, hidden) = len(x), weight.shape
    out = torch.empty((rows, vocab), dtype=x.dtype, device=x.device)
    cut = {"VOCAB": shape.vocab, "HIDDEN": shape.hidden, "num_warps": shape.warps}
    tiles = triton.cdiv(vocab, shape.vocab)
    if not shape.stages:
        _few_rows[(tiles,)](x, weight, scales, out, rows, vocab, hidden, ROWS=together, **cut)
        return out
    together = max(together, TENSOR_CORE_ROWS)
    _any_rows[(triton.cdiv(rows, together), tiles)](
        x, weight, scales, out, rows, vocab, hidden, ROWS=together, STAGES=shape.stages, **cut
    )
    return out


def by_tiles(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The same logits without a kernel of ours: for CPUs, and GPUs that know no FP8."""
    out = torch.empty((len(x), len(weight)), dtype=x.dtype, device=x.device)
    wide = x.float()
    for start in range(0, len(weight), TILE):
        tile = weight[start : start + TILE].float()
        out[:, start : start + TILE] = (wide @ tile.T) * scales[start : start + TILE]
    return out


def logits(
    x: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    shapes: Mapping[int, Shape] = FIRST,
) -> torch.Tensor:
    """`x @ (weight * scales[:, None]).T`, any number of rows: [rows, hidden] -> [rows, vocab].

    The result has the dtype of `x`. The way is chosen by the number of rows alone, so that a
    captured CUDA graph and an eager pass do the same.
    """
    rows = len(x)
    if not _has_fp8(x.device):
        return by_tiles(x, weight, scales)
    if rows == 0:
        return x.new_empty((0, len(weight)))
    together = next((most for most in shapes if rows <= most), max(shapes))
    return run(x, weight, scales, together, shapes[together])


def tune(weight: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> dict[int, Shape]:
    """The fastest shape for each number of rows, tried on this very head.

    Every kernel has then run once, so none is compiled in the middle of serving or of a capture.
    Nothing where `logits` needs no kernel.
    """
    if not _has_fp8(weight.device):
        return {}
    shapes = {}
    for together, tried in WAYS.items():
        x = torch.ones((together, weight.shape[1]), dtype=dtype, device=weight.device)
        times = {
            shape: _milliseconds(partial(run, x, weight, scales, together, shape))
            for shape in tried
        }
        shapes[together] = min(times, key=lambda shape: times[shape])
    return shapes


def _milliseconds(call: Callable[[], torch.Tensor], calls: int = 8, groups: int = 3) -> float:
    """Time of one call, of the fastest group; infinite for a kernel that this GPU cannot run."""
    try:
        call()
    except TritonError:
        return float("inf")
    times: list[float] = []
    for _ in range(groups):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    return min(times)


def _has_fp8(device: torch.device) -> bool:
    return device.type == "cuda" and bool(torch.cuda.get_device_capability(device) >= (8, 9))
