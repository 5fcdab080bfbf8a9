"""The bytes that one decode step reads and writes, by part of the model.

From a Hugging Face config.json (Ling-3.0 and plainer decoders) or from a GGUF file's tensors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine_bridge.errors import UsageError
from engine_bridge.models.tensors import Gguf

BYTES = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0, "fp8": 1.0}
ROUTERS = {"fp32": "float32", "bf16": "bfloat16"}
"""Ling's own names of the types in which a router's weights are kept."""
MXFP4 = 0.5 + 1 / 32
"""Bytes a weight: four bits, and one byte of scale for each 32."""
STATE_BYTES = 4
"""A linear-attention state is kept in float32."""


@dataclass(frozen=True, slots=True)
class Step:
    """Bytes of one decode step of one sequence. All are read; of `state` half is written."""

    experts: float = 0.0
    """Of the routed experts that one token uses, over all layers."""
    shared: float = 0.0
    """Shared experts."""
    dense: float = 0.0
    """Layers' other feed-forward weights, and routers."""
    attention: float = 0.0
    head: float = 0.0
    kv: float = 0.0
    """Keys and values of the context."""
    state: float = 0.0
    """States of linear attention, read and written."""
    draft: float = 0.0
    """One step of the draft layer, its head included."""
    experts_total: int = 0
    experts_used: int = 0

    @property
    def bytes(self) -> float:
        """Of a plain step: everything but the draft."""
        return (
            self.experts
            + self.shared
            + self.dense
            + self.attention
            + self.head
            + self.kv
            + self.state
        )

    def verify(self, tokens: int, distinct: float | None = None) -> float:
        """Bytes of verifying a window of that many tokens in one step.

        More tokens touch more experts: `distinct` a layer, by default as many as independent
        choices would. The states after each token are written, so that a rejected draft can be
        taken back, and the accepted one is copied.
        """
        if distinct is None:
            distinct = self.distinct_experts(tokens)
        share = distinct / self.experts_used if self.experts_used else 1.0
        one = self.state / 2
        states = one * (1 + tokens + 2) if tokens > 1 else self.state
        return self.bytes - self.experts - self.state + self.experts * share + states

    def distinct_experts(self, tokens: int) -> float:
        """Experts of a layer that `tokens` tokens use, if each chose independently."""
        if not self.experts_total:
            return 0.0
        missed = (1 - self.experts_used / self.experts_total) ** tokens
        return self.experts_total * (1 - missed)

    def round(self, steps: int, window: int, distinct: float | None = None) -> float:
        """Bytes of one speculative round: `steps` of the draft, then the verification."""
        return steps * self.draft + self.verify(window, distinct)

    def as_dict(self) -> dict[str, float]:
        names = ("experts", "shared", "dense", "attention", "head", "kv", "state")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def of_config(config: Mapping[str, Any], context_tokens: int = 1024) -> Step:
    """From a config.json, at a context length. Reads quantisation as the file declares it.

    Raises UsageError where the file lacks a figure that is needed.
    """
    try:
        return _of_config(config, context_tokens)
    except KeyError as error:
        raise UsageError(
            f"The model's config.json lacks a figure: {error.args[0]}.",
            "Give a GGUF or another config.",
        ) from error
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise UsageError(
            "A figure in the model's config.json is no number that makes sense.",
            "Give a GGUF or another config.",
        ) from error


def _of_config(c: Mapping[str, Any], context: int) -> Step:
    hidden, layers = int(c["hidden_size"]), int(c["num_hidden_layers"])
    heads = int(c["num_attention_heads"])
    plain = BYTES.get(str(c.get("torch_dtype") or c.get("dtype")), 2.0)
    quant = c.get("quantization_config") or {}
    dense_b = BYTES["fp8"] if quant.get("quant_method") == "fp8" else plain
    expert_b = MXFP4 if quant.get("routed_experts_quant_method") == "mxfp4" else dense_b
    head_b = plain if "lm_head" in (quant.get("modules_to_not_convert") or ()) else dense_b

    full, linear = _attention_layers(c, layers)
    full_one = _full_attention(c, hidden, heads) * dense_b
    experts = int(c.get("num_experts") or c.get("n_routed_experts") or 0)
    used = int(c.get("num_experts_per_tok") or 0)
    first_dense = int(c.get("first_k_dense_replace") or 0) if experts else layers
    moe_layers = layers - first_dense
    width = int(c.get("moe_intermediate_size") or 0)
    expert_one = 3 * hidden * width * expert_b
    shared_width = int(c.get("moe_shared_expert_intermediate_size") or width)
    shared_one = int(c.get("num_shared_experts") or 0) * 3 * hidden * shared_width * dense_b
    router_one = experts * hidden * BYTES.get(ROUTERS.get(str(c.get("router_dtype")), ""), plain)
    feed_one = 3 * hidden * int(c["intermediate_size"]) * dense_b
    head = int(c["vocab_size"]) * hidden * head_b
    kv_one = _kv_bytes(c, heads)
    state_one = heads * int(c.get("head_dim") or hidden // heads) ** 2 * STATE_BYTES

    drafts = int(c.get("num_nextn_predict_layers") or 0)
    draft = 0.0
    if drafts:
        joined = 2 * hidden * hidden * dense_b
        draft = full_one + used * expert_one + shared_one + router_one + joined + head
        draft += context * kv_one
    return Step(
        experts=moe_layers * used * expert_one,
        shared=moe_layers * shared_one,
        dense=first_dense * feed_one + moe_layers * router_one,
        attention=full * full_one + linear * _linear_attention(c, hidden, heads) * dense_b,
        head=head,
        kv=full * context * kv_one,
        state=2 * linear * state_one,
        draft=draft,
        experts_total=experts,
        experts_used=used,
    )


def _attention_layers(c: Mapping[str, Any], layers: int) -> tuple[int, int]:
    """(full, linear): of each group of Ling's layers, the last is full attention."""
    group = int(c.get("layer_group_size") or 1)
    full = layers // group if group > 1 else layers
    return full, layers - full


def _full_attention(c: Mapping[str, Any], hidden: int, heads: int) -> float:
    """Weights of a full-attention layer: MLA where the config has its ranks, else GQA."""
    if rank := c.get("kv_lora_rank"):
        nope, rope = int(c["qk_nope_head_dim"]), int(c["qk_rope_head_dim"])
        value, q_rank = int(c["v_head_dim"]), c.get("q_lora_rank")
        wide = heads * (nope + rope)
        query = hidden * wide if not q_rank else int(q_rank) * (hidden + wide)
        down = hidden * (int(rank) + rope)
        up = int(rank) * heads * (nope + value)
        return query + down + up + heads * value * hidden
    head = int(c.get("head_dim") or hidden // heads)
    keys = int(c.get("num_key_value_heads") or heads)
    return 2 * hidden * heads * head + 2 * hidden * keys * head


def _linear_attention(c: Mapping[str, Any], hidden: int, heads: int) -> float:
    """Weights of a Kimi Delta Attention layer: query, key, value, decay, gate, output."""
    wide = heads * int(c.get("head_dim") or hidden // heads)
    return 6 * hidden * wide + hidden * heads


def _kv_bytes(c: Mapping[str, Any], heads: int) -> float:
    """Bytes of keys and values a token has in one full-attention layer, in 16 bits."""
    if rank := c.get("kv_lora_rank"):
        return 2.0 * (int(rank) + int(c["qk_rope_head_dim"]))
    keys = int(c.get("num_key_value_heads") or heads)
    return 2.0 * 2 * keys * int(c.get("head_dim") or int(c["hidden_size"]) // heads)


def of_gguf(gguf: Gguf, context_tokens: int = 1024) -> Step:
    """From the tensors of a GGUF file; keys and values in 16 bits."""
    used, total = gguf.arch("expert_used_count") or 0, gguf.arch("expert_count") or 0
    sums = dict.fromkeys(("experts", "shared", "dense", "attention"), 0.0)
    for tensor in gguf.tensors:
        name = tensor.name
        if "_exps." in name:
            sums["experts"] += tensor.nbytes * used / total if total else 0
        elif "_shexp." in name:
            sums["shared"] += tensor.nbytes
        elif name.startswith("blk.") and ".attn" in name:
            sums["attention"] += tensor.nbytes
        elif name.startswith("blk."):
            sums["dense"] += tensor.nbytes
    heads = gguf.arch("attention.head_count") or 1
    keys = gguf.arch("attention.head_count_kv") or heads
    length = (gguf.arch("embedding_length") or 0) // heads
    width = gguf.arch("attention.key_length") or length
    value = gguf.arch("attention.value_length") or length
    layers = gguf.arch("block_count") or 0
    return Step(
        **sums,
        head=gguf.head.nbytes if gguf.head else 0,
        kv=2.0 * layers * context_tokens * keys * (width + value),
        experts_total=total,
        experts_used=used,
    )


def of_model(path: Path, context_tokens: int) -> Step:
    """From a GGUF file, a config.json, or a folder that has one.

    Raises BridgeError where it cannot be read.
    """
    from engine_bridge.models import tensors

    if path.suffix == ".gguf":
        return of_gguf(tensors.read(path), context_tokens)
    return of_config(read_config(path / "config.json" if path.is_dir() else path), context_tokens)


def read_config(path: Path) -> dict[str, Any]:
    """A config.json. Raises UsageError where it cannot be read."""
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as a model's config.", "Check the path."
        ) from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} is no model's config.", "Check the path.")
    return config


def with_fp8_head(step: Step) -> Step:
    """The same model with its 16-bit output head in 8 bits; a draft reads the same head."""
    saved = step.head / 2
    return replace(step, head=step.head - saved, draft=max(step.draft - saved, 0.0))
