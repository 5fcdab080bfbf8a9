"""The session that `ask --continue` goes on with, or that `ask --save` begins."""

import click

from app.core.chat import origins
from app.core.chat.conversation import Conversation
from app.core.i18n import _
from app.core.plain import plain
from app.core.sessions.session import Session
from app.core.sessions.store import SessionStore
from app.core.shelf.store import ShelfStore
from engine_bridge.contract import EngineSpec, EngineStatus
from engine_bridge.errors import UsageError

LAST = "last"


class Keeping:
    """Opens the store, and stores what is said until it is closed. Documents go to the shelf."""

    def __init__(self) -> None:
        self._store = SessionStore.open()
        self._shelf = ShelfStore.open()
        for notice in filter(None, (self._store.notice, self._shelf.notice)):
            _say(notice)
        self.session: Session | None = None

    def begin(self, conversation: Conversation) -> None:
        self.session = self._store.begin(conversation)

    def resume(
        self, wanted: str, prompt: str | None, piped: bool
    ) -> tuple[Conversation, str | None]:
        """The conversation to go on with, and the prompt.

        `--continue` may stand before the prompt or before an id: a word after it that is no id
        is the prompt, and so is one where there is no other prompt.
        """
        if wanted != LAST and prompt is None and not (piped and self._is_id(wanted)):
            wanted, prompt = LAST, wanted
        if wanted == LAST:
            recent = self._store.recent(1)
            if not recent:
                raise UsageError(_("There is no session to continue."), _("Begin one with --save."))
            wanted = recent[0].key
        self.session = self._store.resume(wanted, self._shelf.get)
        if self.session.notice:
            _say(self.session.notice)
        return self.session.conversation, prompt

    def shelve(self) -> None:
        """Keep the texts of the documents that are attached now."""
        if self.session is not None:
            documents = self.session.conversation.documents
            keep = {each.sha256 for each in documents}
            for document in documents:
                self._shelf.add(document, keep)
            self.session.changed()

    def close(self) -> None:
        try:
            if self.session is not None:
                self.session.close()
        finally:
            self._store.close()
            self._shelf.close()

    def _is_id(self, wanted: str) -> bool:
        try:
            self._store.find(wanted)
        except UsageError:
            return False
        return True


def say_other_engine(conversation: Conversation, status: EngineStatus, spec: EngineSpec) -> None:
    """Say it where another engine or model made the last answer than the one that answers now."""
    if found := origins.other(conversation, status, spec):
        origin, _spec = found
        text = _("{who} answered here before, now {model} does. As before: {options}")
        _say(
            text.format(
                who=origins.name(origin), model=status.model_name, options=origins.options(origin)
            )
        )


def _say(notice: str) -> None:
    click.echo(f"ling-chat: {plain(notice)}", err=True)
