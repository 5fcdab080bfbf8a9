"""The app: holds the conversation and the settings; the screens show them."""

import asyncio
import contextlib
import signal
from collections.abc import Iterable
from pathlib import PurePath
from typing import ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from app.core import clipboard
from app.core.chat import sampling
from app.core.chat.conversation import Conversation, Parameters
from app.core.documents import Document
from app.core.i18n import _
from app.core.settings.file import Settings
from app.tui import keymap
from app.tui.commands import system_commands
from app.tui.engine_app import EngineApp
from app.tui.glyphs import ASCII, Glyphs, for_terminal
from app.tui.panel.live import Live
from app.tui.screens.chat import ChatScreen
from app.tui.sessions import Sessions
from app.tui.theme_watch import ThemeWatch
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import Engine


class LingChat(EngineApp):
    """Chat with a local model and see what its engine does."""

    TITLE = "ling-chat"
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        "app.tcss",
        "transcript/transcript.tcss",
        "composer/composer.tcss",
        "shelf/shelf.tcss",
        "panel/panel.tcss",
        "screens/chat.tcss",
    ]
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", _("Keys"), priority=True, id="app.help"),
        Binding("f2", "engine", _("Engine"), priority=True, id="app.engine"),
        Binding(
            "f5",
            "start_engine",
            _("Start engine"),
            show=False,
            priority=True,
            id="app.start_engine",
        ),
        Binding(
            "f6",
            "apply_remedy",
            _("Do what is offered"),
            show=False,
            priority=True,
            id="app.apply_remedy",
        ),
        Binding("f7", "bench", _("Benchmarks"), show=False, priority=True, id="app.bench"),
        Binding("f8", "settings", _("Settings"), show=False, id="app.settings"),
        Binding("f9", "sessions", _("Sessions"), show=False, priority=True, id="app.sessions"),
        Binding("ctrl+p", "command_palette", _("Commands"), priority=True, id="app.commands"),
        Binding("ctrl+q", "quit", _("Quit"), show=False, priority=True, id="app.quit"),
        Binding(
            "ctrl+c",
            "interrupt",
            _("Copy, stop or quit"),
            show=False,
            priority=True,
            id="app.interrupt",
        ),
    ]

    def __init__(
        self,
        engine: Engine,
        spec: EngineSpec,
        conversation: Conversation | None = None,
        documents: Iterable[Document] = (),
        settings: Settings | None = None,
        glyphs: Glyphs | None = None,
        start: bool = True,
    ) -> None:
        """`start` False leaves the engine as it is until the user asks for it."""
        super().__init__(engine, spec, settings or Settings())
        self._given = sampling.of_settings(self.settings.chat)
        self.conversation = conversation or Conversation(parameters=self._given)
        for document in documents:
            self.conversation.attach(document)
        self.glyphs = glyphs or for_terminal()
        self.live = Live()
        self._starts = start
        self.sources: tuple[str, ...] = ()  # attached once the app runs
        self._interrupted_at = 0.0
        self.themes = ThemeWatch(self)
        # Without its watchers: the styles are not parsed yet, and parsing them twice takes time.
        wanted = self.settings.appearance.theme
        self.set_reactive(LingChat.theme, self.themes.begin(wanted))
        self.stylesheet.set_variables(self.get_css_variables())
        self.set_class(self.current_theme.dark, "-dark-mode", update=False)
        self.set_class(not self.current_theme.dark, "-light-mode", update=False)
        self.sessions = Sessions(self)
        self._chat = ChatScreen(self.live, self.glyphs)

    @property
    def chat(self) -> ChatScreen:
        return self._chat

    @property
    def is_replying(self) -> bool:
        return self._chat.talk.is_running

    def reply_ended(self) -> None:
        self._chat.show_figures()
        super().reply_ended()

    def get_default_screen(self) -> Screen[None]:
        return self._chat

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The variables our styles use, for themes that do not name them."""
        return {"muted": self.current_theme.to_color_system().generate()["foreground-muted"]}

    def on_mount(self) -> None:
        self.set_class(self.glyphs is ASCII, "-ascii")
        self._leave_in_order_when_told()
        self.run_worker(self.themes.run(), group="themes")
        self.run_worker(keymap.apply(self, self.settings.keys), group="keys")
        self.run_worker(self._follow(), group="engine-status")
        if self._starts:
            self.action_start_engine()

    def _leave_in_order_when_told(self) -> None:
        """Ended by the system or by its terminal, the app gives the terminal back as it was."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Only the main thread hears signals: elsewhere the app is a part of something else.
            with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
                loop.add_signal_handler(number, self.exit, None, 128 + number)

    # Settings

    def use_theme(self, name: str) -> None:
        """Switch to a theme and remember it."""
        self.themes.use(name)
        self.settings.appearance.theme = name
        self._save()

    def parameters_after(self, old: Parameters) -> Parameters:
        """What a new conversation begins with: the settings, where the one before had nothing
        else, else what that one had."""
        if old == self._given:
            old = self._given = sampling.of_settings(self.settings.chat)
        return old

    def setting_changed(self, key: str) -> None:
        """Let a setting that was saved just now apply, where it can."""
        match key:
            case "appearance.theme":
                self.themes.use(self.settings.appearance.theme)
            case "engine.keep":
                self.run_worker(self._try(self.engine.keep(self.settings.engine.keep)))
            case _ if key.startswith("chat.") and not self.conversation.turns:
                talk = self.conversation
                talk.parameters = self.parameters_after(talk.parameters)

    # Actions of every screen

    def action_help(self) -> None:
        """Show the keys."""
        from app.tui.screens.keys import KeysScreen

        if not isinstance(self.screen, KeysScreen):
            from app.tui.screens.engine import EngineScreen

            self.push_screen(KeysScreen(engine_first=isinstance(self.screen, EngineScreen)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Another screen has a way back, and keys of its own.
        return action not in ("engine", "settings", "bench") or len(self.screen_stack) == 1

    def action_engine(self) -> None:
        """Show the engine."""
        from app.tui.screens.engine import EngineScreen

        if len(self.screen_stack) == 1:
            self.push_screen(EngineScreen())

    def action_bench(self) -> None:
        """Show the benchmarks."""
        from app.tui.screens.bench import BenchScreen

        if len(self.screen_stack) == 1:
            self.push_screen(BenchScreen())

    def action_settings(self) -> None:
        """Show the settings."""
        from app.tui.screens.settings import SettingsScreen

        if len(self.screen_stack) == 1:
            self.push_screen(SettingsScreen())

    async def copy(self, text: str) -> None:
        """Copy a text and say how."""
        driver = self._driver
        how = await clipboard.copy(text, driver.write if driver is not None else None)
        self.notify(how, markup=False)

    async def action_interrupt(self) -> None:
        """Ctrl+C copies a selection, else stops a reply, else quits when pressed twice."""
        chat = self._chat
        if self.screen.get_selected_text() or (self.screen is chat and chat.composer.selected_text):
            await chat.action_copy()
        elif chat.talk.is_running:
            chat.action_stop()
        else:
            now = asyncio.get_running_loop().time()
            if now - self._interrupted_at < 2:
                self.exit()
            self._interrupted_at = now
            self.notify(_("Press Ctrl+C again to quit."), timeout=2)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from system_commands(self, self._chat)

    async def action_quit(self) -> None:
        """Leave. The engine goes with its last user unless it is kept."""
        self.exit()

    def write_terminal(self, sequence: str) -> None:
        """Send a control sequence to the terminal, if there is one."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def action_sessions(self) -> None:
        """Show the sessions."""
        from app.tui.screens.sessions import SessionsScreen

        if len(self.screen_stack) == 1:
            self.push_screen(SessionsScreen())

    async def on_unmount(self) -> None:
        await self.sessions.close()
        await self.engine.close()
