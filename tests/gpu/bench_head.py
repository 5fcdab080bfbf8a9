"""Ways to compute the LM head's logits, side by side on one GPU: time and error.

    bench_head.py OUT.json [--quick]

Times are of one call inside a captured CUDA graph of twenty, the way serving runs them; medians.
Errors are ||out - ref|| / ||ref|| against float64 of the BF16 head, on 32,768 of its rows. Every
way must be capturable, and a replay must give what an eager call gives, bit for bit.
"""

import argparse
import itertools
import json
import statistics
import sys
import traceback
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from engine_bridge.sglang_plugin import clamp, head_kernels
from engine_bridge.sglang_plugin.head_kernels import Shape

VOCAB, HIDDEN = 157_184, 2_560
CALLS, REPLAYS = 20, 15
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


def one_row_shapes(quick):
    grid = itertools.product((1, 2, 4, 8, 16), (512, 1024, 4096), (1, 2, 4, 8, 16))
    shapes = [Shape(*each) for each in grid if 16 <= each[0] * each[1] / (32 * each[2]) <= 64]
    return shapes[::8] if quick else shapes


def any_rows_shapes(quick):
    grid = itertools.product((32, 64, 128), (128, 256), (4, 8), (3, 4, 5))
    shapes = [
        Shape(*each)
        for each in grid
        if 32 <= each[0] * each[1] / (32 * each[2]) <= 128
        and 12_000 <= (each[0] + 32) * each[1] * (each[3] - 1) <= 100_000
    ]
    return shapes[::8] if quick else shapes


def search(world, rows, calls):
    """Every way of `calls` by its time, fastest first."""
    found = []
    x = world.activations(rows)
    for name, call in calls:
        seen = measure(world, call, rows, x)
        found.append({"shape": name} | seen)
    return sorted(found, key=lambda each: each.get("ms", 1e9))


def of_one(world, shape):
    return lambda x: head_kernels.one_row(x, world.weight, world.scales, shape)


def of_any(world, together, shape):
    return lambda x: head_kernels.any_rows(x, world.weight, world.scales, together, shape)


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
    parser.add_argument("--quick", action="store_true", help="an eighth of the shapes")
    options = parser.parse_args()
    world = World()
    head_kernels.compile_all(world.weight, world.scales, torch.bfloat16)
    report = {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
        "capability": torch.cuda.get_device_capability(), "ways": {}, "search": {},
    }  # fmt: skip
    ways = {
        "bf16": lambda: lambda x: x @ world.plain.T,
        "ours": lambda: lambda x: head_kernels.logits(x, world.weight, world.scales),
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
        report["ways"][name] = {n: measure(world, call, n) for n in (1, 4, 16, 64, 1024)}
    table(report)
    try:
        report["clamp"] = clamp_facts()
    except Exception as error:
        report["clamp"] = f"{type(error).__name__}: {str(error)[:300]}"
    print(json.dumps(report["clamp"]))
    options.out.write_text(json.dumps(report, indent=1))

    quick = options.quick
    ones = [(str(shape), of_one(world, shape)) for shape in one_row_shapes(quick)]
    few = [(str(shape), of_any(world, 16, shape)) for shape in any_rows_shapes(quick)]
    report["search"]["one_row, 1 row"] = search(world, 1, ones)
    report["search"]["any_rows(16), 4 rows"] = search(world, 4, few)
    best = [each for each in few if each[0] in
            {seen["shape"] for seen in report["search"]["any_rows(16), 4 rows"][:6]}]  # fmt: skip
    report["search"]["any_rows(16), 1 row"] = search(world, 1, best)
    report["search"]["any_rows(16), 16 rows"] = search(world, 16, best)
    big = [Shape(128, 128, 8, 3), Shape(128, 64, 4, 3), Shape(128, 64, 8, 4), Shape(256, 64, 8, 3),
           Shape(64, 128, 4, 4)]  # fmt: skip
    for together, rows in ((64, 64), (128, 1024)):
        calls = [(str(shape), of_any(world, together, shape)) for shape in big]
        report["search"][f"any_rows({together}), {rows} rows"] = search(world, rows, calls)
    for name, found in report["search"].items():
        rows = int(name.split(", ")[1].split()[0])
        bf16 = report["ways"]["bf16"][rows]["ms"]
        print(f"-- {name}: {len(found)} shapes, BF16 {bf16} ms")
        for seen in found[:5]:
            ratio = f"{bf16 / seen['ms']:.2f} x" if "ms" in seen else "failed"
            print(f"   {seen['shape']}  {seen.get('ms')} ms  {ratio}  error {seen.get('error')}")
    options.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
