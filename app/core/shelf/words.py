"""What the user has typed of the next question, read while they rest.

Only on the embedded engine, and with models from whose cache an end can be taken back: words that
are typed otherwise after all then cost nothing but themselves. Other engines read a question in
no time.
"""

import asyncio
import contextlib
import functools
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from engine_bridge.engine import Engine


async def read(question: str, conversation: "Conversation", engine: "Engine") -> None:
    """Read the prompt as it would be if the question were sent now. Cancelling stops the engine.
    Never raises: what is not read now is read when it is asked."""
    from engine_bridge.chat import warm, web
    from engine_bridge.chat.flavour import flavour_of

    status, endpoint = engine.status, engine.endpoint
    is_embedded = status.spec is not None and status.spec.backend == "llamacpp"
    if endpoint is None or not is_embedded:
        return
    if not await asyncio.to_thread(_rolls_back, status.model_path):
        return
    with contextlib.suppress(BridgeError):
        async with web.new_client(endpoint.base_url) as http:
            reading = warm.warm(
                endpoint,
                flavour_of(status),
                conversation.model or status.model_name,
                conversation.messages(),
                http,
                # The session's, as whether this question thinks is said when it is sent.
                thinking=conversation.parameters.thinking,
                question=question,
            )
            async with aclosing(reading) as events:
                async for _event in events:
                    pass


@functools.lru_cache(maxsize=8)
def _rolls_back(model_path: str) -> bool:
    """Reads the file's header: 0.1 s."""
    from engine_bridge.models import tensors

    try:
        return tensors.rolls_back(tensors.read(Path(model_path)))
    except BridgeError:
        return False
