"""Logits from an FP8 head: weight-only, activations stay as they are, sums in float32.

Weights are e4m3 with one float32 scale a row, so a shard of rows needs nothing of the others.
With few rows of activations (decode, and the verify window of NEXTN) the weights need only be
read, once and at full bandwidth: one row is multiplied and summed, more go to the tensor cores.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

FP8_MAX = 448.0  # the largest finite e4m3 (OCP 8-bit floating point, E4M3)
TILE = 8192  # rows of the vocabulary worked on at once outside the kernels


@dataclass(frozen=True)
class Shape:
    """How one launch is cut: a tile of vocabulary × hidden, threads, and tiles under way."""

    vocab: int
    hidden: int
    warps: int
    stages: int = 1


# Shapes: the fastest of 34 and 28 tried on an H200 for 157,184 x 2,560 (tests/gpu/bench_head.py).
ONE_ROW = Shape(4, 512, 1)
# Rows of activations worked on together -> shape; 16 is the tensor cores' least.
ROWS = {
    16: Shape(64, 128, 4, 3),
    64: Shape(64, 128, 4, 4),
    128: Shape(128, 64, 8, 4),
}


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


@triton.jit
def _one_row(  # type: ignore[no-untyped-def]
    x_ptr,
    w_ptr,
    scale_ptr,
    out_ptr,
    vocab,
    hidden: tl.constexpr,
    VOCAB: tl.constexpr,
    HIDDEN: tl.constexpr,
):
    """out[v] = scale[v] * sum_k w[v, k] * x[k]"""
    v = tl.program_id(0) * VOCAB + tl.arange(0, VOCAB)
    k = tl.arange(0, HIDDEN)
    in_vocab = v < vocab
    w_rows = w_ptr + v.to(tl.int64)[:, None] * hidden
    products = tl.zeros([VOCAB, HIDDEN], tl.float32)
    # Unrolled, and for a hidden size below HIDDEN no loop at all: half the registers, so twice
    # the loads under way.
    for start in tl.static_range(0, hidden, HIDDEN):
        in_hidden = start + k < hidden
        w = tl.load(
            w_rows + (start + k)[None, :],
            in_vocab[:, None] & in_hidden[None, :],
            0.0,
            eviction_policy="evict_first",
        )
        x = tl.load(x_ptr + start + k, in_hidden, 0.0).to(tl.float32)
        products += w.to(tl.float32) * x[None, :]
    scale = tl.load(scale_ptr + v, in_vocab, 0.0)
    logits = tl.sum(products, axis=1) * scale
    tl.store(out_ptr + v, logits.to(out_ptr.dtype.element_ty), in_vocab)


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
    """out[r, v] = scale[v] * sum_k w[v, k] * x[r, k]

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


def one_row(
    x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, shape: Shape = ONE_ROW
) -> torch.Tensor:
    """Logits [1, vocab] of hidden states [1, hidden], on a GPU."""
    vocab, hidden = weight.shape
    out = torch.empty((1, vocab), dtype=x.dtype, device=x.device)
    _one_row[(triton.cdiv(vocab, shape.vocab),)](
        x, weight, scales, out, vocab, hidden,
        VOCAB=shape.vocab, HIDDEN=shape.hidden, num_warps=shape.warps,
    )  # fmt: skip
    return out


def any_rows(
    x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, together: int, shape: Shape
) -> torch.Tensor:
    """Logits [rows, vocab] of hidden states [rows, hidden], `together` rows at once, on a GPU."""
    rows, (vocab, hidden) = len(x), weight.shape
    out = torch.empty((rows, vocab), dtype=x.dtype, device=x.device)
    _any_rows[(triton.cdiv(rows, together), triton.cdiv(vocab, shape.vocab))](
        x, weight, scales, out, rows, vocab, hidden,
        ROWS=together, VOCAB=shape.vocab, HIDDEN=shape.hidden, STAGES=shape.stages,
        num_warps=shape.warps,
    )  # fmt: skip
    return out


def by_tiles(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The same logits without a kernel of ours: for CPUs, and GPUs that know no FP8."""
    out = torch.empty((len(x), len(weight)), dtype=x.dtype, device=x.device)
    wide = x.float()
    for start in range(0, len(weight), TILE):
        tile = weight[start : start + TILE].float()
        out[:, start : start + TILE] = (wide @ tile.T) * scales[start : start + TILE]
    return out


def logits(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """`x @ (weight * scales[:, None]).T`, any number of rows: [rows, hidden] -> [rows, vocab].

    The result has the dtype of `x`. The way is chosen by the number of rows alone, so that a
    captured CUDA graph and an eager pass do the same.
    """
    rows = len(x)
    if not x.is_cuda or torch.cuda.get_device_capability(x.device) < (8, 9):
        return by_tiles(x, weight, scales)
    if rows == 0:
        return x.new_empty((0, len(weight)))
    if rows == 1:
        return one_row(x, weight, scales)
    together = next((most for most in ROWS if rows <= most), max(ROWS))
    return any_rows(x, weight, scales, together, ROWS[together])


def compile_all(weight: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> None:
    """Run every kernel once, so that none is compiled in the middle of serving or of a capture."""
    if weight.is_cuda:
        for rows in (1, *ROWS):
            x = torch.zeros((rows, weight.shape[1]), dtype=dtype, device=weight.device)
            logits(x, weight, scales)
        torch.cuda.synchronize(weight.device)
