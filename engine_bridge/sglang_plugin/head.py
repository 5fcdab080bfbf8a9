"""The LM head in FP8, quantised when the engine loads it: half the bytes read for every token."""

from typing import Any

import torch
from sglang.srt.layers.quantization.base_config import QuantizeMethodBase
from sglang.srt.layers.vocab_parallel_embedding import ParallelLMHead

from engine_bridge.sglang_plugin import head_kernels
from engine_bridge.sglang_plugin.refusal import Refused

WHAT = "the FP8 head"
PLAIN = {"UnquantizedEmbeddingMethod", "UnquantizedLinearMethod", "PackWeightMethod"}


class Fp8HeadMethod(QuantizeMethodBase):
    """Weight-only FP8 for one `ParallelLMHead`; its checkpoint is loaded as ever, in BF16.

    Scales belong to rows of the vocabulary, so a shard of a tensor-parallel head computes what
    the whole head would, and logprobs and grammar masks see ordinary logits.
    """

    def __init__(self) -> None:
        self.shapes: dict[int, head_kernels.Shape] = {}
        """The kernels' shapes by the number of rows, as tried on this GPU; none without kernels."""

    def create_weights(self, layer: Any, *args: Any, **attributes: Any) -> None:
        """Never called: the layer exists, with its BF16 weight, before the method is swapped."""
        raise NotImplementedError

    def process_weights_after_loading(self, layer: Any) -> None:
        """Replace the loaded weight by FP8 and its scales. Does nothing the second time."""
        if layer.weight.dtype == torch.float8_e4m3fn:
            return
        dtype = layer.weight.dtype
        weight, scales = head_kernels.quantise(layer.weight.data)
        layer.weight = torch.nn.Parameter(weight, requires_grad=False)
        layer.weight.weight_loader = _refuse_new_weights
        layer.weight_scale = torch.nn.Parameter(scales, requires_grad=False)
        layer.weight_scale.weight_loader = _refuse_new_weights
        self.shapes = head_kernels.tune(weight, scales, dtype)

    def restore_weights_before_loading(self, layer: Any) -> None:
        """SGLang asks before it loads other weights into a running engine."""
        _refuse_new_weights()

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Logits [..., vocabulary of this shard] of hidden states [..., hidden], dtype of `x`."""
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        logits = head_kernels.logits(rows, layer.weight, layer.weight_scale, self.shapes)
        if bias is not None:
            logits = logits + bias
        return logits.view(*x.shape[:-1], logits.shape[-1])


def _refuse_new_weights(*_: Any) -> None:
    """A BF16 tensor copied into an FP8 one would lose its scale without a word."""
    raise RuntimeError("ling-chat: a running FP8 head takes no other weights; restart the engine")


def check_arguments(server_args: Any) -> None:
    """Refuse what SGLang's arguments already rule out, before any weight is read."""
    if getattr(server_args, "enable_fp32_lm_head", False):
        raise Refused(WHAT, "--enable-fp32-lm-head asks for another head; leave one of them out")
    adapted = getattr(server_args, "lora_target_modules", None) or ()
    if {"lm_head", "all"} & set(adapted):
        raise Refused(WHAT, "--lora-target-modules adapts the head; leave lm_head out of it")


def quantise_head(model: Any, model_config: Any, *_: Any, **__: Any) -> None:
    """After `_initialize_model`: from here on the target's head is loaded into FP8.

    Drafts are left alone: NEXTN takes the target's head, others have a vocabulary of their own.
    Raises Refused for a model whose head cannot be.
    """
    if model_config.is_draft_model:
        return
    head = getattr(model, "lm_head", None)
    if type(head).__name__ == "PPMissingLayer":  # another pipeline stage has it
        return
    if not isinstance(head, ParallelLMHead):
        raise Refused(WHAT, f"{type(model).__name__} has no LM head of its own to quantise")
    if getattr(model_config.hf_config, "tie_word_embeddings", False) or any(
        other is not head and getattr(other, "weight", None) is head.weight
        for other in model.modules()
    ):
        raise Refused(WHAT, "the model ties its head to its embeddings, which must not change")
    if getattr(getattr(model, "logits_processor", None), "use_fp32_lm_head", False):
        raise Refused(WHAT, "the model's configuration asks for an FP32 head")
    if type(head.quant_method).__name__ not in PLAIN:
        raise Refused(
            WHAT, f"the checkpoint quantises the head itself ({type(head.quant_method).__name__})"
        )
    head.quant_method = Fp8HeadMethod()


def missing(head: Any) -> str | None:
    """Why a loaded target's head is not what was asked for; None when it is."""
    if type(head).__name__ == "PPMissingLayer":
        return None
    if hasattr(head, "set_lora"):
        return "a LoRA adapter wraps the head; serve adapters that leave the head alone"
    method = getattr(head, "quant_method", None)
    if not isinstance(method, Fp8HeadMethod):
        return f"the head's method is {type(method).__name__}"
    if head.weight.dtype != torch.float8_e4m3fn:
        return f"the head's weight is {head.weight.dtype}"
    return None
