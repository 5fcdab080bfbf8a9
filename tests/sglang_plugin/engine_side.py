"""Runs inside SGLang's interpreter: what the plugin does to SGLang's real classes, as JSON.

    engine_side.py MODEL_DIR PORT OUT.json

Loads the plugin as SGLang does, builds a tiny Ling (target and NEXTN draft) on the CPU with
SGLang's own loader, and writes down what it saw. The judgements are in test_inside_sglang.py.
"""

import json
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import torch

CHECKS = {}
MODEL, PORT, OUT = sys.argv[1:]


def check(function):
    CHECKS[function.__name__] = function
    return function


def refusal(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except RuntimeError as refused:
        return str(refused)
    return None


def error(out, reference):
    return float((out.double() - reference).norm() / reference.norm())


class World:
    """One process of SGLang with its plugins, its runtime, and a tiny target and draft."""

    def __init__(self):
        from sglang.srt.plugins import load_plugins

        load_plugins()
        from sglang.srt.configs.load_config import LoadConfig
        from sglang.srt.configs.model_config import ModelConfig
        from sglang.srt.distributed import bootstrap
        from sglang.srt.model_loader import loader
        from sglang.srt.runtime_context import SpawnRanks, publish
        from sglang.srt.server_args import prepare_server_args

        self.arguments = prepare_server_args(
            ["--model-path", MODEL, "--device", "cpu", "--load-format", "dummy",
             "--attention-backend", "torch_native", "--dtype", "bfloat16",
             "--disable-overlap-schedule"]
        )  # fmt: skip
        self.arguments.resolve_once()
        publish(self.arguments, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))
        bootstrap.init_parallel_runtime(
            server_args=self.arguments, device="cpu", dist_port=int(PORT)
        )
        self.config = ModelConfig.from_server_args(self.arguments)
        bootstrap.init_layer_runtime(model_config=self.config)
        torch.set_default_dtype(torch.bfloat16)
        torch.manual_seed(0)
        self.loader, self.load_config = loader, LoadConfig(load_format="dummy")
        self.target = loader._initialize_model(self.config, self.load_config)
        loader.initialize_dummy_weights(self.target)
        head = self.target.lm_head
        head.weight.data.normal_()
        self.plain = head.weight.data.clone()
        loader.DefaultModelLoader.postprocess_weights(self.target, torch.device("cpu"))
        self.draft_config = ModelConfig.from_server_args(
            self.arguments, model_path=MODEL, is_draft_model=True
        )
        self.draft = loader._initialize_model(self.draft_config, self.load_config)

    def worker(self, draft):
        """An `EagleDraftWorker` about to take over the target's head, as far as that needs one."""
        from sglang.srt.speculative.eagle_worker_v2 import EagleDraftWorker
        from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

        worker = EagleDraftWorker.__new__(EagleDraftWorker)
        runner = SimpleNamespace(
            model=self.target, model_config=self.config, load_config=self.load_config
        )
        worker.target_worker = SimpleNamespace(model_runner=runner, graph_memory_usage={})
        worker.draft_runner = SimpleNamespace(model=draft)
        worker.speculative_algorithm = SpeculativeAlgorithm.EAGLE
        worker.hot_token_id = None
        return worker

    def scheduler(self, drafting=True):
        """What the evidence reads of a scheduler, around the real models."""
        draft = SimpleNamespace(
            draft_worker=SimpleNamespace(draft_runner=SimpleNamespace(model=self.draft)),
            graph_memory_usage={}, topk=1, speculative_num_steps=3,
            speculative_num_draft_tokens=4,
        )  # fmt: skip
        return SimpleNamespace(
            tp_worker=SimpleNamespace(
                model_runner=SimpleNamespace(model=self.target), graph_memory_usage={}
            ),
            draft_worker=draft if drafting else None,
            spec_algorithm=SimpleNamespace(name="EAGLE"),
        )


@check
def hooks(world):
    """Whether every registered hook is what a call now reaches."""
    from engine_bridge.sglang_plugin import hooks
    from engine_bridge.sglang_plugin.request import Request

    request = Request(fp8_head=True, nextn=True, clamp=True, split_verify=True)
    registered = hooks.wanted_hooks(request)
    evidence = registered[0].function.__self__
    stranger = hooks.Hook(hooks.LOAD, "AFTER", lambda *_: None)
    return {
        "states": {
            each.target: hooks.applied(each)
            for each in registered
            if each.function.__name__ not in ("start", "publish")
        },
        "named": [each.target for each in evidence.hooks],
        "stranger": hooks.applied(stranger),
    }


@check
def head(world):
    """The target's head after SGLang's own post-load step."""
    layer = world.target.lm_head
    wide = layer.weight.float() * layer.weight_scale[:, None]
    before = layer.weight
    layer.quant_method.process_weights_after_loading(layer)
    return {
        "class": type(layer).__name__, "method": type(layer.quant_method).__name__,
        "dtype": str(layer.weight.dtype), "scales": list(layer.weight_scale.shape),
        "error": error(wide, world.plain.double()), "second_time_same": layer.weight is before,
        "embedding_dtype": str(world.target.get_input_embeddings().weight.dtype)
        if hasattr(world.target, "get_input_embeddings")
        else str(world.target.model.word_embeddings.weight.dtype),
        "draft_method": type(world.draft.lm_head.quant_method).__name__,
    }  # fmt: skip


@check
def logits(world):
    """Errors of the logits that SGLang's LogitsProcessor computes, against float64."""
    processor, layer = world.target.logits_processor, world.target.lm_head
    errors, exact = {}, {}
    for rows in (1, 3, 4, 5, 17, 300):
        x = torch.randn(rows, world.plain.shape[1], dtype=torch.bfloat16)
        out = processor._compute_lm_head(x, layer)
        errors[rows] = error(out, x.double() @ world.plain.double().T)
        wide = layer.weight.double() * layer.weight_scale.double()[:, None]
        exact[rows] = error(out, x.double() @ wide.T)
    empty = layer.quant_method.apply(layer, x[:0])
    deep = layer.quant_method.apply(layer, x.view(2, 150, -1), torch.ones(len(world.plain)))
    flat = layer.quant_method.apply(layer, x)
    bf16 = error(x @ world.plain.T, x.double() @ world.plain.double().T)
    return {
        "errors": errors, "against_own_weights": exact, "bf16_error": bf16,
        "dtype": str(out.dtype), "empty": list(empty.shape),
        "three_dimensions": bool(torch.equal(deep.view(300, -1), flat + 1)),
    }  # fmt: skip


@check
def shards(world):
    """Whether two halves of the head give the logits of the whole, bit for bit."""
    from engine_bridge.sglang_plugin import head_kernels

    x = torch.randn(5, world.plain.shape[1], dtype=torch.bfloat16)
    whole = head_kernels.logits(x, *head_kernels.quantise(world.plain))
    halves = [head_kernels.logits(x, *head_kernels.quantise(half)) for half in world.plain.chunk(2)]
    scales = head_kernels.quantise(torch.zeros(3, 16))[1]
    return {
        "same": bool(torch.equal(whole, torch.cat(halves, dim=1))), "zero_rows": scales.tolist()
    }  # fmt: skip


@check
def new_weights(world):
    """What loading another checkpoint into the quantised head says."""
    layer = world.target.lm_head
    loader = layer.weight.weight_loader
    return {
        "weight": refusal(loader, layer.weight, world.plain),
        "restore": refusal(layer.quant_method.restore_weights_before_loading, layer),
    }


@check
def refusals(world):
    """What the head says to a model or arguments it must not touch."""
    from engine_bridge.sglang_plugin import head

    config, load = world.config, world.load_config
    model = world.loader._initialize_model.__wrapped__(config, load)
    found = {}

    model.logits_processor.use_fp32_lm_head = True
    found["fp32 by configuration"] = refusal(head.quantise_head, model, config, load)
    model.logits_processor.use_fp32_lm_head = False
    tied = SimpleNamespace(
        is_draft_model=False, hf_config=SimpleNamespace(tie_word_embeddings=True)
    )
    found["tied by configuration"] = refusal(head.quantise_head, model, tied, load)
    kept = model.lm_head.weight
    model.lm_head.weight = model.model.word_embeddings.weight
    found["tied in fact"] = refusal(head.quantise_head, model, config, load)
    model.lm_head.weight = kept
    plain = model.lm_head.quant_method
    model.lm_head.quant_method = type("GPTQMarlinMethod", (), {})()
    found["quantised already"] = refusal(head.quantise_head, model, config, load)
    model.lm_head.quant_method = plain
    found["no head"] = refusal(head.quantise_head, torch.nn.Linear(2, 2), config, load)
    found["untouched after refusals"] = type(model.lm_head.quant_method).__name__
    for name, value in (
        ("enable_fp32_lm_head", True),
        ("lora_target_modules", ["q_proj", "lm_head"]),
        ("lora_target_modules", ["all"]),
    ):
        arguments = SimpleNamespace(**{name: value})
        found[f"{name}={value}"] = refusal(head.check_arguments, arguments)
    found["arguments that are fine"] = refusal(head.check_arguments, world.arguments)
    found["fine"] = refusal(head.quantise_head, model, config, load)
    found["missing when LoRA wraps it"] = head.missing(SimpleNamespace(set_lora=None))
    found["missing when plain"] = head.missing(world.draft.lm_head)
    return found


@check
def sharing(world):
    """SGLang's own init_lm_head, before and after which the draft's head is looked at."""
    torch.cuda.synchronize = torch.cuda.empty_cache = lambda: None
    own = world.draft.lm_head
    worker = world.worker(world.draft)
    had_method = hasattr(world.draft, "set_lm_head_from_target")
    worker.init_lm_head()
    stubborn = world.loader._initialize_model(world.draft_config, world.load_config)
    stubborn.set_lm_head_from_target = lambda head: None
    x = torch.randn(4, world.plain.shape[1], dtype=torch.bfloat16)
    return {
        "draft": type(world.draft).__name__, "upstream_has_it": had_method,
        "own_before": own is not world.target.lm_head,
        "same_module": world.draft.lm_head is world.target.lm_head,
        "same_embedding": world.draft.model.word_embeddings.weight
        is world.target.model.word_embeddings.weight,
        "same_logits": bool(
            torch.equal(
                world.draft.logits_processor._compute_lm_head(x, world.draft.lm_head),
                world.target.logits_processor._compute_lm_head(x, world.target.lm_head),
            )
        ),
        "refusal": refusal(world.worker(stubborn).init_lm_head),
    }  # fmt: skip


@check
def clamp(world):
    """Humming's activation with the hook, SGLang's Triton path, and Humming's without the hook."""
    import sgl_kernel
    from sglang.srt.layers.moe.moe_runner.base import MoeRunnerConfig
    from sglang.srt.layers.moe.moe_runner.humming import HummingRunnerCore
    from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import _swiglu_silu_clamp_mul

    from engine_bridge.sglang_plugin import clamp

    def silu_and_mul(inputs, outputs):  # sgl_kernel's is for GPUs; this is what it computes
        gate, up = inputs.float().chunk(2, dim=-1)
        outputs.copy_(torch.nn.functional.silu(gate) * up)

    sgl_kernel.silu_and_mul = silu_and_mul

    def core(**config):
        return HummingRunnerCore(
            MoeRunnerConfig(num_experts=4, num_local_experts=4, layer_id=35, **config)
        )

    x = torch.randn(64, 2 * 96, dtype=torch.bfloat16) * 5
    reference = _swiglu_silu_clamp_mul(x, 4.0)
    out, free, dropped, unlimited = (torch.empty(64, 96, dtype=torch.bfloat16) for _ in range(4))
    limited = core(gemm1_clamp_limit=4.0)
    limited.apply_activation(x, out)
    calls = clamp.calls
    core().apply_activation(x, unlimited)
    silu_and_mul(x, free)
    HummingRunnerCore.apply_activation.__wrapped__(limited, x, dropped)
    bad = x.clone()
    bad[0, 0] = float("nan")
    poisoned = torch.empty_like(out)
    limited.apply_activation(bad, poisoned)
    return {
        "equal_to_triton_path": bool(torch.equal(out, reference)),
        "largest_difference": float((out.float() - reference.float()).abs().max()),
        "without_the_hook_differs_by": float((dropped.float() - reference.float()).abs().max()),
        "without_a_limit_untouched": bool(torch.equal(unlimited, free)),
        "applied_layers": sorted(clamp.applied_layers), "calls": calls,
        "nan_stays": bool(poisoned[0, 0].isnan()),
    }  # fmt: skip


@check
def evidence(world):
    """What the evidence says of these models, and what it refuses of an impossible request."""
    from engine_bridge.sglang_plugin.evidence import Evidence
    from engine_bridge.sglang_plugin.request import Request

    asked = Evidence(Request(fp8_head=True, nextn=True, humming=True, clamp=True))
    scheduler = world.scheduler()
    found = asked.collect(scheduler)
    honest = Evidence(Request(fp8_head=True, nextn=True))
    plain = world.scheduler(drafting=False)
    return {
        "found": found,
        "refused": [str(each) for each in asked.refusals(found, scheduler)],
        "honest": [str(each) for each in honest.refusals(honest.collect(scheduler), scheduler)],
        "no_draft": [str(each) for each in honest.refusals(honest.collect(plain), plain)],
    }


def main():
    world, seen = World(), {}
    for name, function in CHECKS.items():
        try:
            seen[name] = function(world)
        except Exception:
            seen[name] = {"traceback": traceback.format_exc()}
    Path(OUT).write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
