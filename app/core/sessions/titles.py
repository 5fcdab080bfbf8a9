"""A title that the model finds when it has nothing else to do.

It is asked in the conversation itself: what is sent begins with all that was sent before, so the
engine's cache serves it, and the next question finds that cache as it was.
"""

import asyncio
from contextlib import aclosing

from app.core.chat.conversation import Conversation
from app.core.sessions.session import BY_MODEL, BY_WORDS, Session
from engine_bridge.chat.events import ChatRequest, Message, Text
from engine_bridge.contract import EngineState
from engine_bridge.engine import Engine
from engine_bridge.errors import BridgeError

ASK = (
    "Give this conversation a title of at most six words, in the language of my first message."
    " Answer with the title alone."
)
MOST_TURNS = 6
"""A conversation longer than this without a title keeps the first words."""
MAX_TOKENS = 400
"""A model that thinks needs some; one that has not come to an end by then has no title."""
MAX_CHARACTERS = 60


def wants_title(conversation: Conversation) -> bool:
    """Whether now is the time: one of the first answers is complete, and the last thing said."""
    turns = conversation.turns
    return 2 <= len(turns) <= MOST_TURNS and turns[-1].finish_reason == "stop"


async def give_title(session: Session, engine: Engine) -> str:
    """Let the model name the session, once, if its title is only the first words of the first
    question. Returns the title; "" where there is none. Call it when a reply has ended, and
    cancel it when the user sends: the engine then stops at once.

    Does nothing while the engine is busy. Never raises for what the engine does.
    """
    store = session.store
    if session.tried_title or not wants_title(session.conversation):
        return ""
    if engine.status.state is not EngineState.READY:
        return ""
    try:
        info = await asyncio.to_thread(store.find, session.key)
        if info.titled_by != BY_WORDS:
            return ""
        title = await ask_title(session.conversation, engine)
        session.tried_title = True
        if title:
            await asyncio.to_thread(store.rename, session.key, title, BY_MODEL)
    except BridgeError:
        return ""
    return title


async def ask_title(conversation: Conversation, engine: Engine) -> str:
    """What the model calls the conversation; "" where that is no title. Raises BridgeError."""
    from engine_bridge.chat.client import stream
    from engine_bridge.chat.flavour import flavour_of

    status, endpoint = engine.status, engine.endpoint
    if endpoint is None:
        return ""
    # Whether it thinks is left as it is: some templates write that at the prompt's beginning.
    request = ChatRequest(
        (*conversation.messages(), Message("user", ASK)),
        max_tokens=MAX_TOKENS,
        temperature=0.0,
        thinking=conversation.thinking,
    )
    model = conversation.model or status.model_name
    text = ""
    async with aclosing(stream(endpoint, request, flavour_of(status), model)) as events:
        async for event in events:
            if isinstance(event, Text):
                text += event.text
                if "\n" in text.strip() or len(text) > 3 * MAX_CHARACTERS:
                    break
    return _cleaned(text)


def _cleaned(text: str) -> str:
    """The title in what a model says; "" where it says something else."""
    line = next(iter(text.strip().splitlines()), "")
    for name in ("Title:", "标题：", "标题:"):
        line = line.removeprefix(name)
    title = " ".join(line.strip(" \t*#\"'“”‘’「」《》`.。").split())
    return title if len(title) <= MAX_CHARACTERS else ""
