"""What the shelf's tests share: documents, a running warmer, and waiting."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.core.chat.conversation import Conversation
from app.core.documents import Document, document_from_bytes
from app.core.shelf.counting import Counter
from app.core.shelf.warming import Warmer
from engine_bridge.host.client import HostedEngine


@asynccontextmanager
async def warming(engine: HostedEngine, talk: Conversation, **options) -> AsyncIterator[Warmer]:
    warmer = Warmer(engine, lambda: talk, Counter(), **options)
    running = asyncio.create_task(warmer.run())
    try:
        yield warmer
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.02)


def prose(topic: str, sentences: int = 40) -> Document:
    """A document of about 13 tokens a sentence; each topic is another text from the start."""
    lines = [
        f"{topic} number {n} is kept in room {n * 7 % 90} of the old house."
        for n in range(sentences)
    ]
    return document_from_bytes("\n".join(lines).encode(), f"{topic}.txt")
