"""The app: holds the engine, the conversation and the settings; the screens show them."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterable
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from app.core import clipboard, figures
from app.core.conversation import Conversation
from app.core.documents import Document
from app.core.i18n import _, shown
from app.core.settings import Settings
from app.tui import keymap
from app.tui.base import BaseApp
from app.tui.commands import system_commands
from app.tui.glyphs import ASCII, Glyphs, for_terminal
from app.tui.panel.live import Live
from app.tui.panel.words import can_switch
from app.tui.plain import said
from app.tui.screens.chat import ChatScreen
from app.tui.sessions import Sessions
from app.tui.theme_watch import ThemeWatch
from engine_bridge.contract import EngineSpec, EngineState, EngineStatus, Optimisation, Verdict
from engine_bridge.engine import Engine
from engine_bridge.errors import BridgeError

TOLD_AFTER_S = 0.5


class LingChat(BaseApp):
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
            _("Apply the cure"),
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

    status: reactive[EngineStatus] = reactive(EngineStatus(), init=False)
    """The engine's latest status."""

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
        super().__init__()
        self.engine = engine
        self.spec = spec
        self.conversation = conversation or Conversation()
        for document in documents:
            self.conversation.attach(document)
        self.settings = settings or Settings()
        self.glyphs = glyphs or for_terminal()
        self.live = Live()
        self.wanted: dict[str, bool] = {}
        """Switches that wait for the running reply to end or the next start, by optimisation id."""
        self._known: tuple[Optimisation, ...] = ()
        self._switched: dict[str, bool] = {}
        """Switches that were applied and whose outcome is not told yet."""
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

    # The engine

    async def _follow(self) -> None:
        async for status in self.engine.updates():
            self.status = status

    def watch_status(self, status: EngineStatus) -> None:
        """Keep what a stopped engine no longer tells, and tell how a switch ended."""
        if status.optimisations:
            self._known = status.optimisations
        if status.state is EngineState.FAILED:
            self._switched.clear()
        elif status.state.is_usable:
            if self.wanted and not self._chat.talk.is_running:
                self._apply_wanted()
            else:
                self._tell_switched()

    @property
    def switches(self) -> tuple[Optimisation, ...]:
        """The engine's switches; of one that is down those it had, as nothing proves them now."""
        if self.status.optimisations:
            return self.status.optimisations
        unproven: dict[str, Any] = {
            "verdict": Verdict.UNPROVEN,
            "resolved": None,
            "observed": None,
            "evidence": {},
        }
        return tuple(
            each.model_copy(update=unproven | {"note": ""}) if can_switch(each) else each
            for each in self._known
        )

    @property
    def wanted_when(self) -> str:
        """When the switches that wait will be applied."""
        return _("after this reply") if self.status.state.is_usable else _("at the next start")

    def _tell_switched(self) -> None:
        """A toast with verdict and effect of each switch that the engine now has as wanted."""
        for each in self.status.optimisations:
            if self._switched.get(each.id) is not each.requested:
                continue
            del self._switched[each.id]
            # The verdict comes with the status after the one that says ready.
            self.set_timer(TOLD_AFTER_S, partial(self._tell_outcome, each.id))

    def _tell_outcome(self, optimisation: str) -> None:
        for each in self.status.optimisations:
            if each.id == optimisation:
                effect = figures.effect(each.effect) if each.requested else ""
                words = ", ".join(filter(None, (shown(str(each.verdict)), effect)))
                self.notify(f"{said(each.title)}: {words}", markup=False)

    def action_start_engine(self) -> None:
        """Start the engine, or start it again with what is wanted now."""
        if self.wanted and not self._chat.talk.is_running:
            self._apply_wanted()
        else:
            self.use_spec(self.spec)

    def use_spec(self, spec: EngineSpec) -> None:
        """Start the engine, or start it again, as asked for here."""
        self.spec = spec
        self.run_worker(self._try(self._start_and_keep()), group="engine-start", exclusive=True)

    async def _start_and_keep(self) -> None:
        await self.engine.start(self.spec)
        if self.settings.engine.keep:
            await self.engine.keep(True)

    def action_apply_remedy(self) -> None:
        """Flip the switches that are the cure of a failed engine, and start it."""
        if remedy := self.status.remedy:
            self.wanted.update(remedy)
            self._apply_wanted()

    def action_stop_engine(self) -> None:
        """Stop the engine."""
        self.run_worker(self._try(self.engine.stop()), group="engine-start", exclusive=True)

    async def restart_engine(self) -> None:
        """Stop the engine and start it again."""
        await self._try(self.engine.stop())
        self.action_start_engine()

    async def verify(self) -> None:
        """Prove every optimisation again and say how it went."""
        self.notify(_("Proving every optimisation again."))
        try:
            status = await self.engine.verify()
        except (BridgeError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)
            return
        lines = [f"{said(each.title)}: {shown(str(each.verdict))}" for each in status.optimisations]
        self.notify("\n".join(lines) or _("This engine has no switches."), markup=False, timeout=8)

    async def _try(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BridgeError as error:
            self.status = EngineStatus(
                state=EngineState.FAILED, spec=self.spec, reason=error.reason, cure=error.cure
            )
        except OSError as error:
            self.status = EngineStatus(
                state=EngineState.FAILED,
                spec=self.spec,
                reason=_("The engine host left: {error}.").format(error=error),
            )

    def switch(self, optimisation: str, on: bool) -> None:
        """Switch an optimisation: now, after the running reply, or at the next start."""
        self.wanted[optimisation] = on
        if self.status.state in (EngineState.STOPPED, EngineState.STOPPING):
            self.notify(_("It applies at the next start. F5 starts the engine."))
        elif not self._chat.talk.is_running:
            self._apply_wanted()
        self.mutate_reactive(LingChat.status)  # the screens show what is wanted, too

    def reply_ended(self) -> None:
        """A reply is over: what waited for that happens now."""
        self._chat.show_figures()
        if self.wanted and self.status.state.is_alive:
            self._apply_wanted()

    def _apply_wanted(self) -> None:
        wanted = {**self.spec.optimisations, **self.wanted}
        self._switched.update(self.wanted)
        self.wanted.clear()
        self.settings.engine.optimisations.update(wanted)
        self._save()
        self.use_spec(self.spec.model_copy(update={"optimisations": wanted}))

    async def keep_engine(self, keep: bool) -> None:
        """Whether the engine stays when the last ling-chat is closed."""
        self.settings.engine.keep = keep
        self._save()
        await self._try(self.engine.keep(keep))
        stays = _("stays when you quit") if keep else _("goes when the last ling-chat is closed")
        self.notify(_("The engine {stays}.").format(stays=stays))

    # Settings

    def use_theme(self, name: str) -> None:
        """Switch to a theme and remember it."""
        self.themes.use(name)
        self.settings.appearance.theme = name
        self._save()

    def setting_changed(self, key: str) -> None:
        """Let a setting that was saved just now apply, where it can."""
        match key:
            case "appearance.theme":
                self.themes.use(self.settings.appearance.theme)
            case "engine.keep":
                self.run_worker(self._try(self.engine.keep(self.settings.engine.keep)))

    def _save(self) -> None:
        try:
            self.settings.save()
        except (OSError, BridgeError) as error:
            self.notify(
                _("The settings were not saved: {error}").format(error=error),
                severity="warning",
                markup=False,
            )

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
