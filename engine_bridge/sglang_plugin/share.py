"""The draft shares the target's whole LM head module, not only its weight tensor.

SGLang hands a draft the target's weight. A weight in FP8 is worthless without its scales and its
quant method: upstream then dies at graph capture, or drafts noise (accept length 1.00).
"""

from collections.abc import Callable
from typing import Any

from engine_bridge.sglang_plugin.refusal import Refused


def set_lm_head_from_target(draft: Any, head: Any) -> None:
    """Give the draft model the target's head module; SGLang calls this where a model has it."""
    draft.lm_head = head


def share_head(original: Callable[[Any], None], worker: Any) -> None:
    """Around `EagleDraftWorker.init_lm_head`: make SGLang share the module, then prove it did.

    Raises Refused unless the draft's head is the target's, the very object.
    """
    draft = worker.draft_runner.model
    if not hasattr(draft, "set_lm_head_from_target"):
        type(draft).set_lm_head_from_target = set_lm_head_from_target
    original(worker)
    target = worker.target_worker.model_runner.model
    if draft.lm_head is not target.lm_head:
        raise Refused(
            "NEXTN",
            f"the draft {type(draft).__name__} kept a head of its own and would draft noise",
        )
