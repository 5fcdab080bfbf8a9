"""The app's side of the engine: follows its status, starts, stops and switches it."""

from collections.abc import Coroutine
from functools import partial
from typing import Any

from textual.reactive import reactive

from app.core import figures
from app.core.i18n import _, shown
from app.core.settings.file import Settings
from app.tui.base import BaseApp
from app.tui.panel.words import can_switch
from app.tui.plain import said
from engine_bridge.contract import EngineSpec, EngineState, EngineStatus, Optimisation, Verdict
from engine_bridge.engine import Engine
from engine_bridge.errors import BridgeError

TOLD_AFTER_S = 0.5


class EngineApp(BaseApp):
    """An app that looks after one engine."""

    status: reactive[EngineStatus] = reactive(EngineStatus(), init=False)
    """The engine's latest status."""

    def __init__(self, engine: Engine, spec: EngineSpec, settings: Settings) -> None:
        super().__init__()
        self.engine = engine
        self.spec = spec
        self.settings = settings
        self.wanted: dict[str, bool] = {}
        """Switches that wait for the running reply to end or the next start, by optimisation id."""
        self.offered: EngineSpec | None = None
        """The engine of the session that was opened, where another one runs."""
        self._known: tuple[Optimisation, ...] = ()
        self._switched: dict[str, bool] = {}
        """Switches that were applied and whose outcome is not told yet."""

    @property
    def is_replying(self) -> bool:
        """Whether a reply runs, which a switch must not cut."""
        raise NotImplementedError

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
            if self.wanted and not self.is_replying:
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
        if self.wanted and not self.is_replying:
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
        """Flip the switches that are the cure of a failed engine, and start it; else start the
        engine of the session that was opened."""
        if remedy := self.status.remedy:
            self.wanted.update(remedy)
            self._apply_wanted()
        elif self.offered is not None and not self.is_replying:
            spec, self.offered = self.offered, None
            self.use_spec(spec)

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
        elif not self.is_replying:
            self._apply_wanted()
        self.mutate_reactive(EngineApp.status)  # the screens show what is wanted, too

    def reply_ended(self) -> None:
        """A reply is over: what waited for that happens now."""
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

    def _save(self) -> None:
        try:
            self.settings.save()
        except (OSError, BridgeError) as error:
            self.notify(
                _("The settings were not saved: {error}").format(error=error),
                severity="warning",
                markup=False,
            )
