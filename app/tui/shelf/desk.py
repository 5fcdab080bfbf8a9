"""The documents of the conversation in the app: attached, read, counted, warmed, let go."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.timer import Timer
from textual.worker import WorkType

from app.core.chat.prompt import document_prompt
from app.core.documents import Document, extract, is_address
from app.core.i18n import _, shown
from app.tui.composer.offers import Offers, mentions
from app.tui.shelf.context import Context
from app.tui.shelf.reading import Reading
from app.tui.shelf.rows import Row
from app.tui.shelf.trail import Trail
from app.tui.transcript.entries import UserEntry
from engine_bridge.chat.events import Event
from engine_bridge.errors import BridgeError
from engine_bridge.paths import expanded

if TYPE_CHECKING:
    from app.core.chat.conversation import Conversation
    from app.core.context.budget import Budget
    from app.core.documents.folder import FolderPreview
    from app.tui.screens.chat import ChatScreen

SHOW_S = 0.1
"""Changes within so many seconds are shown together."""
REST_S = 0.6
"""Who types nothing for so many seconds thinks, or reads again what they typed."""


class Desk:
    """Belongs to the chat screen, which shows what is on it."""

    def __init__(self, chat: "ChatScreen") -> None:
        self._chat = chat
        self._readings: list[Reading] = []
        self._offers = Offers()
        self.context = Context(chat, self.changed)
        self.trail = Trail(chat, self)
        self._timer: Timer | None = None
        self._rest: Timer | None = None
        self._was_warming = False
        self._watchers: list[Callable[[], None]] = []

    @property
    def _conversation(self) -> "Conversation":
        return self._chat.app.conversation

    @property
    def readings(self) -> list[Reading]:
        """What is being read."""
        return [each for each in self._readings if not each.is_stopped]

    @property
    def is_reading(self) -> bool:
        """Whether a document is on its way in: questions wait for it."""
        return bool(self.readings)

    # Getting in

    def attach(self, source: str) -> None:
        """Read a file, a folder or a web page and attach it; without a name, ask for one."""
        source = source.strip()
        if len(source) > 1 and source[0] == source[-1] and source[0] in "'\"":
            source = source[1:-1]
        if not source:
            self._chat.run_worker(cast(WorkType[None], self._ask), group="attach")
            return
        reading = Reading(source, self.changed)
        self._readings.append(reading)
        reading.worker = self._chat.run_worker(self._read(reading), group="reading")
        self.changed()

    async def _ask(self) -> None:
        from app.tui.screens.attach import AttachScreen

        if source := await self._chat.app.push_screen_wait(AttachScreen(self._offers)):
            self.attach(source)

    async def _read(self, reading: Reading) -> None:
        document: Document | None = None
        try:
            source = reading.source
            if is_address(source) or await self._is_wanted(source):
                document = await extract(source, reading.report)
                await asyncio.to_thread(document_prompt, document)
        except BridgeError as error:
            self._chat.notify(shown(str(error)), severity="error", timeout=10, markup=False)
            if not self._chat.talk.is_running and (text := self._chat.talk.stop()):
                self.give_back(text)  # it asks about what could not be read
        finally:
            self._readings.remove(reading)
            if document is not None and not reading.is_stopped:
                self.add(document)
            self._read_all()

    def _read_all(self) -> None:
        """Fewer documents are being read: what waits for them may be sent."""
        self.changed()
        self._chat.talk.pump()

    async def _is_wanted(self, source: str) -> bool:
        """Of a folder, whether the user wants what it holds."""
        from app.tui.screens.attach import FolderScreen

        preview = await asyncio.to_thread(_folder, source)
        return preview is None or await self._chat.app.push_screen_wait(FolderScreen(preview))

    def add(self, document: Document) -> None:
        """Attach a document that is read."""
        if not self._attach(document):
            title = _("{title} is attached already.")
            self._chat.notify(title.format(title=document.title), markup=False)
        elif document.note:
            self._chat.notify(shown(document.note), title=document.title, markup=False, timeout=8)

    def _attach(self, document: Document) -> bool:
        if not self._conversation.attach(document):
            return False
        self._chat.run_worker(self.context.keep(document), group="keep")
        self._documents_changed()
        return True

    def _documents_changed(self) -> None:
        self._conversation.changed()
        self.context.changed()
        self.changed()

    async def add_mentioned(self, text: str) -> None:
        """Attach what a message that is about to be sent refers to: its pastes, and files after @
        that are not attached."""
        for document in await self._chat.composer.pastes.documents(text):
            await asyncio.to_thread(document_prompt, document)
            self._attach(document)
        for path in self._unknown(text):
            if await asyncio.to_thread(_is_file, path):
                self.attach(path)
        self.changed()

    def _unknown(self, text: str) -> list[str]:
        """What a message refers to after @ that is not attached."""
        known = {document.title for document in self._conversation.documents}
        known |= {reading.source for reading in self.readings}
        return [path for path in mentions(text) if not {path, Path(path).name} & known]

    def typing(self) -> None:
        """Something was typed: when the user rests, it is read ahead."""
        if self._rest is not None:
            self._rest.stop()
        self.context.typed("")
        self._rest = self._chat.set_timer(REST_S, self._rests)

    def _rests(self) -> None:
        """Let the question be read as far as it is typed, unless sending it would do other things
        as well: attach what it refers to, run a command, replace a question."""
        text, talk = self._chat.composer.text.strip(), self._chat.talk
        is_plain = talk.editing is None and talk.thinking is None and not text.startswith("/")
        refers = self._unknown(text) or any(self._chat.composer.pastes.tokens(text))
        if is_plain and not refers:
            self.context.typed(text)

    def add_kept(self) -> None:
        """Ask for a document of an earlier session and attach it."""
        self._chat.run_worker(cast(WorkType[None], self._add_kept), group="attach")

    async def _add_kept(self) -> None:
        from app.tui.screens.kept import KeptScreen

        store = self.context.store
        if store is None:
            self._chat.notify(_("No documents are kept here."), severity="warning")
            return
        attached = {document.sha256 for document in self._conversation.documents}
        sha256 = await self._chat.app.push_screen_wait(KeptScreen(store, attached))
        if sha256 and (document := await asyncio.to_thread(store.get, sha256)):
            await asyncio.to_thread(document_prompt, document)
            self.add(document)

    def stop_reading(self) -> bool:
        """Give up what is being read, the last first; False where nothing is."""
        if not self.readings:
            return False
        reading = self.readings[-1]
        reading.stop()
        title = _("{title} is not attached.")
        self._chat.notify(title.format(title=reading.title), markup=False)
        self._read_all()
        return True

    # Getting out

    def drop(self, document: Document) -> None:
        """Let go of a document, unless that was done already."""
        if document in self._conversation.documents:
            self._conversation.documents.remove(document)
            self._documents_changed()

    def shift(self, document: Document, step: int) -> None:
        """Move a document, unless the engine's cache has been filled in the present order."""
        documents = self._conversation.documents
        if document not in documents:
            return
        at = documents.index(document)
        to = at + step
        if not 0 <= to < len(documents):
            return
        if self._conversation.turns or any(row.share for row in self.rows()[min(at, to) :]):
            self._chat.notify(_("The engine has read it in this order already."))
            return
        documents.insert(to, documents.pop(at))
        self._documents_changed()

    def do(self, what: str) -> None:
        """What the shelf's own rows ask for: "add" a kept document, or warm again."""
        if what == "add":
            self.add_kept()
        else:
            self.context.warm_again()

    # Showing

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this whenever what is shown is another."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Call it no more."""
        self._watchers.remove(watcher)

    def rows(self) -> list[Row]:
        """What is shown of each document."""
        return [self.context.row(document) for document in self._conversation.documents]

    async def too_long(self, budget: "Budget", asked: UserEntry) -> None:
        """A question that did not fit: let the user choose, and ask it again or give it back."""
        talk = self._chat.talk
        fits = await self.context.fit(budget)
        talk.editing = asked.replaces
        if fits:
            talk.say(asked.text)
        else:
            self.give_back(asked.text)

    def give_back(self, text: str) -> None:
        """Put a message that is not sent back into the box; its pastes are no documents then."""
        composer, conversation = self._chat.composer, self._conversation
        composer.put(text)
        said = "".join(turn.text for turn in conversation.turns)
        for token in composer.pastes.tokens(text):
            title = composer.pastes.title(token.number)
            pasted = [each for each in conversation.documents if each.title == title]
            if pasted and title not in said:
                conversation.documents.remove(pasted[0])
        self._documents_changed()

    def changed(self) -> None:
        """Something is another way: shown soon, together with what changes until then."""
        if self._timer is None:
            self._timer = self._chat.set_timer(SHOW_S, self.show)

    async def show(self) -> None:
        """Show it now."""
        self._timer = None
        self._chat.composer.pastes.know(self._conversation.documents)
        await self._chat.show_rows(self.rows(), self.readings)
        if self._was_warming != self.context.is_warming:
            self._was_warming = not self._was_warming
            self._chat.refresh_bindings()  # Esc stops it
        self._chat.show_figures()
        for watcher in self._watchers:
            watcher()

    async def open(self, document: Document, offset: int | None = None) -> None:
        """Read a document, from an offset of its text on."""
        from app.tui.screens.preview import PreviewScreen

        await self._chat.app.push_screen(PreviewScreen(document, self._chat.app.glyphs, offset))

    async def asking(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """The events of an answer, while which nothing else is asked of the engine."""
        self.context.hold()
        try:
            async with aclosing(events):
                async for event in events:
                    self.context.take(event)
                    yield event
        finally:
            self.context.release()


def _folder(source: str) -> "FolderPreview | None":
    """What a folder holds; None for what is none."""
    from app.core.documents.folder import preview_folder

    try:
        path = expanded(source)
        return preview_folder(path) if path.is_dir() else None
    except (OSError, ValueError):
        return None


def _is_file(path: str) -> bool:
    try:
        return expanded(path).is_file()
    except (OSError, ValueError):
        return False
