"""Runs where SGLang is installed: its split kernel in our blocks without a GPU, as JSON.

TRITON_INTERPRET=1 split_side.py interpret    its results against plain attention
split_side.py compile                         what checking drafts takes of each GPU's shared memory
"""

import json
import sys

import torch
from kernel_side import difference, shared_memory
from sglang.kernels.ops.attention import decode_attention, verify_mla

from engine_bridge.sglang_plugin import verify

HEADS, ROWS, LATENT = 32, 4, 512
SCALE = 192**-0.5
LIMITS = {90: 232_448, 121: 101_376}


def interpret():
    """What the draft takes accepted tokens over with, on contexts that no block divides."""
    torch.manual_seed(0)
    seen = {}
    for block, context in ((verify.LARGE, 37), (verify.SMALL, 64), (verify.LARGE, 200)):
        verify_mla._BLOCK_CONFIG[verify.ROW] = block
        verify_mla._VMLA_CACHE.clear()
        cache = torch.randn(256, 1, verify.ROW, dtype=torch.float16)
        q = torch.randn(ROWS, 4, verify.ROW, dtype=torch.float16) * 0.3
        k = torch.randn(ROWS, 1, verify.ROW, dtype=torch.float16)
        slots = torch.randperm(256)[:context]
        out = torch.empty(ROWS, 4, LATENT, dtype=torch.float16)
        verify._split_first(None, 1)(
            q, k, k[..., :LATENT].contiguous(), out, cache, cache[..., :LATENT],
            torch.tensor([0, ROWS], dtype=torch.int32),
            torch.tensor([0, context], dtype=torch.int32),
            slots, None, True, None, ROWS, 1.0, 1.0, SCALE, page_size=64, logit_cap=0.0,
        )  # fmt: skip
        keys = torch.cat([cache[slots, 0], k[:, 0]]).double()
        plain = []
        for row in range(ROWS):
            known = keys[: context + row + 1]
            plain.append(torch.softmax(q[row].double() @ known.T * SCALE, -1) @ known[:, :LATENT])
        seen[f"{context} tokens in {block}"] = difference(out, torch.stack(plain))
    return seen | {"calls": dict(verify.calls)}


def compile_for(capability):
    """SGLang's kernels that check and make drafts, as they are launched for Ling."""
    heads, tokens, warps = verify.block_for(LIMITS[capability])
    caches = {
        "Q": "*bf16", "K_Buffer": "*bf16", "V_Buffer": "*bf16", "K_Extend": "*bf16",
        "V_Extend": "*bf16", "O_Out": "*bf16", "Att_Out": "*bf16", "Att_Lse": "*fp32",
        "qo_indptr": "*i32", "kv_indptr": "*i32", "kv_indices": "*i64", "num_kv_splits": "*i32",
        "sm_scale": "fp32", "sm_scale_withk": "fp32", "k_scale": "fp32", "v_scale": "fp32",
    }  # fmt: skip
    odd = {n for n, kind in caches.items() if kind == "fp32"} | {"num_splits", "stride_ls"}

    def shared(kernel, warps, stages, types=caches, **constants):
        return shared_memory(kernel, capability, types, odd, warps, stages, **constants)

    one_cache = {"KV_GROUP_NUM": HEADS, "HAS_KV_HEADS": False}
    wide = {"V_HEAD_DIM": LATENT, "BLOCK_DV": LATENT, "BLOCK_N": tokens}
    none = ("SCORE_MOD", "Aux0", "uneven_batch")
    zero = ("aux0_stride_t", "aux0_stride_h", "aux0_len", "forced_kv_splits", "logit_cap")
    never = ("USE_PDL", "IS_GFX1250", "USE_FORCED", "ROTATE_BATCH")
    return {
        f"verify, {heads} heads": shared(
            verify_mla._verify_mla_prefix_stage1, warps, 1, H_Q=HEADS, L_EXT=max(ROWS, 16 // heads),
            BLOCK_H=heads, NOPE_DIM=LATENT, PE_DIM=64, BLOCK_DNOPE=LATENT, BLOCK_DPE=64,
            **wide, **one_cache,
        ),
        "verify, merge": shared(
            verify_mla._verify_mla_combine_stage2, 4, 1, L_EXT=ROWS, HEAD_DIM=verify.ROW,
            BLOCK_DMODEL=1024, IS_CAUSAL=True, **wide, **one_cache,
        ),
        "draft": shared(
            decode_attention._fwd_grouped_kernel_stage1, 4, 2, caches | {"Att_Out": "*fp32"},
            kv_group_num=HEADS, q_head_num=HEADS, BLOCK_DMODEL=LATENT, BLOCK_DPE=64,
            BLOCK_DV=LATENT, BLOCK_N=32, BLOCK_H=16, MIN_BLOCK_KV=32, xai_temperature_len=-1,
            Lk=verify.ROW, Lv=LATENT, HAS_MLA=True, PAGE_SIZE=64, **dict.fromkeys(none),
            **dict.fromkeys(zero, 0), **dict.fromkeys(never, False),
        ),
    }  # fmt: skip


MODES = {"interpret": interpret, "compile": lambda: {each: compile_for(each) for each in LIMITS}}

if __name__ == "__main__":
    print(json.dumps(MODES[sys.argv[1]]()))
