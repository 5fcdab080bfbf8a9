"""The conversation that is on, stored as it happens, and the earlier ones."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.core.chat.conversation import Conversation, Parameters
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.core.sessions.records import SessionInfo
    from app.core.sessions.session import Session
    from app.core.sessions.store import SessionStore

SHOWN = 20
"""Sessions of a list."""


class Memory:
    """`with Memory() as memory`. A file that cannot be opened costs no conversation: `notice`
    says why nothing is kept."""

    def __init__(self, parameters: Parameters = Parameters()) -> None:  # noqa: B008 - frozen
        from app.core.sessions.store import SessionStore

        self.conversation = Conversation(parameters=parameters)
        self.notice = ""
        self._store: SessionStore | None = None
        self._session: Session | None = None
        try:
            self._store = SessionStore.open()
        except BridgeError as error:
            self.notice = str(error)
        else:
            self.notice = self._store.notice

    def __enter__(self) -> "Memory":
        self._keep(self.conversation)
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._leave()
            with contextlib.suppress(BridgeError):
                self._store.close()

    def begin(self) -> None:
        """Another conversation; documents and settings stay."""
        was = self.conversation
        self._leave()
        self._keep(
            Conversation(documents=was.documents, system=was.system, parameters=was.parameters)
        )

    def resume(self, key: str) -> str:
        """Go on with the session whose key begins so; returns what must be known of it.

        Raises UsageError where there is none or more than one.
        """
        store = self._opened()
        session = store.resume(key)
        self._leave()
        self._session, self.conversation = session, session.conversation
        return session.notice

    def recent(self) -> "Sequence[SessionInfo]":
        """The sessions changed last."""
        return self._opened().recent(SHOWN)

    def search(self, words: str) -> "Sequence[SessionInfo]":
        """The sessions that have these words."""
        return [hit.session for hit in self._opened().search(words, SHOWN)]

    def _opened(self) -> "SessionStore":
        if self._store is None:
            raise BridgeError(self.notice)
        return self._store

    def _keep(self, conversation: Conversation) -> None:
        self.conversation = conversation
        if self._store is not None:
            self._session = self._store.begin(conversation)

    def _leave(self) -> None:
        if self._session is not None:
            with contextlib.suppress(BridgeError):
                self._session.close()
            self._session = None
