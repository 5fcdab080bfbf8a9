"""Ways to check four drafts against a long context, side by side on one GPU: time and error.

    bench_verify.py OUT.json

One layer of Ling's attention (32 heads, 576 numbers a cached token, pages of 64 in random order):
the prefill kernel that SGLang's Triton backend uses on NVIDIA's GPUs, SGLang's split kernel with
the block it has, and with ours (`engine_bridge.sglang_plugin.verify`; the smaller one is a
Spark's). Times are of one call inside a captured CUDA graph of twenty, medians; errors are
||out - ref|| / ||ref|| against float64.
"""

import argparse
import json
import statistics
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from sglang.kernels.ops.attention import verify_mla
from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd

from engine_bridge.sglang_plugin import verify

HEADS, DRAFTS, LATENT = 32, 4, 512
SCALE = 192**-0.5
PAGE = 64
CONTEXTS = (5, 63, 65, 1024, 8192, 30_000, 131_072, 262_000)
CALLS, REPLAYS = 20, 9
BLOCKS = {
    "split, SGLang's block": ((4, 64, 8), 32),
    "split, small block": (verify.SMALL, verify.SPLITS),
    "split, large block": (verify.LARGE, verify.SPLITS),
}


class World:
    """A cache of random rows, four drafts after `context` of them, and what float64 makes of it."""

    def __init__(self, cache: torch.Tensor, context: int) -> None:
        def random(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

        self.cache, self.out = cache, random(DRAFTS, HEADS, LATENT)
        self.queries, self.keys = random(DRAFTS, HEADS, verify.ROW) * 0.3, random(DRAFTS, 1, 576)
        self.values = self.keys[..., :LATENT].contiguous()
        pages = torch.randperm(len(cache) // PAGE, device="cuda")
        slots = (pages[:, None] * PAGE + torch.arange(PAGE, device="cuda")).flatten()[:context]
        # As in a captured graph: room for the longest context, the rest of it unused.
        self.slots = torch.zeros(len(cache), device="cuda", dtype=torch.int64)
        self.slots[:context] = slots
        self.rows = torch.tensor([0, DRAFTS], device="cuda", dtype=torch.int32)
        self.lengths = torch.tensor([0, context], device="cuda", dtype=torch.int32)
        keys = torch.cat([cache[slots, 0], self.keys[:, 0]]).double()
        reference = []
        for draft in range(DRAFTS):
            seen = keys[: context + draft + 1]
            scores = self.queries[draft].double() @ seen.T * SCALE
            reference.append(torch.softmax(scores, -1) @ seen[:, :LATENT])
        self.reference = torch.stack(reference)

    def call(self, kernel, **more) -> None:
        taken = kernel(
            self.queries, self.keys, self.values, self.out, self.cache, self.cache[..., :LATENT],
            self.rows, self.lengths, self.slots, None, True, None, DRAFTS, 1.0, 1.0, SCALE, **more,
        )  # fmt: skip
        assert taken is not False

    def error(self) -> float:
        return float((self.out.double() - self.reference).norm() / self.reference.norm())


def choose(block: tuple[int, int, int], splits: int) -> None:
    """Set the split kernel's heads, cached tokens and warps of a block, and the most splits."""
    verify_mla._BLOCK_CONFIG[verify.ROW], verify_mla.MAX_N_SPLITS = block, splits
    verify_mla._VMLA_CACHE.clear()


def milliseconds(call) -> float:
    """Median time of one call in a captured graph of `CALLS`."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times = []
    for _ in range(REPLAYS + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / CALLS)
    return statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: ms a layer (error)")
    cache = torch.randn(262_144, 1, verify.ROW, device="cuda", dtype=torch.bfloat16)
    found = {}
    for context in CONTEXTS:
        world = World(cache, context)
        found[context] = {}
        for name in ("prefill kernel", *BLOCKS):
            if name in BLOCKS:
                choose(*BLOCKS[name])
                call = partial(world.call, verify_mla.verify_shared_kv_fwd, max_bs=1)
            else:
                call = partial(world.call, extend_attention_fwd, page_size=PAGE)
            call()
            error = world.error()
            found[context][name] = {"ms": round(milliseconds(call), 4), "error": round(error, 5)}
            assert error < 0.004, (name, error)
        said = ", ".join(f"{name} {x['ms']} ({x['error']})" for name, x in found[context].items())
        print(f"{context:>7} tokens: {said}", flush=True)
    out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
