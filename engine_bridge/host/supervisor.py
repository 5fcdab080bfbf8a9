"""The life of one engine: prepare, launch, wait, prove, watch, stop, and say why it ended."""

import asyncio
import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from engine_bridge import paths
from engine_bridge.backends import backend_named
from engine_bridge.backends.base import Backend, Diagnosis, Launch, Phase, Running, Watchful
from engine_bridge.contract import EngineSpec, EngineState, EngineStatus, Load, Optimisation
from engine_bridge.errors import BridgeError, brief
from engine_bridge.host.durations import Durations
from engine_bridge.host.logs import EngineLog
from engine_bridge.host.process import EngineProcess, command_line, describe_exit
from engine_bridge.host.start import StartStory

READY_POLL_S = 0.1
TICK_S = 0.25
SAMPLE_S = 1.0
LAUNCH_ATTEMPTS = 3


class _EndedError(BridgeError):
    """The engine ended unasked."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.reason, diagnosis.cure)
        self.remedy = dict(diagnosis.remedy)


class _AbandonedError(Exception):
    """Raised inside a worker thread whose start was called off."""


class Supervisor:
    """Owns at most one engine. `on_change` is called whenever `status` is another; `find` gives
    the backend of an id."""

    def __init__(
        self, on_change: Callable[[], None], find: Callable[[str], Backend] = backend_named
    ) -> None:
        self._find = find
        self.status = EngineStatus()
        self.launch: Launch | None = None
        self._on_change = on_change
        self._life: asyncio.Task[None] | None = None
        self._order = asyncio.Lock()
        self._running: Running | None = None
        self._backend: Backend | None = None
        self._danger: Diagnosis | None = None

    async def start(self, spec: EngineSpec) -> None:
        """Run this engine. One that lives and satisfies the spec is left alone; another one
        makes way.

        Raises UsageError for an unknown backend; anything later shows in `status`.
        """
        async with self._order:
            if self.status.spec is not None:
                spec = _completed(spec, self.status.spec)
            if self.status.state.is_alive and _satisfies(self.status, spec):
                return
            backend = self._find(spec.backend)
            before = self.status.spec if self.status.state.is_alive else None
            await self._end()
            self._backend = backend
            self._set(
                EngineStatus(state=EngineState.STARTING, spec=spec, phase="preparing the start")
            )
            self._life = asyncio.create_task(self._live(backend, spec, _switched(before, spec)))

    async def stop(self) -> None:
        """Stop the engine; returns when its processes are gone."""
        async with self._order:
            await self._end()
            self._set(EngineStatus(spec=self.status.spec, log_path=self.status.log_path))

    async def verify(self) -> None:
        """Prove every optimisation of the running engine again."""
        if self._backend is not None and self._running is not None:
            self._prove(await self._backend.prove(self._running))

    async def _end(self) -> None:
        life, self._life = self._life, None
        if life is None or life.done():
            return
        self._set(self.status.model_copy(update={"state": EngineState.STOPPING}))
        life.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await life

    async def _live(self, backend: Backend, spec: EngineSpec, switched: dict[str, bool]) -> None:
        try:
            log = EngineLog(paths.log_dir() / f"{backend.id}.log")
        except BridgeError as error:
            self._fail(error.reason, error.cure)
            return
        try:
            key = (spec.backend, Path(spec.model).name or "default")
            story = StartStory(key, lambda: None)
            await self._try_to_live(backend, spec, log, story, switched)
        except BridgeError as error:
            log.note(f"failed: {error}")
            remedy = error.remedy if isinstance(error, _EndedError) else {}
            self._fail(error.reason, error.cure, remedy)
        except Exception as error:
            log.note(traceback.format_exc())
            self._fail(
                f"The engine host met an error it does not know: {brief(error)}.",
                f"The details are in {log.path}.",
            )
        finally:
            self._running = self.launch = None
            log.close()

    async def _try_to_live(
        self,
        backend: Backend,
        spec: EngineSpec,
        log: EngineLog,
        story: StartStory,
        switched: dict[str, bool],
    ) -> None:
        self._set(
            EngineStatus(
                state=EngineState.STARTING,
                spec=spec,
                phase=story.title,
                started_at=time.time(),
                log_path=str(log.path),
            )
        )
        ticker = asyncio.create_task(self._tick(story))
        process: EngineProcess | None = None
        guard: asyncio.Task[None] | None = None
        self._danger = None
        try:
            for attempt in range(LAUNCH_ATTEMPTS):
                launch = await self._prepare(backend, spec, story)
                log.hide(launch.endpoint.api_key)
                log.note(f"starting {command_line(launch.argv)}")
                story.launch()
                story.enter(Phase("starting the engine process"))
                process = await EngineProcess.start(
                    launch, lambda data: self._hear(backend, log, story, data)
                )
                self.launch = launch
                self._describe(launch, process.pid)
                guard = asyncio.create_task(self._guard(backend, process, log))
                if await _answers(backend, launch, process):
                    break
                guard.cancel()
                diagnosis = self._danger or backend.diagnose(process.exit_code, list(log.tail))
                log.note(f"ended during its start with {describe_exit(process.exit_code)}")
                if not (diagnosis.retry and attempt + 1 < LAUNCH_ATTEMPTS):
                    raise _EndedError(diagnosis)
                await process.stop()  # what it started may have outlived it
            assert process is not None
            running = Running(launch, process.pid)
            story.enter(Phase("proving the optimisations"))
            proven = await backend.prove(running)
            story.finish()
            ticker.cancel()
            _learn_switches(backend.id, switched, story.seconds)
            self._running = running
            self._ready(proven, story)
            log.note(f"ready after {story.seconds:.1f} s")
            sampler = asyncio.create_task(self._sample(backend, running))
            try:
                code = await process.wait()
            finally:
                sampler.cancel()
            log.note(f"ended unasked with {describe_exit(code)}")
            raise _EndedError(self._danger or backend.diagnose(code, list(log.tail)))
        finally:
            ticker.cancel()
            if guard is not None:
                guard.cancel()
            if process is not None:
                await process.stop()

    async def _guard(self, backend: Backend, process: EngineProcess, log: EngineLog) -> None:
        """Stop the engine in order when its backend says that it must end."""
        while isinstance(backend, Watchful):
            await asyncio.sleep(SAMPLE_S)
            if (danger := backend.watchdog()) is not None:
                self._danger = danger
                log.note(f"stopping the engine: {danger.reason}")
                await process.stop()
                return

    async def _prepare(self, backend: Backend, spec: EngineSpec, story: StartStory) -> Launch:
        """Run `backend.prepare` in a thread that a stop can call off."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Launch] = loop.create_future()
        abandoned = threading.Event()

        def report(phase: Phase) -> None:
            if abandoned.is_set():
                raise _AbandonedError
            loop.call_soon_threadsafe(story.enter, phase)

        def settle(result: Launch | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            elif result is not None:
                done.set_result(result)

        def work() -> None:
            result, problem = None, None
            try:
                result = backend.prepare(spec, report)
            except BaseException as error:
                problem = error
            # The loop may be closed already when the host was told to leave.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, problem)

        # A daemon thread: a download that hangs must not keep the host alive.
        threading.Thread(target=work, daemon=True, name="prepare").start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            abandoned.set()
            done.add_done_callback(lambda future: future.exception())
            await asyncio.wait([done], timeout=3.0)
            raise

    def _hear(self, backend: Backend, log: EngineLog, story: StartStory, data: bytes) -> None:
        for line in log.feed(data):
            if self.status.state is EngineState.STARTING:
                if phase := backend.phase_of(line):
                    story.enter(phase)
            elif isinstance(backend, Watchful):
                backend.hear(line)

    async def _tick(self, story: StartStory) -> None:
        while True:
            self._set(
                self.status.model_copy(
                    update={
                        "phase": story.title,
                        "fraction": story.fraction,
                        "eta_s": story.eta_s,
                        "phases": story.phases,
                    }
                )
            )
            await asyncio.sleep(TICK_S)

    async def _sample(self, backend: Backend, running: Running) -> None:
        while True:
            with contextlib.suppress(OSError):
                load = await backend.sample(running)
                state = EngineState.BUSY if load.running else EngineState.READY
                self._set(self.status.model_copy(update={"load": load, "state": state}))
                if (changed := backend.watch(running, load)) is not None:
                    self._prove(changed)
            await asyncio.sleep(SAMPLE_S)

    def _describe(self, launch: Launch, pid: int) -> None:
        self._set(
            self.status.model_copy(
                update={
                    "model_name": launch.model_name,
                    "model_path": str(launch.model_path),
                    "model_bytes": launch.model_bytes or launch.model_path.stat().st_size,
                    "caveat": launch.caveat,
                    "engine_pid": pid,
                    "base_url": launch.endpoint.base_url,
                    "context_tokens": launch.context_tokens,
                    "threads": launch.threads,
                    "optimisations": launch.optimisations,
                }
            )
        )

    def _ready(self, proven: tuple[Optimisation, ...], story: StartStory) -> None:
        self._set(
            self.status.model_copy(
                update={
                    "state": EngineState.READY,
                    "phase": "",
                    "fraction": None,
                    "eta_s": None,
                    "phases": story.finished_phases,
                    "start_s": round(story.seconds, 3),
                }
            )
        )
        self._prove(proven)

    def _prove(self, optimisations: tuple[Optimisation, ...]) -> None:
        assert self._backend is not None
        known = Durations()
        name = self._backend.id
        self._set(
            self.status.model_copy(
                update={
                    "optimisations": tuple(
                        each.model_copy(
                            update={
                                "last_change_s": known.get(
                                    *_change(name, each.id, not each.requested)
                                )
                            }
                        )
                        for each in optimisations
                    )
                }
            )
        )

    def _fail(self, reason: str, cure: str, remedy: dict[str, bool] | None = None) -> None:
        self._set(
            self.status.model_copy(
                update={
                    "state": EngineState.FAILED,
                    "reason": reason,
                    "cure": cure,
                    "remedy": remedy or {},
                    "phase": "",
                    "fraction": None,
                    "eta_s": None,
                    "engine_pid": None,
                    "base_url": "",
                    "load": Load(),
                }
            )
        )

    def _set(self, status: EngineStatus) -> None:
        if status != self.status:
            self.status = status
            self._on_change()


async def _answers(backend: Backend, launch: Launch, process: EngineProcess) -> bool:
    """Wait for the engine's first answer; False if it ended instead."""
    while not await backend.is_ready(launch):
        if process.exit_code is not None:
            await process.wait()
            return False
        await asyncio.sleep(READY_POLL_S)
    return True


def _completed(spec: EngineSpec, last: EngineSpec) -> EngineSpec:
    """What a spec leaves open is as in the last one of the same backend: who names no model
    shares the one that runs, and a switch flipped there keeps it."""
    if spec.backend != last.backend:
        return spec
    return spec.model_copy(
        update={
            "model": spec.model or last.model,
            "context_tokens": spec.context_tokens or last.context_tokens,
            "optimisations": {**last.optimisations, **spec.optimisations},
        }
    )


def _satisfies(status: EngineStatus, spec: EngineSpec) -> bool:
    """Whether the running engine is what the (completed) spec asks for."""
    requested = {each.id: each.requested for each in status.optimisations}
    running = status.spec
    return running is not None and running == spec.model_copy(
        update={
            "optimisations": running.optimisations
            if all(requested.get(id_, on) == on for id_, on in spec.optimisations.items())
            else spec.optimisations
        }
    )


def _switched(before: EngineSpec | None, after: EngineSpec) -> dict[str, bool]:
    """The switches, by optimisation id, that are all that differs between two specs."""
    if before is None or before.model_copy(update={"optimisations": after.optimisations}) != after:
        return {}
    was = before.optimisations
    return {id_: on for id_, on in after.optimisations.items() if was.get(id_) != on}


def _learn_switches(backend: str, switched: dict[str, bool], seconds: float) -> None:
    for id_, on in switched.items():
        Durations().learn(seconds, *_change(backend, id_, on))


def _change(backend: str, optimisation: str, on: bool) -> tuple[str, ...]:
    """On and off are remembered apart: only one of them may have to make a file."""
    return (backend, "switch", optimisation, "on" if on else "off")
