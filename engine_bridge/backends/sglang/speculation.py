"""Live figures against what was learned: what each switch brought, and when NEXTN costs."""

from dataclasses import replace

from engine_bridge.backends.sglang import rounds, switches
from engine_bridge.backends.sglang.learned import Decode, Learned, Setting
from engine_bridge.backends.sglang.probe import Probe
from engine_bridge.contract import Effect, Load, Optimisation, Verdict

ENOUGH_STEPS = 8
"""Fewer steps between two looks are too few for a mean."""


def effects(learned: Learned, setting: Setting, shown: Probe | None) -> dict[str, Effect]:
    """What each switch that is on brought: decode speed with it over the recorded run without it,
    other switches and prompt length the same. Only what was really measured both ways."""
    if shown is None:
        return {}
    found: dict[str, Effect] = {}
    for id_ in setting.on:
        without = learned.get(_without(setting, id_), shown.prompt_tokens)
        if without is None:
            continue
        with_it, plain = shown.decode.tokens_per_s, without.tokens_per_s
        found[id_] = Effect(
            decode_ratio=round(with_it / plain, 3),
            how=f"{shown.prompt_tokens:,}-token prompt: {plain:.1f} → {with_it:.1f} tokens/s",
            measured_at=without.at,
        )
    return found


def _without(setting: Setting, id_: str) -> Setting:
    """How the same engine runs with a switch off: NEXTN takes its verification with it, and
    either the attention backend that is there for that alone."""
    off = {id_, switches.SPLIT} if id_ == switches.NEXTN else {id_}
    attention = setting.attention
    if switches.SPLIT in off:
        attention = attention.partition("+")[0]
    return replace(setting, on=setting.on - off, attention=attention)


def learn(learned: Learned, setting: Setting, context_tokens: int, decode: Decode) -> None:
    """Remember live figures where there are enough of them."""
    if decode.steps >= ENOUGH_STEPS and decode.step_s > 0:
        learned.learn(setting, context_tokens, decode)


def watch(
    proven: tuple[Optimisation, ...], load: Load, learned: Learned, setting: Setting
) -> tuple[Optimisation, ...] | None:
    """The optimisations again when what can be said of NEXTN has changed, else None."""
    if switches.NEXTN not in setting.on or not load.round_s or not load.context_tokens:
        return None
    now = Decode(load.round_s, load.accept_length or 1.0)
    plain = _without(setting, switches.NEXTN)
    found = rounds.compare(
        now,
        learned.get(plain, load.context_tokens),
        learned.nearest_shorter(plain, load.context_tokens),
    )
    said = rounds.sentence(found, now, load.context_tokens)
    figures = {
        "round_ms": round(1000 * now.step_s, 1),
        "accept_length": round(now.accept_length, 2),
        "context_tokens": load.context_tokens,
        "of_plain_decoding": round(found.ratio, 2) if found else None,
    }
    changed = tuple(
        o.model_copy(update={"note": said, "evidence": {**o.evidence, "live": figures}})
        if o.id == switches.NEXTN and o.verdict is not Verdict.OFF
        else o
        for o in proven
    )
    return changed if changed != proven else None
