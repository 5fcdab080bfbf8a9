"""What the conversation takes of the engine's context: counted, kept warm, and made to fit."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.worker import WorkType

from app.core.documents import Document
from app.core.i18n import _, shown
from app.tui.shelf.rows import Row
from engine_bridge.chat.events import Event
from engine_bridge.contract import EngineState
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.core.context.budget import Budget
    from app.core.context.fitting import Choice
    from app.core.shelf.counting import Counter
    from app.core.shelf.store import ShelfStore
    from app.core.shelf.warming import Warmer
    from app.tui.screens.chat import ChatScreen


class Context:
    """Belongs to the desk. Works from `start` on; before, nothing is counted or warm."""

    def __init__(self, chat: "ChatScreen", on_change: Callable[[], None]) -> None:
        self._chat = chat
        self._on_change = on_change
        self._was: tuple[EngineState, str, int | None] | None = None
        self.store: ShelfStore | None = None
        """Documents that are kept for other sessions; None where that cannot be."""
        self.counter: Counter | None = None
        self.warmer: Warmer | None = None
        self.budget: Budget | None = None
        """What the next prompt has before a question is added; None until it was counted."""

    async def start(self) -> None:
        """Open the store and warm what is attached for as long as the app runs."""
        from app.core.shelf.counting import Counter
        from app.core.shelf.store import ShelfStore
        from app.core.shelf.warming import Warmer

        app = self._chat.app
        try:
            self.store = await asyncio.to_thread(ShelfStore.open)
        except BridgeError as error:
            self._chat.notify(shown(str(error)), severity="warning", timeout=10, markup=False)
        self.counter = Counter(self.store)
        self.warmer = Warmer(
            app.engine, lambda: app.conversation, self.counter, on_change=self._on_change
        )
        for document in app.conversation.documents:
            await self.keep(document)
        self.changed()
        await self.warmer.run()

    async def keep(self, document: Document) -> None:
        """Keep a document for other sessions; those that made room for it are told."""
        if self.store is None:
            return
        others = {each.sha256 for each in self._chat.app.conversation.documents}
        try:
            await asyncio.to_thread(self.store.add, document, others)
        except BridgeError as error:
            self._chat.notify(shown(str(error)), severity="warning", markup=False)

    def changed(self) -> None:
        """The conversation is another: count it again, and warm what is new."""
        if self.warmer is None:
            return
        settings = self._chat.app.settings.documents
        self.warmer.enabled, self.warmer.rewarm = settings.warm, settings.rewarm
        self.warmer.attached, self.warmer.with_words = settings.warm_servers, settings.words
        self._chat.app.conversation.counter = self.counter
        self.warmer.poke()
        self._recount()

    def typed(self, question: str) -> None:
        """The user rests after typing this question; empty while they type."""
        if self.warmer is not None:
            self.warmer.typed(question)

    def warm_again(self) -> None:
        """Read again what a restart of the engine lost, or go on with what was stopped."""
        if self.warmer is not None:
            self.warmer.warm_now()

    @property
    def is_warming(self) -> bool:
        """Whether documents are read ahead."""
        return self.warmer is not None and self.warmer.is_reading_documents

    def stop_warming(self) -> None:
        """Let the engine rest where it reads ahead."""
        if self.warmer is not None and self.warmer.stop():
            told = _("Stopped reading ahead. The rest is read with your next question.")
            self._chat.notify(told)

    def status_changed(self) -> None:
        """The engine may be another one, or be ready now."""
        status = self._chat.app.status
        now = (status.state, status.model_name, status.context_tokens)
        if now != self._was and status.state is EngineState.READY:
            self.changed()
        self._was = now

    def _recount(self) -> None:
        work = cast(WorkType[None], self._count)
        self._chat.run_worker(work, group="count-context", exclusive=True)

    async def _count(self) -> None:
        """Count the documents one by one, then the whole prompt, as the engine counts."""
        from app.core.context import budget

        app, counter = self._chat.app, self.counter
        assert counter is not None
        if not app.status.state.is_usable or app.engine.endpoint is None:
            return
        try:
            for document in list(app.conversation.documents):
                await counter.document(document, app.engine)
                self._on_change()
            found = await budget.plan(app.conversation, app.engine, counter)
        except BridgeError:
            return  # the engine left; it is counted again when it is back
        self.budget = app.live.budget = found
        self._on_change()

    def row(self, document: Document) -> Row:
        """What is known of a document."""
        app = self._chat.app
        context = app.status.context_tokens
        if self.counter is None or self.warmer is None:
            return Row(document, None, context)
        warmth = self.warmer.warmth(document.sha256)
        tokens = self.counter.known_document(document, app.engine)
        eta = self.warmer.eta_s if self.warmer.is_warming else None
        return Row(document, tokens, context, warmth.state.value, warmth.share, eta)

    # While a question is answered

    def hold(self) -> None:
        """The user's own request comes: nothing else is asked of the engine meanwhile."""
        if self.warmer is not None:
            self.warmer.hold()

    def take(self, event: Event) -> None:
        """An event of the answer."""
        if self.warmer is not None:
            self.warmer.take(event)

    def release(self) -> None:
        """The answer is over."""
        if self.warmer is not None:
            self.warmer.release()
            self._recount()

    # What does not fit

    async def fit(self, budget: "Budget") -> bool:
        """Let the user choose what makes it fit, and do that; False where they would not."""
        from app.core.context import fitting
        from app.tui.screens.budget import BudgetScreen

        app = self._chat.app
        choice = await app.push_screen_wait(BudgetScreen(budget, app.glyphs))
        if choice is None:
            return False
        if fitting.apply(choice, app.conversation):
            for document in app.conversation.documents:  # one of them may be a part now
                await self.keep(document)
            app.conversation.changed()
        else:
            self._change_engine(choice)
        self.changed()
        self._on_change()
        return True

    def _change_engine(self, choice: "Choice") -> None:
        from app.core.context.fitting import BiggerContext, BiggerModel

        app = self._chat.app
        match choice:
            case BiggerContext(tokens):
                app.use_spec(app.spec.model_copy(update={"context_tokens": tokens}))
            case BiggerModel(name):
                app.use_spec(app.spec.model_copy(update={"model": name, "context_tokens": None}))
