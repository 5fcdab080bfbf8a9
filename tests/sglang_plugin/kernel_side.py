"""Runs where Triton is installed: the plugin's kernels without a GPU, as JSON on standard output.

TRITON_INTERPRET=1 kernel_side.py interpret     their results, on odd sizes
kernel_side.py compile                          what the compiler makes of them, per GPU
"""

import json
import sys

import torch

from engine_bridge.sglang_plugin import clamp, head_kernels
from engine_bridge.sglang_plugin.head_kernels import Shape


def difference(out, reference):
    return float((out.double() - reference.double()).norm() / reference.double().norm())


def interpret():
    """Kernel against tiles. The interpreter rounds to BF16 wrongly, so other dtypes stand in."""
    torch.manual_seed(0)
    seen = {}
    for vocab, hidden in ((200, 272), (64, 128), (33, 80)):
        weight, scales = head_kernels.quantise(torch.randn(vocab, hidden))
        for rows, together, shape in (
            *((rows, 16, Shape(64, 64, 4, 2)) for rows in (1, 2, 4, 17, 35)),
            *((rows, together, Shape(16, 128, 4)) for rows, together in ((1, 1), (2, 2), (3, 4))),
        ):
            x = torch.randn(rows, hidden, dtype=torch.float16)
            out = head_kernels.run(x, weight, scales, together, shape)
            tiles = head_kernels.by_tiles(x, weight, scales)
            seen[f"{rows}x{vocab}x{hidden} {shape}"] = difference(out, tiles)
    x = torch.randn(7, 2 * 200) * 6
    out, tiles = torch.empty(7, 200), torch.empty(7, 200)
    clamp._clamped_swiglu[(7, 1)](x, out, 200, 4.0, 256)
    clamp.clamped_swiglu(x, tiles, 4.0)
    seen["clamp"] = difference(out, tiles)
    return seen


def shared_memory(kernel, capability, types, odd, warps, stages=None, **constants):
    """Bytes of shared memory of a kernel compiled for a GPU, by what its arguments are.

    `odd` names those that no power of two divides; what `types` does not name is an i32.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    free = [n for n in names if n not in constants]
    source = ASTSource(
        fn=kernel,
        signature={n: types.get(n, "i32") if n in free else "constexpr" for n in names},
        constexprs={(names.index(n),): value for n, value in constants.items()},
        attrs={(names.index(n),): [["tt.divisibility", 16]] for n in free if n not in odd},
    )
    options = {"num_warps": warps} | ({"num_stages": stages} if stages else {})
    target = GPUTarget("cuda", capability, 32)
    return triton.compile(source, target=target, options=options).metadata.shared


def compile_for(capability):
    """Bytes of shared memory of every kernel and shape that the product uses."""
    types = {
        "x_ptr": "*bf16", "w_ptr": "*fp8e4nv", "scale_ptr": "*fp32", "out_ptr": "*bf16",
        "limit": "fp32",
    }  # fmt: skip

    def shared(kernel, warps, **constants):
        return shared_memory(kernel, capability, types, ("rows", "limit"), warps, **constants)

    seen = {"clamp": shared(clamp._clamped_swiglu, 4, BLOCK=clamp.BLOCK)}
    for rows, shapes in head_kernels.WAYS.items():
        for shape in shapes:
            cut = {"VOCAB": shape.vocab, "HIDDEN": shape.hidden}
            if shape.stages:
                kernel = head_kernels._any_rows
                cut |= {"ROWS": max(rows, 16), "STAGES": shape.stages}
            else:
                kernel = head_kernels._few_rows
                cut |= {"ROWS": rows, "hidden": 2560}
            seen[f"{rows} {shape}"] = shared(kernel, shape.warps, **cut)
    return seen


if __name__ == "__main__":
    facts = interpret() if sys.argv[1] == "interpret" else {n: compile_for(n) for n in (90, 121)}
    print(json.dumps(facts))
