"""What is really on, collected inside the scheduler process, where target and draft both live.

Written to a file once the engine is up, published in `/server_info` as
`internal_states[0]["ling_chat"]`, and held against the request: what was asked for and is not
there ends the start with its name.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine_bridge.sglang_plugin import __version__, verify
from engine_bridge.sglang_plugin.refusal import Refused
from engine_bridge.sglang_plugin.request import Request

if TYPE_CHECKING:
    from engine_bridge.sglang_plugin.hooks import Hook


class Evidence:
    """The evidence of one scheduler process against one request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.hooks: list[Hook] = []
        self.found: dict[str, Any] = {}

    def start(
        self, original: Callable[..., None], scheduler: Any, server_args: Any, *args: Any, **kw: Any
    ) -> None:
        """Around `Scheduler.__init__`: refuse early what can be, prove the rest at the end."""
        if self.request.evidence is not None:
            self.request.evidence.unlink(missing_ok=True)  # an earlier start's is no evidence
        try:
            if self.request.fp8_head:
                from engine_bridge.sglang_plugin import head

                head.check_arguments(server_args)
            original(scheduler, server_args, *args, **kw)
        except Refused as refused:
            self._write({"plugin": __version__, "refused": [str(refused)]})
            raise
        found = self.collect(scheduler)
        refusals = list(self.refusals(found, scheduler))
        found["refused"] = [str(each) for each in refusals]
        self.found = found
        self._write(found)
        if refusals:
            raise refusals[0]

    def publish(self, output: Any, *_: Any, **__: Any) -> None:
        """After `Scheduler.get_internal_state`: add the evidence, counters as they stand now."""
        # Walking the model again would hold up the scheduler; only the counters can have moved.
        output.internal_state["ling_chat"] = self.found | {
            "clamp": self.found["clamp"] | clamp_counters(),
            "split_verify": verify.facts(),
        }

    def collect(self, scheduler: Any) -> dict[str, Any]:
        """Everything there is to see, as JSON values; `refused` is empty in an engine that runs."""
        from engine_bridge.sglang_plugin import hooks

        target = scheduler.tp_worker.model_runner.model
        draft = draft_model(scheduler)
        return {
            "plugin": __version__,
            "sglang": hooks.sglang_version(),
            "hooks": {each.target: hooks.applied(each) for each in self.hooks},
            "experts": {
                "target": experts(target),
                "draft": None if draft is None else experts(draft),
            },
            "head": head_facts(target, draft),
            "clamp": clamp_facts(target),
            "speculation": speculation(scheduler),
            "split_verify": verify.facts(),
            "cuda_graphs": cuda_graphs(scheduler),
            "refused": [],
        }

    def refusals(self, found: dict[str, Any], scheduler: Any) -> list[Refused]:
        """What was requested and is not there."""
        wrong = [
            Refused(target, state) for target, state in found["hooks"].items() if state != "applied"
        ]
        models = [each for each in found["experts"].values() if each is not None]
        if self.request.humming and not _all_humming(models):
            seen = Counter[str]()
            for each in models:
                seen.update(each["backends"])
            ran = ", ".join(f"{count} on {name}" for name, count in seen.items()) or "none found"
            wrong.append(Refused("Humming", f"not every expert layer runs on it ({ran})"))
        if self.request.fp8_head:
            from engine_bridge.sglang_plugin import head

            why = head.missing(scheduler.tp_worker.model_runner.model.lm_head)
            if why:
                wrong.append(Refused(head.WHAT, why))
        if self.request.nextn and found["speculation"] is None:
            wrong.append(Refused("NEXTN", "SGLang runs without speculation"))
        elif self.request.nextn and not found["head"]["shared_with_draft"]:
            wrong.append(Refused("NEXTN", "the draft does not share the target's head"))
        if self.request.clamp:
            wrong += self._unclamped(found)
        # As with the clamp: without graphs, nothing has run yet.
        served = (found["split_verify"] or {}).get("calls", {}).get("target")
        if self.request.split_verify and found["cuda_graphs"] is not None and not served:
            wrong.append(Refused(verify.WHAT, "another kernel checked the drafts"))
        return wrong

    def _unclamped(self, found: dict[str, Any]) -> list[Refused]:
        clamp = found["clamp"]
        if not clamp["expected_layers"]:
            return []
        what = "the SwiGLU clamp"
        if not _all_humming([found["experts"]["target"]]):
            return [Refused(what, "the experts do not run on Humming, whose clamp it restores")]
        # Graph capture has run every layer by now; without graphs nothing has run yet.
        missed = set(clamp["expected_layers"]) - set(clamp["applied_layers"])
        captured = found["cuda_graphs"] is not None
        if captured and missed:
            return [Refused(what, f"layers {sorted(missed)} ran without it")]
        return []

    def _write(self, found: dict[str, Any]) -> None:
        path = self.request.evidence
        if path is None or (not found["refused"] and _rank() != 0):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(found, indent=1) + "\n")
        part.replace(path)


def _rank() -> int:
    import torch

    return int(torch.distributed.get_rank()) if torch.distributed.is_initialized() else 0


def _all_humming(models: list[dict[str, Any]]) -> bool:
    layers: int = sum(each["layers"] for each in models)
    humming: int = sum(each["humming"] for each in models)
    return 0 < layers == humming


def draft_model(scheduler: Any) -> Any:
    """The draft's model, or None where nothing drafts (or a draft that is no model)."""
    worker = getattr(getattr(scheduler, "draft_worker", None), "draft_worker", None)
    runner = getattr(worker, "draft_runner", None)
    return getattr(runner, "model", None)


def expert_layers(model: Any) -> list[Any]:
    """The modules of a model that are its routed experts."""
    from sglang.srt.layers.moe.fused_moe_triton.layer import FusedMoE

    return [module for module in model.modules() if isinstance(module, FusedMoE)]


def experts(model: Any) -> dict[str, Any]:
    """How many expert layers there are, and on what each runs."""
    backends = Counter(backend(layer) for layer in expert_layers(model))
    return {
        "layers": backends.total(),
        "humming": backends["humming"],
        "backends": dict(backends),
    }


def backend(layer: Any) -> str:
    """The runner's name, or the quant method's where no runner was made (a fallback)."""
    method = layer.quant_method
    runner = getattr(method, "runner", None)
    return str(runner.runner_backend.value) if runner is not None else type(method).__name__


def head_facts(target: Any, draft: Any) -> dict[str, Any] | None:
    """Dtype, method and size of the target's head, and whether the draft's is the same object."""
    head = getattr(target, "lm_head", None)
    weight = getattr(head, "weight", None)
    if weight is None:
        return None
    scales, method = getattr(head, "weight_scale", None), getattr(head, "quant_method", None)
    return {
        "dtype": str(weight.dtype).removeprefix("torch."),
        "method": type(method).__name__,
        "rows": weight.shape[0],
        "columns": weight.shape[1],
        "scales": None if scales is None else list(scales.shape),
        "kernels": {rows: str(shape) for rows, shape in getattr(method, "shapes", {}).items()},
        "shared_with_draft": None if draft is None else draft.lm_head is head,
    }


def clamp_facts(target: Any) -> dict[str, Any]:
    """The layers whose experts have a limit, and those whose activation ran with it.

    A limit of the checkpoint's configuration counts also where SGLang did not hand it on.
    """
    limits = getattr(target.config, "expert_swiglu_limit_list", None) or ()
    configured = {layer_id for layer_id, limit in enumerate(limits) if limit}
    limited = [
        int(layer.layer_id)
        for layer in expert_layers(target)
        if layer.moe_runner_config.gemm1_clamp_limit is not None or layer.layer_id in configured
    ]
    return {"expected_layers": sorted(limited)} | clamp_counters()


def clamp_counters() -> dict[str, Any]:
    """Which layers ran with the clamp so far, and how often; nothing where it is not installed."""
    clamp = sys.modules.get("engine_bridge.sglang_plugin.clamp")
    if clamp is None:
        return {"applied_layers": [], "calls": 0}
    return {"applied_layers": sorted(clamp.applied_layers), "calls": clamp.calls}


def speculation(scheduler: Any) -> dict[str, Any] | None:
    """The parameters the speculating worker really uses."""
    worker = getattr(scheduler, "draft_worker", None)
    if worker is None:
        return None
    return {
        "algorithm": str(getattr(scheduler.spec_algorithm, "name", scheduler.spec_algorithm)),
        "steps": getattr(worker, "speculative_num_steps", None),
        "topk": getattr(worker, "topk", None),
        "draft_tokens": getattr(worker, "speculative_num_draft_tokens", None),
    }


def cuda_graphs(scheduler: Any) -> dict[str, Any] | None:
    """The captured phases and their memory in GB; None where nothing was captured."""
    phases = dict(scheduler.tp_worker.graph_memory_usage)
    if scheduler.draft_worker is not None:
        phases.update(scheduler.draft_worker.graph_memory_usage)
    runner = scheduler.tp_worker.model_runner
    sizes = list(getattr(getattr(runner, "decode_cuda_graph_runner", None), "capture_bs", ()) or ())
    if not sizes:
        return None
    return {"batch_sizes": sizes, "memory_gb": {k: round(v, 3) for k, v in phases.items()}}
