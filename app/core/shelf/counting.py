"""Exact token counts by the running engine's own tokenizer, each text counted once.

A count is remembered by the text's hash and the tokenizer's identity: in memory, and for documents
in shelf.db, so that a document is counted once and for all. The identity is the model's name with
a fingerprint of how the tokenizer splits a probe, so a replaced model under an old name cannot
lend its counts.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.core.chat.prompt import document_prompt
from app.core.documents import Document
from app.core.shelf.store import ShelfStore, digest
from engine_bridge.chat.events import Message

if TYPE_CHECKING:
    import httpx

    from engine_bridge.backends.base import Endpoint
    from engine_bridge.chat.flavour import Flavour
    from engine_bridge.engine import Engine

KEPT = 2_000
KEPT_PROMPTS = 16
CHARACTERS_PER_TOKEN = 3.5
"""Where no tokenizer can be asked: English is nearer 4.4, code and Chinese are below."""


def estimated_tokens(text: str) -> int:
    """A guess for servers that do not count: a little high for English; a Chinese letter counts
    as a token, a Russian one as half."""
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return round((len(text) - wide) / CHARACTERS_PER_TOKEN) + wide


class Counter:
    """Counts for one engine handle after another; keep one for the life of the app.

    Every method returns None where the engine is not ready or cannot count (a generic server);
    `estimated_tokens` is what is left then.
    """

    def __init__(self, store: ShelfStore | None = None) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._identities: dict[str, str] = {}
        self._prompts: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._documents: dict[tuple[str, str, int, str], int] = {}
        self._busy: dict[tuple[str, str], asyncio.Lock] = {}

    async def document(self, document: Document, engine: "Engine") -> int | None:
        """Tokens a document takes in the prompt, with its tags and marks. Slow the first time."""
        if (found := self.known_document(document, engine)) is not None:
            return found
        text = await asyncio.to_thread(document_prompt, document)
        found = await self.text(text, engine, keep=True)
        if found is not None:
            self._documents[_name(document, engine)] = found
        return found

    def known_document(self, document: Document, engine: "Engine") -> int | None:
        """The same if it was counted for this engine already; takes no time."""
        return self._documents.get(_name(document, engine))

    async def text(self, text: str, engine: "Engine", *, keep: bool = False) -> int | None:
        """Tokens of a piece of a prompt. `keep`: remember it on disk, too."""
        from engine_bridge.chat import tokens, web

        if not text:
            return 0
        if (target := _target(engine)) is None:
            return None
        endpoint, flavour = target
        async with web.new_client(endpoint.base_url) as http:
            tokenizer = await self._tokenizer(engine, endpoint, flavour, http)
            if tokenizer is None:
                return None
            key = (await asyncio.to_thread(digest, text), tokenizer)
            # Two who ask for the same large text at once shall not both have it counted.
            async with self._busy.setdefault(key, asyncio.Lock()):
                try:
                    found = await asyncio.to_thread(self._recall, key)
                    if found is None:
                        found = await tokens.count_text(endpoint, flavour, text, http)
                        if found is not None:
                            await asyncio.to_thread(self._remember, key, found, keep)
                finally:
                    self._busy.pop(key, None)
            return found

    async def prompt(
        self, messages: Sequence[Message], engine: "Engine", thinking: bool | None = None
    ) -> int | None:
        """Tokens of a whole prompt, chat template included; remembered for the last few."""
        from engine_bridge.chat import tokens, web

        if (target := _target(engine)) is None:
            return None
        if (known := self.known_prompt(messages, engine, thinking)) is not None:
            return known
        endpoint, flavour = target
        async with web.new_client(endpoint.base_url) as http:
            found = await tokens.count_prompt(endpoint, flavour, messages, http, thinking=thinking)
        if found is not None:
            self._prompts[_prompt_key(messages, engine, thinking)] = found
            while len(self._prompts) > KEPT_PROMPTS:
                self._prompts.popitem(last=False)
        return found

    def known_prompt(
        self, messages: Sequence[Message], engine: "Engine", thinking: bool | None = None
    ) -> int | None:
        """The same if it was counted already; never waits for the engine."""
        return self._prompts.get(_prompt_key(messages, engine, thinking))

    async def _tokenizer(
        self, engine: "Engine", endpoint: "Endpoint", flavour: "Flavour", http: "httpx.AsyncClient"
    ) -> str | None:
        from engine_bridge.chat import tokens

        place = place_of(engine)
        if place not in self._identities:
            found = await tokens.identity(endpoint, flavour, http)
            if found is None:
                return None
            self._identities[place] = f"{engine.status.model_name}:{found}"
        return self._identities[place]

    def _recall(self, key: tuple[str, str]) -> int | None:
        found = self._known.get(key)
        if found is None and self._store is not None:
            found = self._store.tokens(*key)
        if found is not None:
            self._note(key, found)
        return found

    def _remember(self, key: tuple[str, str], count: int, keep: bool) -> None:
        self._note(key, count)
        if keep and self._store is not None:
            self._store.remember_tokens(*key, count)

    def _note(self, key: tuple[str, str], count: int) -> None:
        self._known[key] = count
        while len(self._known) > KEPT:
            self._known.popitem(last=False)


def _target(engine: "Engine") -> "tuple[Endpoint, Flavour] | None":
    from engine_bridge.chat.flavour import flavour_of

    endpoint = engine.endpoint
    return None if endpoint is None else (endpoint, flavour_of(engine.status))


def place_of(engine: "Engine") -> str:
    """One start of one engine."""
    status = engine.status
    return f"{status.base_url}|{status.model_name}|{status.engine_pid}"


def _name(document: Document, engine: "Engine") -> tuple[str, str, int, str]:
    return document.sha256, document.title, document.characters, place_of(engine)


def _prompt_key(
    messages: Sequence[Message], engine: "Engine", thinking: bool | None
) -> tuple[str, str]:
    found = hashlib.sha256(f"{thinking}".encode())
    for message in messages:
        found.update(f"\0{message.role}\0".encode())
        found.update(message.content.encode("utf-8", "surrogatepass"))
    return found.hexdigest(), place_of(engine)
