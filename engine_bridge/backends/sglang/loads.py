"""What SGLang is doing, from `/v1/loads`: one cheap request, no flag needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine_bridge.backends.base import Endpoint
from engine_bridge.contract import Load

if TYPE_CHECKING:
    import httpx

PATH = "/v1/loads?include=core,memory,spec,queues"
LONGEST_S = 10.0
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Moments:
    """SGLang's running sums over its decode steps (`decode_moments`, 0.5.23).

    The engine itself takes the time from one step's launch to the next and leaves out the first
    of each answer, so the figures do not depend on how often they are asked for.
    """

    steps: float = 0.0
    step_us: float = 0.0
    tokens: float = 0.0

    @classmethod
    def of(cls, rank: Mapping[str, Any]) -> "Moments":
        """From one rank; zeros where the engine has not decoded yet or does not tell."""
        match rank.get("decode_moments"):
            # count, sum of batch sizes, of step times (µs), of squares, of products, of tokens
            case [steps, _, step_us, _, _, tokens]:
                return cls(float(steps), float(step_us), float(tokens))
        return cls()

    def since(self, before: "Moments") -> "Moments | None":
        """What was added; None when nothing was, or when the engine began anew."""
        steps = self.steps - before.steps
        if steps <= 0:
            return None
        return Moments(steps, self.step_us - before.step_us, self.tokens - before.tokens)

    @property
    def step_s(self) -> float:
        return self.step_us / self.steps / 1e6

    @property
    def tokens_per_step(self) -> float:
        return self.tokens / self.steps

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / (self.step_us / 1e6)


def parse(answer: Mapping[str, Any], before: Moments | None = None) -> tuple[Load, Moments]:
    """The load in an answer of `/v1/loads`, and the sums to compare the next one with.

    Rates are means since `before`; without it they are None.
    """
    ranks = [rank for rank in answer.get("loads") or () if isinstance(rank, dict)]
    rank = ranks[0] if ranks else {}
    moments = Moments.of(rank)
    grown = moments.since(before) if before is not None else None
    drafts = isinstance(rank.get("speculative"), dict)
    load = Load(
        running=_total(ranks, "num_running_reqs"),
        waiting=_total(ranks, "num_waiting_reqs"),
        counters=_counters(ranks, moments, drafts),
        decode_tokens_per_s=grown.tokens_per_s if grown else None,
        round_s=grown.step_s if grown else None,
        accept_length=grown.tokens_per_step if grown and drafts else None,
        context_tokens=_total(ranks, "num_used_tokens") or None,
        kv_usage=_share(rank.get("token_usage")),
        cache_hit_rate=_share(rank.get("cache_hit_rate")),
    )
    return load, moments


def weight_and_cache_bytes(answer: Mapping[str, Any]) -> int | None:
    """GPU memory that SGLang counts as its own: weights, KV cache and graphs, in bytes."""
    ranks = [rank for rank in answer.get("loads") or () if isinstance(rank, dict)]
    parts = [rank.get("memory") for rank in ranks]
    gib = sum(
        float(memory.get(name) or 0)
        for memory in parts
        if isinstance(memory, dict)
        for name in ("weight_gb", "kv_cache_gb", "graph_gb")
    )
    return round(gib * GIB) or None


async def ask(http: "httpx.AsyncClient", endpoint: Endpoint) -> dict[str, Any]:
    """The engine's answer now. Raises OSError when it does not answer or answers nonsense."""
    import httpx

    try:
        answer = await http.get(
            endpoint.base_url + PATH, headers=endpoint.headers, timeout=LONGEST_S
        )
        found = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError) as problem:
        raise OSError(str(problem)) from problem
    if not isinstance(found, dict):
        raise OSError("the engine's load is no object")
    return found


def _counters(ranks: list[dict[str, Any]], moments: Moments, drafts: bool) -> dict[str, float]:
    counters: dict[str, float] = {
        "prompt_tokens": _total(ranks, "total_prefill_uncached_tokens"),
        "predicted_tokens": moments.tokens,
    }
    if drafts:
        counters["draft_rounds"] = moments.steps
        counters["accepted_tokens"] = moments.tokens - moments.steps
    return counters


def _total(ranks: list[dict[str, Any]], name: str) -> int:
    return sum(int(rank.get(name) or 0) for rank in ranks)


def _share(found: Any) -> float | None:
    return float(found) if isinstance(found, int | float) else None
