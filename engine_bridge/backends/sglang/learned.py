"""What was measured on this machine: decode speed by model, switches and context length."""

import contextlib
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from engine_bridge import files, paths

SMALLEST_BUCKET = 1024
KEPT = 500
ATTENTION = ("flashinfer", "flashinfer+triton", "triton", "fa3")


@dataclass(frozen=True, slots=True)
class Setting:
    """What makes two measurements comparable."""

    machine: str
    """The GPU and SGLang's version."""
    model: str
    on: frozenset[str]
    """Optimisations that are on, by id."""
    attention: str
    """The backend that reads prompts; with another one for decoding, "PREFILL+DECODE"."""

    def key(self, bucket: int) -> str:
        on = "+".join(sorted(self.on)) or "none"
        return "|".join((self.machine, self.model, on, self.attention, str(bucket)))


@dataclass(frozen=True, slots=True)
class Decode:
    """Mean figures of decoding at one context length."""

    step_s: float
    """Seconds from one step (one round of draft and verify) to the next."""
    accept_length: float
    """Tokens a step yields; 1 without speculation."""
    steps: float = 0.0
    """How many were measured."""
    at: float = 0.0
    """Unix time of the last, seconds."""

    @property
    def tokens_per_s(self) -> float:
        return self.accept_length / self.step_s


def bucket(context_tokens: int) -> int:
    """The context lengths that count as one: a power of two up to the next, from 1,024 on."""
    size = SMALLEST_BUCKET
    while size * 2 <= context_tokens:
        size *= 2
    return size


class Learned:
    """A small JSON file in the state folder; `save` writes it. An unreadable one is empty."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or paths.state_dir() / "sglang-decode.json"
        try:
            known = files.read_object(self._path)
            self._known = {key: Decode(**value) for key, value in known.items()}
        except TypeError:  # written by another version
            self._known = {}
        self._changed = False

    def get(self, setting: Setting, context_tokens: int) -> Decode | None:
        """What was measured in this context length's bucket."""
        return self._known.get(setting.key(bucket(context_tokens)))

    def nearest_shorter(self, setting: Setting, context_tokens: int) -> Decode | None:
        """The longest context measured that is in a lower bucket."""
        size = bucket(context_tokens) // 2
        while size >= SMALLEST_BUCKET:
            if (found := self._known.get(setting.key(size))) is not None:
                return found
            size //= 2
        return None

    def learn(self, setting: Setting, context_tokens: int, new: Decode) -> None:
        """Add a measurement; a mean of steps, in which the past counts for at most as much."""
        key = setting.key(bucket(context_tokens))
        old = self._known.pop(key, None)
        weight = min(old.steps, new.steps) if old else 0.0
        total = new.steps + weight
        if old and total:
            new = Decode(
                (old.step_s * weight + new.step_s * new.steps) / total,
                (old.accept_length * weight + new.accept_length * new.steps) / total,
                old.steps + new.steps,
            )
        self._known[key] = Decode(new.step_s, new.accept_length, new.steps, time.time())
        while len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)))
        self._changed = True

    def save(self) -> None:
        """Write what is new, in one step; a folder that cannot be written costs the memory."""
        if not self._changed:
            return
        self._changed = False
        fresh = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            fresh.write_text(json.dumps({key: asdict(each) for key, each in self._known.items()}))
            fresh.replace(self._path)

    def best_attention(self, setting: Setting, context_tokens: int) -> str | None:
        """The attention backend that decoded fastest in this context length with the same
        switches, where at least two were measured here."""
        found = {
            name: each.tokens_per_s
            for name in ATTENTION
            if (each := self.get(replace(setting, attention=name), context_tokens)) is not None
        }
        return max(found, key=lambda name: found[name]) if len(found) > 1 else None
