"""The sessions: found by what was said in them, opened, renamed, deleted and exported."""

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from app.core.i18n import _, ngettext
from app.core.output import write
from app.tui.panel.rows import hanging
from app.tui.plain import one_line
from engine_bridge.errors import BridgeError, UsageError
from engine_bridge.paths import expanded

if TYPE_CHECKING:
    from app.core.sessions.records import Hit, SessionInfo
    from app.core.sessions.store import SessionStore
    from app.core.sessions.words import Snippet
    from app.tui.app import LingChat

PAUSE_S = 0.12
"""How long nothing must be typed before it is searched for."""
MOST = 200


class SessionsScreen(Screen[None]):
    """A list of sessions, the last one first; typing in the box above searches them all."""

    CSS_PATH = "sessions.tcss"
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f9", "back", _("Back"), id="sessions.back"),
        Binding("slash,ctrl+f", "search", _("Search"), id="sessions.search"),
        Binding("n", "new", _("New"), id="sessions.new"),
        Binding("r", "rename", _("Rename"), id="sessions.rename"),
        Binding("d,delete", "delete", _("Delete"), id="sessions.delete"),
        Binding("u", "undo", _("Undo"), id="sessions.undo"),
        Binding("x", "export", _("Export"), id="sessions.export"),
        Binding("down", "to_list", show=False, id="sessions.to_list"),
    ]

    app: "LingChat"

    def __init__(self) -> None:
        super().__init__()
        self._title = Static(id="title")
        self._search = Input(id="search", placeholder=_("Search"), compact=True)
        self._list = OptionList(id="list", markup=False)
        self._empty = Static(id="empty")
        self._what = Static(id="what")
        self._asked = Input(id="asked", compact=True)
        self._asking = ""
        self._infos: dict[str, SessionInfo] = {}
        self._deleted: list[tuple[str, bool]] = []
        """Keys, and whether that session was the open one."""

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._search
        yield self._empty
        yield self._list
        yield self._what
        yield self._asked
        yield Footer(show_command_palette=False, compact=True)

    async def on_mount(self) -> None:
        await self._show()

    @on(events.Resize)
    @on(Input.Changed, "#search")
    def _look_again(self) -> None:
        self.run_worker(self._search_soon(), group="search", exclusive=True)

    async def _search_soon(self) -> None:
        await asyncio.sleep(PAUSE_S)
        await self._show()

    async def _show(self) -> None:
        """Bring the list up to date."""
        store = await self.app.sessions.store()
        if store is None:
            return
        query = self._search.value.strip()
        try:
            if query:
                hits = await asyncio.to_thread(store.search, query, MOST)
                rows = [(hit.session, _snippet(hit)) for hit in hits]
            else:
                await asyncio.to_thread(store.flush)
                rows = [(each, None) for each in await asyncio.to_thread(store.recent, MOST)]
            count = await asyncio.to_thread(store.count)
        except BridgeError as error:
            self._tell(error)
            return
        self._infos = {info.key: info for info, _found in rows}
        at = self._list.highlighted or 0
        self._list.clear_options()
        now = time.time()
        self._list.add_options(
            [Option(self._row(info, found, now), id=info.key) for info, found in rows]
        )
        self._list.highlighted = min(at, len(rows) - 1) if rows else None
        self._empty.display = not rows  # the list stays: its keys bring back what was deleted
        self._empty.update(_("Nothing was found.") if query else _("No sessions yet."))
        told = ngettext("{n} session", "{n} sessions", count).format(n=f"{count:,}")
        self._title.update(Content.assemble((_("Sessions"), "bold $primary"), f"  {told}"))
        self.refresh_bindings()

    def _row(self, info: "SessionInfo", found: "Snippet | None", now: float) -> Content:
        session = self.app.sessions.session
        is_open = session is not None and session.key == info.key
        glyphs = self.app.glyphs
        mark = glyphs.on if is_open else " "
        facts = [
            _when(info.changed, now),
            ngettext("{n} message", "{n} messages", info.messages).format(n=info.messages),
            one_line(info.model),
        ]
        facts_text = f" {glyphs.dot} ".join(filter(None, facts))
        title = one_line(info.title) or _("no title")
        row = Content.assemble((f"{mark} ", "$accent"), (title, "bold"))
        row = Content.assemble(row, "\n  ", (facts_text, "auto 60%"))
        if found is None:
            return row
        width = self._list.scrollable_content_region.width
        return Content("\n").join([row, *hanging(_marked(found), width)])

    @property
    def _info(self) -> "SessionInfo | None":
        at = self._list.highlighted
        return None if at is None else self._infos.get(self._list.get_option_at_index(at).id or "")

    def _tell(self, error: BridgeError) -> None:
        self.notify(str(error), severity="warning", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("rename", "delete", "export", "new", "undo") and self._is_typing:
            return False
        if action in ("rename", "delete", "export"):
            return self._info is not None
        return bool(self._deleted) if action == "undo" else True

    @property
    def _is_typing(self) -> bool:
        return self.focused in (self._search, self._asked)

    def action_back(self) -> None:
        """Give up what is being typed, else back to the conversation."""
        if self._asked.display:
            self._asked_nothing()
        elif self._search.value:
            self._search.value = ""
            self._list.focus()
        else:
            self.app.pop_screen()

    def action_search(self) -> None:
        """Type what to look for."""
        self._search.focus()

    def action_to_list(self) -> None:
        """From the box to the list."""
        self._list.focus()

    @on(Input.Submitted, "#search")
    @on(OptionList.OptionSelected)
    async def _open(self) -> None:
        """Open the session under the cursor."""
        if (info := self._info) is not None:
            await self._leave_to(info.key)

    async def _leave_to(self, key: str) -> None:
        try:
            await self.app.sessions.resume(key)
        except BridgeError as error:
            self._tell(error)
            return
        self.app.pop_screen()

    async def action_new(self) -> None:
        """Begin a new session."""
        await self.app.chat.action_new_chat()
        self.app.pop_screen()

    def _ask(self, what: str, title: str, value: str) -> None:
        self._asking = what
        self._what.update(title)
        self._asked.value = value
        self._what.display = self._asked.display = True
        self._asked.focus()

    def _asked_nothing(self) -> None:
        self._what.display = self._asked.display = False
        self._list.focus()

    def action_rename(self) -> None:
        """Give it another title."""
        if (info := self._info) is not None:
            self._ask("rename", _("Title"), info.title)

    def action_export(self) -> None:
        """Write it to a file: Markdown, JSON or HTML by the file's ending."""
        if (info := self._info) is not None:
            name = "-".join(one_line(info.title).split()[:6]) or info.key
            safe = "".join(c for c in name if c.isalnum() or c in "-_") or info.key
            self._ask("export", _("File: .md, .json or .html"), str(Path.home() / f"{safe}.md"))

    @on(Input.Submitted, "#asked")
    async def _answered(self) -> None:
        store, info = await self.app.sessions.store(), self._info
        if store is None or info is None:
            return
        value = self._asked.value
        try:
            if self._asking == "rename":
                await asyncio.to_thread(store.rename, info.key, value)
            else:
                path = await asyncio.to_thread(_export, store, info, value)
                self.notify(_("Written to {path}.").format(path=one_line(str(path))), markup=False)
        except BridgeError as error:
            self._tell(error)
            return
        self._asked_nothing()
        await self._show()

    async def action_delete(self) -> None:
        """Into the trash."""
        store, info = await self.app.sessions.store(), self._info
        if store is None or info is None:
            return
        session = self.app.sessions.session
        is_open = session is not None and session.key == info.key
        if is_open:
            await self.app.sessions.new()
        await asyncio.to_thread(store.delete, info.key)
        self._deleted.append((info.key, is_open))
        told = _("“{title}” is in the trash; u brings it back.").format(title=one_line(info.title))
        self.notify(told, markup=False)
        await self._show()

    async def action_undo(self) -> None:
        """Bring back what was deleted last."""
        store = await self.app.sessions.store()
        if store is not None and self._deleted:
            key, was_open = self._deleted.pop()
            await asyncio.to_thread(store.restore, key)
            if was_open and not self.app.conversation.turns:
                await self.app.sessions.resume(key)
            await self._show()


def _snippet(hit: "Hit") -> "Snippet | None":
    return hit.snippet if hit.turn else None


def _marked(found: "Snippet") -> Content:
    pieces: list[str | tuple[str, str]] = []
    at = 0
    for start, end in found.marks:
        pieces += [found.text[at:start], (found.text[start:end], "bold $accent")]
        at = end
    return Content.assemble(*pieces, found.text[at:])


def _when(then: float, now: float) -> str:
    """A time of today, else a date."""
    form = "%H:%M" if now - then < 20 * 3600 else "%Y-%m-%d"
    return time.strftime(form, time.localtime(then))


def _export(store: "SessionStore", info: "SessionInfo", path: str) -> Path:
    """Write a session as the file's ending says; returns where. Raises BridgeError."""
    from app.core.sessions import exchange, export

    target = expanded(path.strip())
    talk, documents = store.load(info.key), store.documents(info.key)
    match target.suffix.lower():
        case ".json":
            found = exchange.to_json([(info, talk, documents)])
            text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
        case ".html" | ".htm":
            text = export.to_html(info, talk, documents)
        case ".md" | ".markdown" | ".txt":
            text = export.to_markdown(info, talk, documents)
        case _:
            raise UsageError(
                _("The file's ending says no form of export."), _("Use .md, .json or .html.")
            )
    write(target, text)
    return target
