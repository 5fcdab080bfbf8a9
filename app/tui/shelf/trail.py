"""From what an answer says to where it stands in the documents."""

import asyncio
from typing import TYPE_CHECKING

from textual.worker import Worker

from app.core.i18n import _
from app.tui import keymap
from app.tui.transcript.entries import Reply

if TYPE_CHECKING:
    from app.core.citations import Sources
    from app.tui.screens.chat import ChatScreen
    from app.tui.shelf.desk import Desk

QUOTED = 60
"""Characters of a quote that are shown where it is told of."""


class Trail:
    """The sources of replies, and which of them was looked at last."""

    def __init__(self, chat: "ChatScreen", desk: "Desk") -> None:
        self._chat = chat
        self._desk = desk
        self._reply: Reply | None = None
        self._at = -1
        self._opening: Worker[None] | None = None

    async def check(self, reply: Reply) -> None:
        """Tell under a reply that is over what it cites, and what of it is not in the documents."""
        sources = await self._sources(reply.text)
        notes: list[tuple[str, bool]] = []
        cited = dict.fromkeys(each.text for each in sources.citations if each.found)
        if cited:
            told = _("Sources: {cited}  {key} opens them")
            opens = keymap.key("documents.source")
            notes.append((told.format(cited=" ".join(cited), key=opens), False))
        for citation in sources.citations:
            if not citation.found:
                told = _("{text} is no place in the documents.")
                notes.append((told.format(text=citation.text), True))
        for quote in sources.quotes_not_found:
            text = quote.text if len(quote.text) <= QUOTED else f"{quote.text[:QUOTED]}…"
            told = _("Not in the documents: “{text}”")
            notes.append((told.format(text=" ".join(text.split())), True))
        if notes and reply in self._chat.transcript.entries:
            reply.set_notes(notes)
            self._chat.transcript.changed(reply)

    async def check_all(self) -> None:
        """Check every reply of a conversation that was opened, the last one first."""
        if not self._chat.app.conversation.documents:
            return
        for entry in reversed(self._chat.transcript.entries):
            if isinstance(entry, Reply) and entry.is_done:
                await self.check(entry)

    async def _sources(self, text: str) -> "Sources":
        from app.core.citations import sources_of

        return await asyncio.to_thread(sources_of, text, self._chat.app.conversation)

    def go(self, reply: Reply | None) -> None:
        """Open the next place of a reply, as soon as it is found."""
        self._opening = self._chat.run_worker(self.next(reply), group="source", exclusive=True)

    @property
    def is_opening(self) -> bool:
        """Whether a place is looked for that will be opened."""
        return self._opening is not None and not self._opening.is_finished

    def give_up(self) -> bool:
        """Open nothing after all; False where nothing is on its way."""
        if self._opening is None or not self.is_opening:
            return False
        self._opening.cancel()
        return True

    async def open(self, text: str) -> None:
        """Open the place that a citation names."""
        sources = await self._sources(text)
        for citation in sources.citations:
            if citation.offset is not None:
                await self._open(citation.sha256, citation.offset)
                return
        told = _("{text} is no place in the documents.").format(text=text)
        self._chat.notify(told, severity="warning", markup=False)

    async def next(self, reply: Reply | None) -> None:
        """Open the next place that a reply cites or quotes, around the end."""
        sources = await self._sources(reply.text if reply else "")
        found = [(each.start, each.sha256, each.offset) for each in sources.citations]
        found += [(each.start, each.sha256, each.offset) for each in sources.quotes]
        places = sorted((at, name, to) for at, name, to in found if to is not None)
        if not places:
            self._chat.notify(_("The reply cites no place in the documents."))
            return
        self._at = (self._at + 1) % len(places) if reply is self._reply else 0
        self._reply = reply
        _at, sha256, offset = places[self._at]
        await self._open(sha256, offset)

    async def _open(self, sha256: str, offset: int) -> None:
        for document in self._chat.app.conversation.documents:
            if document.sha256 == sha256:
                await self._desk.open(document, offset)
                return
