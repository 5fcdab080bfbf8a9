"""Keeps the conversation in the store of sessions, and opens others from there."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from app.core.chat.conversation import Conversation
from app.core.i18n import _
from app.tui import keymap
from app.tui.plain import one_line
from app.tui.transcript.entries import NoteEntry
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.core.documents import Document
    from app.core.sessions.session import Session
    from app.core.sessions.store import SessionStore
    from app.tui.app import LingChat


IDLE_S = 5.0


class Sessions:
    """The user's store, opened when it is first needed, and the session that is written to it."""

    def __init__(self, app: "LingChat") -> None:
        self._app = app
        self._store: SessionStore | None = None
        self._opening = asyncio.Lock()
        self.session: Session | None = None

    async def store(self) -> "SessionStore | None":
        """The store; None where it cannot be opened, which is told."""
        from app.core.sessions.store import SessionStore

        async with self._opening:
            if self._store is None:
                try:
                    self._store = await asyncio.to_thread(SessionStore.open)
                except BridgeError as error:
                    self._tell(str(error))
                    return None
                self._store.on_problem = self._on_problem
                if self._store.notice:
                    self._tell(self._store.notice)
                await asyncio.to_thread(self._store.purge)
            return self._store

    def _on_problem(self, problem: BridgeError | None) -> None:
        text = str(problem) if problem else _("The conversation is saved again.")
        self._app.call_from_thread(self._tell, text)

    def _tell(self, text: str) -> None:
        self._app.notify(text, severity="warning", timeout=10, markup=False)

    def keep(self) -> None:
        """Store the present conversation, as far as it is and as it goes on."""
        if self.session is None or self.session.conversation is not self._app.conversation:
            self._app.run_worker(self._keep(), group="sessions")

    async def _keep(self) -> None:
        store = await self.store()
        if store is not None and self._app.conversation.watcher is None:
            self.session = store.begin(self._app.conversation)

    def reply_ended(self) -> None:
        """Let the model name the session, once nothing else is asked of it for a while."""
        if self._app.settings.chat.titles:
            self._app.run_worker(self._name(), group="title", exclusive=True)

    def reply_begins(self) -> None:
        """The engine is wanted for something else than a title."""
        self._app.workers.cancel_group(self._app, "title")

    async def _name(self) -> None:
        from app.core.sessions.titles import give_title

        await asyncio.sleep(IDLE_S)
        if self.session is None:
            return
        context = self._app.chat.desk.context
        context.hold()
        try:
            title = await give_title(self.session, self._app.engine)
        finally:
            context.release()
        if title:
            self._show_title(title)

    def _show_title(self, title: str) -> None:
        """Name the terminal's window after the session."""
        write = self._app.write_terminal
        write(f"\x1b]2;{one_line(title) or self._app.TITLE}\x07")

    async def new(self) -> None:
        """Leave the conversation, which is kept, and begin another with the same documents and
        settings."""
        old = self._app.conversation
        await self._leave()
        fresh = Conversation(
            documents=list(old.documents),
            system=old.system,
            model=old.model,
            parameters=self._app.parameters_after(old.parameters),
            preset=old.preset,
        )
        await self._take(fresh)

    async def resume(self, key: str) -> None:
        """Open a stored session in place of the present one. Raises BridgeError where that cannot
        be done."""
        store = await self.store()
        if store is None or (self.session is not None and self.session.key == key):
            return
        await self._leave()
        session = await asyncio.to_thread(store.resume, key, _from_shelf)
        self.session = session
        info = await asyncio.to_thread(store.find, session.key)
        await self._take(session.conversation, info.title)
        if session.notice:
            self._tell(session.notice)
        self._app.run_worker(self._offer_engine(), group="offer", exclusive=True)

    async def _offer_engine(self) -> None:
        """Say it where another engine or model made the last answer than the one that runs."""
        from app.core.chat.origins import name, other
        from engine_bridge.engine import wait_until_ready

        if self._app.status.state.is_changing:
            with contextlib.suppress(BridgeError):
                await wait_until_ready(self._app.engine)
        found = other(self._app.conversation, self._app.engine.status, self._app.spec)
        if found is None:
            return
        origin, self._app.offered = found
        text = _("{who} answered here.").format(who=one_line(name(origin)))
        cure = _("{key} starts it again with its switches.")
        self._app.chat.transcript.append(
            NoteEntry(text, cure.format(key=keymap.key("app.apply_remedy")))
        )

    async def _leave(self) -> None:
        await self._app.chat.talk.leave()
        session, self.session = self.session, None
        if session is not None:
            try:
                await asyncio.to_thread(session.close)
            except BridgeError as error:
                self._tell(str(error))

    async def _take(self, conversation: Conversation, title: str = "") -> None:
        self._app.conversation, self._app.offered = conversation, None
        await self._app.chat.show_conversation()
        first = conversation.turns[0].text[:60] if conversation.turns else ""
        self._show_title(title or first)

    async def close(self) -> None:
        """Write what waits, and close the store."""
        await self._leave()
        if self._store is not None:
            store, self._store = self._store, None
            try:
                await asyncio.to_thread(store.close)
            except BridgeError as error:
                self._app.exit(message=one_line(str(error)), return_code=1)


def _from_shelf(sha256: str) -> "Document | None":
    """The document, written as the prompt has it already: 10 MB would hold the screen for 80 ms."""
    from app.core.chat.prompt import document_prompt
    from app.core.shelf.store import ShelfStore

    try:
        shelf = ShelfStore.open()
    except BridgeError:
        return None
    try:
        document = shelf.get(sha256)
        if document is not None:
            document_prompt(document)
        return document
    finally:
        shelf.close()
