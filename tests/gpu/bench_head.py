"""Ways to compute the LM head's logits, side by side on one GPU: time and error.

    bench_head.py OUT.json

"ours" is the finished path: the shapes that `tune` chose on this GPU, by the number of rows. Times
are of one call inside a captured CUDA graph of twenty, the way serving runs them; medians. Errors
are ||out - ref|| / ||ref|| against float64 of the BF16 head, on 32,768 of its rows. Every way must
be capturable, and a replay must give what an eager call gives, bit for bit.
"""

import argparse
import json
import statistics
import sys
import time
import traceback
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from engine_bridge.sglang_plugin import clamp, head_kernels

VOCAB, HIDDEN = 157_184, 2_560
CALLS, REPLAYS = 20, 15
FEW, MANY = (1, 2, 3, 4, 8, 16), (64, 1024)
PROBE = slice(0, 32_768)


class World:
    """A Gaussian head in BF16 and FP8, activations, and what float64 makes of them."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.plain = torch.randn(VOCAB, HIDDEN, device="cuda", dtype=torch.bfloat16)
        self.weight, self.scales = head_kernels.quantise(self.plain)
        self.wide = self.plain[PROBE].double()

    def activations(self, rows: int) -> torch.Tensor:
        return torch.randn(rows, HIDDEN, device="cuda", dtype=torch.bfloat16)

    def error(self, out: torch.Tensor, x: torch.Tensor) -> float:
        reference = x.double() @ self.wide.T
        return float((out[:, PROBE].double() - reference).norm() / reference.norm())


def graph_of(call, x, calls=CALLS):
    """`calls` calls of `call(x)` captured into one CUDA graph, and the last one's output."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            out = call(x)
    return graph, out


def milliseconds(graph, calls=CALLS) -> float:
    times = []
    for _ in range(REPLAYS + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    return statistics.median(times[3:])


def measure(world, call, rows, x=None):
    """Time, error, and whether a replay on new activations equals an eager call."""
    try:
        x = world.activations(rows) if x is None else x
        graph, out = graph_of(call, x, 4 if rows > 64 else CALLS)
        ms = milliseconds(graph, 4 if rows > 64 else CALLS)
        x.copy_(world.activations(rows))
        graph.replay()
        torch.cuda.synchronize()
        same = bool(torch.equal(out, call(x)))
        return {"ms": round(ms, 5), "error": world.error(out, x), "replay_equals_eager": same}
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}


def scaled_mm(world):
    """torch's row-wise W8A8, activations quantised in the call."""
    weight, scales = world.weight.T, world.scales[None, :]

    def call(x):
        amax = x.float().abs().amax(dim=1, keepdim=True).clamp_min(1e-12)
        scale = amax / head_kernels.FP8_MAX
        quantised = (x / scale).to(torch.float8_e4m3fn)
        return torch._scaled_mm(
            quantised, weight, scale_a=scale, scale_b=scales, out_dtype=torch.bfloat16
        )

    return call


def humming(world, kind="float8e4m3"):
    """Humming's own dense layer."""
    from humming.config import GemmType
    from humming.layer import HummingLayer
    from humming.tune import get_heuristics_config

    layer = HummingLayer(
        shape_n=VOCAB, shape_k=HIDDEN, torch_dtype=torch.bfloat16,
        weight_config={"quant_method": "humming", "b_dtype": kind, "weight_scale_group_size": 0},
    ).cuda()  # fmt: skip
    layer.load_from_unquantized(world.plain)
    layer.transform()
    tuning = get_heuristics_config(
        layer_config=layer.humming_config, use_f16_accum=False, use_batch_invariant=False,
        use_m_major_input_scale=False, gemm_type=GemmType.DENSE,
    )  # fmt: skip
    compute = json.dumps({"gemm_type": "dense", "use_f16_accum": False})
    tuning = json.dumps(tuning)
    return lambda x: layer(x, compute_config=compute, tuning_config=tuning)


def every_shape(world):
    """Each shape that `tune` may choose, on as many rows as it is meant for."""
    found = {}
    for together, shapes in head_kernels.WAYS.items():
        for shape in shapes:
            call = partial(run_as, world, together, shape)
            found[f"{together} rows, {shape}"] = measure(world, call, together)
    return found


def run_as(world, together, shape, x):
    return head_kernels.run(x, world.weight, world.scales, together, shape)


def clamp_facts():
    """The clamp's kernel against SGLang's own Triton path, compiled on this GPU."""
    from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import _swiglu_silu_clamp_mul

    facts = {}
    for rows in (1, 8, 32, 4096):
        x = torch.randn(rows, 2 * 768, device="cuda", dtype=torch.bfloat16) * 5
        out = torch.empty(rows, 768, device="cuda", dtype=torch.bfloat16)
        clamp.clamped_swiglu(x, out, 4.0)
        reference = _swiglu_silu_clamp_mul(x, 4.0)
        gate, up = x.double().chunk(2, dim=-1)
        exact = torch.nn.functional.silu(gate).clamp(max=4.0) * up.clamp(-4.0, 4.0)
        facts[rows] = {
            "differing": int((out != reference).sum()), "of": out.numel(),
            "largest_difference": float((out.float() - reference.float()).abs().max()),
            "error": float((out.double() - exact).norm() / exact.norm()),
            "triton_path_error": float((reference.double() - exact).norm() / exact.norm()),
        }  # fmt: skip
    return facts


def table(report):
    bf16 = report["ways"]["bf16"]
    for name, rows in report["ways"].items():
        for number, seen in rows.items():
            if "ms" not in seen:
                print(f"{name:22} {number:>5} rows  {seen['failed']}")
                continue
            ratio = bf16[number]["ms"] / seen["ms"]
            replay = "replay = eager" if seen["replay_equals_eager"] else "REPLAY DIFFERS"
            print(
                f"{name:22} {number:>5} rows  {seen['ms']:9.4f} ms  {ratio:5.2f} x BF16  "
                f"error {seen['error']:.4f}  {replay}"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    world = World()
    began = time.perf_counter()
    shapes = head_kernels.tune(world.weight, world.scales, torch.bfloat16)
    report = {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
        "capability": torch.cuda.get_device_capability(), "ways": {},
        "tune_s": round(time.perf_counter() - began, 2),
        "chosen": {rows: str(shape) for rows, shape in shapes.items()},
    }  # fmt: skip
    print(f"{report['gpu']}: tuned in {report['tune_s']} s, kernels compiled: {report['chosen']}")
    ways = {
        "bf16": lambda: lambda x: x @ world.plain.T,
        "ours": lambda: lambda x: head_kernels.logits(x, world.weight, world.scales, shapes),
        "scaled_mm W8A8": lambda: scaled_mm(world),
        "humming FP8": lambda: humming(world),
        "humming INT6": lambda: humming(world, "uint6"),
    }
    for name, make in ways.items():
        try:
            call = make()
        except Exception as error:
            traceback.print_exc()
            report["ways"][name] = {1: {"failed": f"{type(error).__name__}: {str(error)[:300]}"}}
            continue
        report["ways"][name] = {n: measure(world, call, n) for n in (*FEW, *MANY)}
    table(report)
    report["shapes"] = every_shape(world)
    for name, seen in report["shapes"].items():
        print(f"   {name}: {seen.get('ms', seen.get('failed'))} ms")
    try:
        report["clamp"] = clamp_facts()
    except Exception as error:
        report["clamp"] = f"{type(error).__name__}: {str(error)[:300]}"
    print(json.dumps(report["clamp"]))
    options.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
