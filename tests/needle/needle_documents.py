"""Documents of a wanted length with ten facts planted at ten depths, and the engine's tokens."""

import random
import struct
from dataclasses import dataclass
from pathlib import Path

import httpx

from app.core.documents import Document, document_from_bytes
from engine_bridge.backends.base import Endpoint

DEPTHS = tuple(tenth / 10 for tenth in range(10))
WHO = (
    "keeper",
    "clerk",
    "gardener",
    "captain",
    "tailor",
    "baker",
    "judge",
    "miller",
    "nurse",
    "porter",
)
CHARACTERS_PER_TOKEN = 4.6


@dataclass(frozen=True)
class Needle:
    depth: float
    who: str
    code: str

    @property
    def fact(self) -> str:
        return f"The secret code of the {self.who} is {self.code}."

    @property
    def question(self) -> str:
        return f"What is the secret code of the {self.who}? Answer with the code alone."


def haystack(tokens: int, seed: int = 1) -> tuple[Document, tuple[Needle, ...]]:
    """About so many tokens of plain English (SmolLM2's and Qwen's tokenizers agree to 5%)."""
    pick = random.Random(seed)
    lines = []
    while sum(map(len, lines)) < tokens * CHARACTERS_PER_TOKEN:
        lines.append(
            f"In the {pick.choice(('spring', 'summer', 'autumn', 'winter'))} the village "
            f"{pick.choice(('mended', 'painted', 'opened', 'closed'))} its "
            f"{pick.choice(('mill', 'bridge', 'school', 'market', 'church'))}, and people spoke of "
            f"{pick.choice(('rain', 'harvest', 'travel', 'music', 'prices'))} for many evenings."
        )
    needles = tuple(
        Needle(depth, who, f"{pick.choice('BDFGKLMNPR')}{pick.randrange(100, 999)}")
        for depth, who in zip(DEPTHS, WHO, strict=True)
    )
    places = [round(needle.depth * len(lines)) for needle in needles]
    for place, needle in sorted(
        zip(places, needles, strict=True), reverse=True, key=lambda pair: pair[0]
    ):
        lines.insert(place, needle.fact)
    return document_from_bytes("\n".join(lines).encode(), f"chronicle {tokens}.txt"), needles


def tokens_in(kv_file: Path) -> list[int]:
    """The tokens whose keys and values a kept file holds: what the engine really computed.

    llama.cpp's sequence file: magic "ggsq", version, number of words, then the server's own
    list: -1, 1, the number of tokens, the tokens.
    """
    data = kv_file.read_bytes()
    magic, _version, words = struct.unpack_from("<3I", data)
    assert magic == 0x67677371
    listed = struct.unpack_from(f"<{words}i", data, 12)
    assert listed[:2] == (-1, 1)
    return list(listed[3 : 3 + listed[2]])


def ask_engine(endpoint: Endpoint, path: str, body: dict) -> dict:
    answer = httpx.post(
        f"{endpoint.base_url}{path}", json=body, headers=endpoint.headers, timeout=120
    )
    return answer.raise_for_status().json()


def tokenize(endpoint: Endpoint, text: str) -> list[int]:
    body = {"content": text, "add_special": True, "parse_special": True}
    return ask_engine(endpoint, "/tokenize", body)["tokens"]


def detokenize(endpoint: Endpoint, tokens: list[int]) -> str:
    return ask_engine(endpoint, "/detokenize", {"tokens": tokens})["content"]
