"""Checkpoints without weights: Ling's shape, tiny and full-sized, and a tiny Llama to serve."""

import json
from pathlib import Path

LING = {
    "architectures": ["BailingMoeV3ForCausalLM"], "model_type": "bailing_hybrid",
    "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 6,
    "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "max_position_embeddings": 4096, "rope_theta": 6000000,
    "rope_scaling": None, "rope_interleave": True, "partial_rotary_factor": 0.5, "rotary_dim": 16,
    "q_lora_rank": None, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
    "qk_head_dim": 48, "v_head_dim": 32, "use_mla_nope": False,
    "gated_attention_proj_granularity_type": "head_wise", "layer_group_size": 3,
    "short_conv_kernel_size": 4, "no_kda_lora": True, "use_kda_lora": False, "kda_safe_gate": True,
    "kda_lower_bound": -5.0, "linear_silu": True, "use_qk_norm": True, "group_norm_size": 1,
    "num_experts": 16, "num_experts_per_tok": 2, "num_shared_experts": 1,
    "moe_intermediate_size": 64, "moe_shared_expert_intermediate_size": 64, "n_group": 2,
    "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "score_function": "sigmoid", "scoring_func": "sigmoid", "topk_method": "noaux_tc",
    "moe_router_enable_expert_bias": True, "router_dtype": "fp32", "first_k_dense_replace": 1,
    "expert_swiglu_limit_list": [0, 0, 0, 0, 4, 4],
    "share_expert_swiglu_limit_list": [0, 0, 0, 5, 5, 7], "num_nextn_predict_layers": 1,
    "mtp_use_kda": False, "tie_word_embeddings": False, "use_bias": False, "use_qkv_bias": False,
    "torch_dtype": "bfloat16", "eos_token_id": 1, "pad_token_id": 0,
}  # fmt: skip
# Ling-3.0-flash's published dimensions; the number of heads is the one that makes its 5.1B active.
LING_FLASH = LING | {
    "vocab_size": 157184, "hidden_size": 2560, "intermediate_size": 7680, "num_hidden_layers": 42,
    "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
    "max_position_embeddings": 262144, "rotary_dim": 64, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "qk_head_dim": 192, "v_head_dim": 128,
    "layer_group_size": 6, "num_experts": 512, "num_experts_per_tok": 8,
    "moe_intermediate_size": 768, "moe_shared_expert_intermediate_size": 768, "n_group": 8,
    "topk_group": 4, "first_k_dense_replace": 2, "expert_swiglu_limit_list": [0] * 35 + [4] * 7,
    "share_expert_swiglu_limit_list": [0] * 34 + [5] * 6 + [7] * 2, "eos_token_id": 156895,
    "pad_token_id": 156892,
    "quantization_config": {
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
        "weight_block_size": [128, 128], "scale_fmt": "ue8m0",
        "modules_to_not_convert": ["lm_head"],
        "routed_experts_quant_method": "mxfp4", "routed_experts_group_size": 32,
    },
}  # fmt: skip
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256 + 4,
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 4096, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0,
}  # fmt: skip
SPECIAL = ["<pad>", "<eos>", "<user>", "<assistant>"]


def byte_alphabet() -> list[str]:
    """The 256 printable characters that stand for bytes in byte-level tokenizers (GPT-2's)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in plain)
    stand_ins = {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [stand_ins.get(byte, chr(byte)) for byte in range(256)]


def write(folder: Path, config: dict[str, object]) -> Path:
    """A model folder of `config`; text in is a token a byte, other ids out are filler words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    known = [*SPECIAL, *byte_alphabet()]
    fillers = (f"\u0120t{number}" for number in range(len(known), int(str(config["vocab_size"]))))
    vocab = {token: number for number, token in enumerate([*known, *fillers])}
    byte_level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
    }  # fmt: skip
    added = [
        {
            "id": vocab[token], "content": token, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True,
        }
        for token in SPECIAL
    ]  # fmt: skip
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>",
                "pad_token": "<pad>", "chat_template": template,
            }
        )
    )  # fmt: skip
    return folder
