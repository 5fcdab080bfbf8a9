"""The proof of each optimisation: what was resolved, what was observed inside, and the verdict.

Pure functions of what the engine said: `/server_info`, the plugin's evidence from inside the
scheduler process, counters that moved, and the accept length of a warm-up probe.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_bridge.backends.sglang import rounds, switches
from engine_bridge.contract import Effect, Optimisation, Verdict

NO_EVIDENCE = "The plugin inside the engine reported nothing, so this cannot be seen."
DEAD_DRAFTS = (
    "Accept length 1.00: no draft was accepted. That is the known failure of a draft whose output"
    " head is not the target's; speculation only costs time then."
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a running engine shows of itself."""

    info: Mapping[str, Any]
    """`/server_info`."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """See `counters`."""
    accept_length: float | None = None
    """Of the warm-up probe; None where it was not run."""

    @property
    def state(self) -> Mapping[str, Any]:
        """The scheduler's own state: resolved arguments and what it measured."""
        states = self.info.get("internal_states")
        return states[0] if isinstance(states, list) and states else self.info

    @property
    def evidence(self) -> Mapping[str, Any] | None:
        found = self.state.get("ling_chat")
        return found if isinstance(found, dict) else None


def counters(metrics_text: str) -> dict[str, float]:
    """The counters of `/metrics` that prove something: replayed decode passes, verify rounds."""
    found: dict[str, float] = {}
    for mode, value in re.findall(
        r'^sglang:cuda_graph_passes_total\{[^}]*mode="(\w+)"[^}]*\} ([\d.e+]+)$', metrics_text, re.M
    ):
        found[mode] = found.get(mode, 0.0) + float(value)
    for value in re.findall(
        r"^sglang:spec_verify_calls_total\{[^}]*\} ([\d.e+]+)$", metrics_text, re.M
    ):
        found["verify_calls"] = found.get("verify_calls", 0.0) + float(value)
    return found


def judge(
    optimisations: tuple[Optimisation, ...], seen: Seen, effects: Mapping[str, Effect]
) -> tuple[Optimisation, ...]:
    """The optimisations with resolved, observed, verdict, evidence and effect filled in."""
    return tuple(_judged(o, seen, effects.get(o.id, o.effect)) for o in optimisations)


def _judged(o: Optimisation, seen: Seen, effect: Effect | None) -> Optimisation:
    if o.verdict is Verdict.NOT_SUPPORTED:
        return o
    found = _RULES[o.id](seen)
    update: dict[str, Any] = {
        "resolved": found.resolved or o.resolved,
        "observed": found.observed or None,
        "evidence": found.evidence,
        "effect": effect,
    }
    if o.requested:
        update |= {"verdict": found.verdict, "note": found.note}
    else:
        update |= {"verdict": Verdict.OFF, "note": ""}
    return o.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class _Found:
    verdict: Verdict
    resolved: str = ""
    observed: str = ""
    note: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


def _humming(seen: Seen) -> _Found:
    resolved = str(seen.state.get("moe_runner_backend") or "")
    if seen.evidence is None:
        return _Found(Verdict.UNPROVEN, resolved, note=NO_EVIDENCE)
    experts = seen.evidence.get("experts") or {}
    parts = {name: part for name in ("target", "draft") if (part := experts.get(name))}
    said = ", ".join(f"{p['humming']} of {p['layers']} {name} layers" for name, p in parts.items())
    evidence = {"experts": experts}
    if parts and all(p["layers"] and p["humming"] == p["layers"] for p in parts.values()):
        return _Found(Verdict.VERIFIED, resolved, said, evidence=evidence)
    others = {
        kind: count
        for part in parts.values()
        for kind, count in part.get("backends", {}).items()
        if kind != "humming"
    }
    ran = ", ".join(f"{count} on {kind}" for kind, count in others.items()) or "no expert layers"
    return _Found(Verdict.FELL_BACK, resolved, said, f"Not all on Humming: {ran}.", evidence)


def _fp8_head(seen: Seen) -> _Found:
    if seen.state.get("enable_fp32_lm_head"):
        why = switches.explain(switches.FP8_HEAD, "fp32-head")
        return _Found(Verdict.FELL_BACK, "FP32", note=why)
    resolved = "FP8 at load, by the plugin"
    if seen.evidence is None:
        return _Found(Verdict.UNPROVEN, resolved, note=NO_EVIDENCE)
    head = seen.evidence.get("head") or {}
    said = f"{head.get('dtype', 'no head')}, {head.get('method', '')}".rstrip(", ")
    evidence = {"head": head}
    if "float8" in str(head.get("dtype")) and head.get("scales"):
        shape = f" · {head.get('rows'):,} × {head.get('columns'):,}" if head.get("rows") else ""
        return _Found(Verdict.VERIFIED, resolved, said + shape, evidence=evidence)
    return _Found(Verdict.FELL_BACK, resolved, said, "The head is not in 8 bits.", evidence)


def _nextn(seen: Seen) -> _Found:
    state = seen.state
    algorithm = state.get("speculative_algorithm")
    if not algorithm:
        return _Found(Verdict.FELL_BACK, "none", note="SGLang resolved no speculation.")
    names = ("num_steps", "eagle_topk", "num_draft_tokens")
    shape = "/".join(str(state.get(f"speculative_{name}")) for name in names)
    resolved = f"{algorithm} {shape}"
    accept = seen.accept_length or state.get("avg_spec_accept_length")
    calls = seen.metrics.get("verify_calls", 0.0)
    evidence: dict[str, Any] = {"accept_length": accept, "verify_calls": calls}
    if seen.evidence is not None:
        evidence["speculation"] = seen.evidence.get("speculation")
    if not accept:
        return _Found(Verdict.UNPROVEN, resolved, note="Nothing drafted so far.", evidence=evidence)
    said = f"accept length {accept:.2f}" + (f", {calls:,.0f} rounds" if calls else "")
    if accept <= rounds.DEAD:
        return _Found(Verdict.FELL_BACK, resolved, said, DEAD_DRAFTS, evidence)
    return _Found(Verdict.VERIFIED, resolved, said, evidence=evidence)


def _sharing(seen: Seen) -> _Found:
    if seen.evidence is None:
        return _Found(Verdict.UNPROVEN, note=NO_EVIDENCE)
    shared = (seen.evidence.get("head") or {}).get("shared_with_draft")
    evidence = {"shared_with_draft": shared}
    if shared is None:
        return _Found(Verdict.UNPROVEN, "", "no draft", "There is no draft.", evidence)
    if shared:
        said = "draft.lm_head is target.lm_head"
        return _Found(Verdict.VERIFIED, "one module", said, evidence=evidence)
    note = "The draft has a head of its own; its drafts will not be accepted."
    return _Found(Verdict.FELL_BACK, "one module", "two modules", note, evidence)


def _clamp(seen: Seen) -> _Found:
    if seen.evidence is None:
        return _Found(Verdict.UNPROVEN, note=NO_EVIDENCE)
    clamp = seen.evidence.get("clamp") or {}
    expected, applied = clamp.get("expected_layers") or [], clamp.get("applied_layers") or []
    evidence = {"clamp": clamp}
    resolved = f"layers {_ranges(expected)}" if expected else "no limits in the model"
    if not expected:
        return _Found(Verdict.NOT_SUPPORTED, resolved, evidence=evidence)
    missed = sorted(set(expected) - set(applied))
    if missed and clamp.get("calls"):
        note = f"Layers {_ranges(missed)} run without their limit: answers may be wrong."
        return _Found(Verdict.FELL_BACK, resolved, f"layers {_ranges(applied)}", note, evidence)
    if not clamp.get("calls"):
        note = "No token has gone through these layers yet."
        return _Found(Verdict.UNPROVEN, resolved, note=note, evidence=evidence)
    return _Found(Verdict.VERIFIED, resolved, f"ran on layers {_ranges(applied)}", "", evidence)


def _split(seen: Seen) -> _Found:
    state = seen.state
    resolved = str(state.get("decode_attention_backend") or state.get("attention_backend") or "")
    if seen.evidence is None:
        return _Found(Verdict.UNPROVEN, resolved, note=NO_EVIDENCE)
    split = seen.evidence.get("split_verify")
    if not split:
        return _Found(Verdict.UNPROVEN, resolved, note="No draft has been checked yet.")
    evidence = {"split_verify": split}
    if split["calls"].get("target") and not split["calls"].get("target_declined"):
        heads, tokens, _ = split["block"]
        said = f"split kernel, {heads} heads × {tokens} tokens a block"
        return _Found(Verdict.VERIFIED, resolved, said, evidence=evidence)
    note = "Drafts are checked by SGLang's own kernel, which is slow in long contexts."
    return _Found(Verdict.FELL_BACK, resolved, "another kernel", note, evidence)


def _graphs(seen: Seen) -> _Found:
    decode = (seen.state.get("cuda_graph_config") or {}).get("decode") or {}
    resolved = str(decode.get("backend") or "")
    memory = (seen.state.get("memory_usage") or {}).get("graph") or {}
    replayed = seen.metrics.get("decode_cuda_graph", 0.0)
    eager = seen.metrics.get("decode_none", 0.0)
    evidence = {"memory_gb": memory, "replayed": replayed, "eager": eager}
    if resolved == "disabled":
        return _Found(Verdict.FELL_BACK, resolved, note="SGLang switched them off.")
    if replayed > 0:
        said = f"{replayed:,.0f} decode passes replayed, {eager:,.0f} not"
        return _Found(Verdict.VERIFIED, resolved, said, evidence=evidence)
    if eager > 0:
        said = f"{eager:,.0f} decode passes, none replayed"
        return _Found(Verdict.FELL_BACK, resolved, said, "Nothing is replayed.", evidence)
    return _Found(Verdict.UNPROVEN, resolved, note="Nothing decoded so far.", evidence=evidence)


def _ranges(layers: list[int]) -> str:
    """`[35, 36, 37, 40]` as "35-37, 40"."""
    parts: list[str] = []
    for layer in sorted(layers):
        first, _, last = parts[-1].partition("-") if parts else ("", "", "")
        if parts and int(last or first) == layer - 1:
            parts[-1] = f"{first}-{layer}"
        else:
            parts.append(str(layer))
    return ", ".join(parts) or "none"


def _nothing(seen: Seen) -> _Found:
    return _Found(Verdict.UNPROVEN)


_RULES: Mapping[str, Callable[[Seen], _Found]] = {
    switches.HUMMING: _humming,
    switches.FP8_HEAD: _fp8_head,
    switches.NEXTN: _nextn,
    switches.SPLIT: _split,
    switches.SHARING: _sharing,
    switches.CLAMP: _clamp,
    switches.GRAPHS: _graphs,
    switches.DSPARK: _nothing,
}
