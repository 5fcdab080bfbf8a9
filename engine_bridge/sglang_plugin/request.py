"""What was asked of the plugin, as the launcher wrote it into the environment."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from engine_bridge.sglang_plugin.refusal import Refused


@dataclass(frozen=True)
class Request:
    """What must be on, and the file that is to hold the evidence (None: no file)."""

    fp8_head: bool = False
    nextn: bool = False
    humming: bool = False
    clamp: bool = False
    split_verify: bool = False
    evidence: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the JSON object; raises Refused when it is none or holds an unknown name."""
        try:
            wanted = json.loads(text)
            path = wanted.pop("evidence", None)
            request = cls(**wanted, evidence=Path(path) if path else None)
        except (ValueError, AttributeError, TypeError) as error:
            raise Refused("the plugin", f"its request cannot be read ({error})") from None
        if not all(isinstance(value, bool) for value in wanted.values()):
            raise Refused("the plugin", "its request holds something other than true and false")
        return request
