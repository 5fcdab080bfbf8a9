"""Which functions of SGLang the plugin hooks for which request, and the proof that it did."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from engine_bridge.sglang_plugin.refusal import Refused
from engine_bridge.sglang_plugin.request import Request

OLDEST, NEWEST = (0, 5, 19), (0, 5, 23)
"""The releases whose hook targets were checked; others are refused rather than tried."""

LOAD = "sglang.srt.model_loader.loader._initialize_model"
SHARE = "sglang.srt.speculative.eagle_worker_v2.EagleDraftWorker.init_lm_head"
ACTIVATION = "sglang.srt.layers.moe.moe_runner.humming.HummingRunnerCore.apply_activation"
TRITON = "sglang.srt.layers.attention.triton_backend.TritonAttnBackend.__init__"
TAKE_OVER = "sglang.srt.speculative.draft_utils.DraftBackendFactory.create_draft_extend_backend"
START = "sglang.srt.managers.scheduler.Scheduler.__init__"
STATE = "sglang.srt.managers.scheduler.Scheduler.get_internal_state"


@dataclass(frozen=True)
class Hook:
    """One function of SGLang, how it is hooked (a name of `HookType`), and by what."""

    target: str
    kind: str
    function: Callable[..., Any]


def sglang_version() -> str:
    """The installed SGLang's version; raises Refused where none is installed."""
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        raise Refused("the plugin", "SGLang is not installed") from None


def check_version(version: str) -> None:
    """Raise Refused unless the plugin knows this release of SGLang."""
    numbers = version.split("+", 1)[0].split(".")[:3]
    known = all(each.isdecimal() for each in numbers) and (
        OLDEST <= tuple(map(int, numbers)) <= NEWEST
    )
    if not known:
        oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
        raise Refused("the plugin", f"it knows SGLang {oldest} to {newest}, this is {version}")


def wanted_hooks(request: Request) -> list[Hook]:
    """The hooks a request needs. Imports what they call, so only what is asked for."""
    from engine_bridge.sglang_plugin.evidence import Evidence

    evidence = Evidence(request)
    hooks = [Hook(START, "AROUND", evidence.start), Hook(STATE, "AFTER", evidence.publish)]
    if request.fp8_head:
        from engine_bridge.sglang_plugin.head import quantise_head

        hooks.append(Hook(LOAD, "AFTER", quantise_head))
    if request.nextn:
        from engine_bridge.sglang_plugin.share import share_head

        hooks.append(Hook(SHARE, "AROUND", share_head))
    if request.clamp:
        from engine_bridge.sglang_plugin.clamp import apply_activation

        hooks.append(Hook(ACTIVATION, "AROUND", apply_activation))
    if request.split_verify:
        from engine_bridge.sglang_plugin import verify

        hooks += [Hook(TRITON, "AROUND", verify.prepare), Hook(TAKE_OVER, "AROUND", verify.mix)]
    evidence.hooks = hooks
    return hooks


def install(request: Request) -> None:
    """Register the hooks with SGLang, which applies them once all plugins have registered.

    Raises Refused for an SGLang that is not known or lacks a function to hook: SGLang itself
    would only log that.
    """
    check_version(sglang_version())
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in wanted_hooks(request):
        try:
            pkgutil.resolve_name(hook.target)
        except (ImportError, AttributeError) as error:
            raise Refused(hook.target, f"SGLang {sglang_version()} lacks it ({error})") from None
        HookRegistry.register(hook.target, hook.function, HookType[hook.kind])


def applied(hook: Hook) -> str:
    """ "applied" when calling the target runs our function, else why not."""
    wrapped = pkgutil.resolve_name(hook.target)
    while wrapped is not None:
        cells = [each.cell_contents for each in getattr(wrapped, "__closure__", None) or ()]
        if hook.function in cells:
            return "applied"
        wrapped = getattr(wrapped, "__wrapped__", None)
    return "registered, but SGLang did not apply it"
