"""What the engine has read of a conversation's documents, kept over its restarts.

Keeping and bringing back take milliseconds, and nothing happens where an engine cannot do it.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from engine_bridge.engine import Engine


async def restore(conversation: "Conversation", engine: "Engine") -> int:
    """Give the engine what was kept of the documents, or of as many of the first ones as there
    is. Returns the tokens it holds now, 0 where nothing was done. Never raises."""
    from engine_bridge.chat import kept, web

    if engine.endpoint is None or not conversation.documents:
        return 0
    with contextlib.suppress(BridgeError, OSError):
        names = await asyncio.to_thread(_names, conversation, engine)
        async with web.new_client(engine.endpoint.base_url) as http:
            return await kept.restore(engine.endpoint, names, http)
    return 0


async def save(conversation: "Conversation", engine: "Engine", tokens: int | None) -> None:
    """Keep what the engine holds, which must be of this conversation: `tokens` at least, where
    somebody else was not faster. Never raises."""
    from engine_bridge.chat import kept, web

    if engine.endpoint is None or not conversation.documents:
        return
    with contextlib.suppress(BridgeError, OSError):
        name = (await asyncio.to_thread(_names, conversation, engine))[0]
        documents = [each.sha256 for each in conversation.documents]
        async with web.new_client(engine.endpoint.base_url) as http:
            await kept.save(engine.endpoint, name, documents, http, at_least=tokens or 0)


def _names(conversation: "Conversation", engine: "Engine") -> list[str | None]:
    """For all documents, then for ever fewer of the first ones."""
    from engine_bridge.chat.kept import name_for

    head = f"{conversation.thinking}\n{conversation.system}"
    known = [f"{each.sha256} {each.title}" for each in conversation.documents]
    return [name_for(engine.status, head, known[:n]) for n in range(len(known), 0, -1)]
