"""Runs where Triton is installed: the plugin's kernels without a GPU, as JSON on standard output.

TRITON_INTERPRET=1 kernel_side.py interpret     their results, on odd sizes
TRITON_INTERPRET=1 kernel_side.py verify        the same of SGLang's split kernel in our blocks
kernel_side.py compile                          what the compiler makes of them, per GPU
"""

import json
import sys

import torch

from engine_bridge.sglang_plugin import clamp, head_kernels, verify
from engine_bridge.sglang_plugin.head_kernels import Shape

# What one block of threads may have, in bytes (CUDA's tables of compute capabilities).
SHARED_MEMORY = {90: 232_448, 121: 101_376}
ODD = ("rows", "limit", "num_splits", "stride_ls", "sm_scale", "k_scale", "v_scale")
"""Arguments that no power of two divides."""


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


def interpret_verify():
    """SGLang's split kernel in our blocks against plain attention, for the draft's taking over."""
    from sglang.kernels.ops.attention import verify_mla

    torch.manual_seed(0)
    heads, rows, latent, scale, seen = 4, 4, 512, 192**-0.5, {}
    for block, context in ((verify.LARGE, 37), (verify.SMALL, 64), (verify.LARGE, 200)):
        verify_mla._BLOCK_CONFIG[verify.ROW] = block
        verify_mla._VMLA_CACHE.clear()
        cache = torch.randn(256, 1, verify.ROW, dtype=torch.float16)
        q = torch.randn(rows, heads, verify.ROW, dtype=torch.float16) * 0.3
        k = torch.randn(rows, 1, verify.ROW, dtype=torch.float16)
        slots = torch.randperm(256)[:context]
        out = torch.empty(rows, heads, latent, dtype=torch.float16)
        verify._split_first(None)(
            q, k, k[..., :latent].contiguous(), out, cache, cache[..., :latent],
            torch.tensor([0, rows], dtype=torch.int32),
            torch.tensor([0, context], dtype=torch.int32),
            slots, None, True, None, rows, 1.0, 1.0, scale, page_size=64, logit_cap=0.0,
        )  # fmt: skip
        keys = torch.cat([cache[slots, 0], k[:, 0]]).double()
        plain = []
        for row in range(rows):
            known = keys[: context + row + 1]
            plain.append(torch.softmax(q[row].double() @ known.T * scale, -1) @ known[:, :latent])
        seen[f"{context} tokens in {block}"] = difference(out, torch.stack(plain))
    return seen | {"calls": dict(verify.calls)}


def compile_for(capability):
    """Bytes of shared memory of every kernel and shape that the product uses."""
    import triton
    from sglang.kernels.ops.attention import verify_mla
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {
        "x_ptr": "*bf16", "w_ptr": "*fp8e4nv", "scale_ptr": "*fp32", "out_ptr": "*bf16",
        "rows": "i32", "vocab": "i32", "hidden": "i32", "width": "i32", "limit": "fp32",
        "Q": "*bf16", "K_Buffer": "*bf16", "V_Buffer": "*bf16", "sm_scale": "fp32",
        "k_scale": "fp32", "v_scale": "fp32", "qo_indptr": "*i32", "kv_indptr": "*i32",
        "kv_indices": "*i64", "Att_Out": "*bf16", "Att_Lse": "*fp32",
    }  # fmt: skip

    def shared(kernel, warps, **constants):
        names = kernel.arg_names
        source = ASTSource(
            fn=kernel,
            signature={n: "constexpr" if n in constants else types.get(n, "i32") for n in names},
            constexprs={(names.index(n),): value for n, value in constants.items()},
            attrs={
                (i,): [["tt.divisibility", 16]]
                for i, n in enumerate(names)
                if n not in (*constants, *ODD)
            },
        )
        target = GPUTarget("cuda", capability, 32)
        return triton.compile(source, target=target, options={"num_warps": warps}).metadata.shared

    block, warps = verify.block_for(SHARED_MEMORY[capability])[:2], verify.LARGE[2]
    rows = max(4, 16 // block[0])  # a tile has 16 rows at least
    split = {
        "H_Q": 32, "L_EXT": rows, "BLOCK_H": block[0], "KV_GROUP_NUM": 32, "HAS_KV_HEADS": False,
        "NOPE_DIM": 512, "PE_DIM": 64, "V_HEAD_DIM": 512, "BLOCK_DNOPE": 512, "BLOCK_DPE": 64,
        "BLOCK_DV": 512, "BLOCK_N": block[1],
    }  # fmt: skip
    seen = {f"verify {block}": shared(verify_mla._verify_mla_prefix_stage1, warps, **split)}
    seen |= {"clamp": shared(clamp._clamped_swiglu, 4, BLOCK=clamp.BLOCK)}
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


MODES = {
    "interpret": interpret,
    "verify": interpret_verify,
    "compile": lambda: {capability: compile_for(capability) for capability in SHARED_MEMORY},
}

if __name__ == "__main__":
    print(json.dumps(MODES[sys.argv[1]]()))
