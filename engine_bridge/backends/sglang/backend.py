"""SGLang as the host sees it: one engine for one user, proven from inside, looked after."""

import json
import os
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine_bridge import paths
from engine_bridge.backends.base import Diagnosis, Endpoint, Launch, Phase, Report, Running
from engine_bridge.backends.sglang import (
    bundle,
    checkpoint,
    failures,
    flags,
    hub,
    interpreter,
    loads,
    phases,
    probe,
    profile,
    proof,
    room,
    speculation,
    switches,
)
from engine_bridge.backends.sglang.learned import Decode, Learned, Setting
from engine_bridge.care.gpu import GpuReader
from engine_bridge.care.memory_guard import Watchdog, read_memory
from engine_bridge.care.slow import SlowClock
from engine_bridge.contract import EngineSpec, Load, Optimisation
from engine_bridge.errors import BridgeError, UnavailableError, UsageError
from engine_bridge.machine import free_port

if TYPE_CHECKING:
    import httpx

EXTRA = "LING_CHAT_ENGINE_ARGS"
"""Further flags for SGLang, as on a command line; they win over the profile's."""
ON_CPU = "LING_CHAT_SGLANG_CPU"
READY_EVERY_S = 0.5
SAVE_EVERY_S = 10.0
RATES = ("decode_tokens_per_s", "round_s", "accept_length")
"""SGLang publishes its sums every 15 steps: between two of them the last rates hold."""
LONG_CONTEXT_TOKENS = 30_000
"""Where attention backends differ most, and where they were compared."""


class SGLang:
    """See `engine_bridge.backends.base.Backend` and `Watchful` for the meaning of each method."""

    id = "sglang"

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._gpu = GpuReader()
        self._slow = SlowClock()
        self._watchdog = Watchdog(unified=False)
        self._start = phases.StartLog()
        self._serving = phases.ServingLog()
        self._moments: loads.Moments | None = None
        self._learned = Learned()
        self._setting = Setting("", "", frozenset(), "")
        self._proven: tuple[Optimisation, ...] = ()
        self._rates: dict[str, float | None] = {}
        self._asked_ready = self._saved = 0.0

    def optimisations(self, spec: EngineSpec) -> tuple[Optimisation, ...]:
        return switches.declare(spec, _here(spec.model))

    def prepare(self, spec: EngineSpec, report: Report) -> Launch:
        engine = interpreter.find(spec.python)
        gpu = self._gpu.read()
        if gpu is None and os.environ.get(ON_CPU) != "1":
            raise UnavailableError(
                "SGLang needs an NVIDIA GPU, and none is seen here.",
                "Use the embedded engine: --engine llamacpp.",
            )
        model = checkpoint.read(hub.ensure(spec.model, report))
        declared = switches.declare(spec, model)
        on = switches.on(declared)
        chosen = profile.profile_for(gpu)
        if chosen is profile.CPU:
            on -= switches.OF_A_GPU
        if (why := interpreter.unsupported(engine.sglang)) and on & switches.OF_THE_PLUGIN:
            raise UnavailableError(
                why, "Install SGLang 0.5.23: pip install 'ling-chat[spark]'; or turn them off."
            )
        context, stretch = profile.plan_context(model, spec.context_tokens)
        machine = f"{gpu.name if gpu else 'CPU'} · SGLang {engine.sglang}"
        usual = profile.attention_for(chosen, model, on)
        setting = Setting(machine, model.name, on & switches.SWITCHES, usual or "auto")
        attention = self._learned.best_attention(setting, LONG_CONTEXT_TOKENS) or usual
        # Another at each start: SGLang was seen to hang on a port that a killed engine had used.
        port, key = free_port(), secrets.token_urlsafe(24)
        room.wait_for_release(self._gpu, report)
        compilers = room.check(gpu, model, chosen.memory_fraction)
        wanted = profile.flags(chosen, model, on, context, attention)
        argv = profile.argv({**wanted, **stretch, "--host": "127.0.0.1", "--port": str(port)})
        argv += shlex.split(os.environ.get(EXTRA, ""))
        if switches.FP8_HEAD in on and profile.FP32_HEAD in argv:
            why = switches.explain(switches.FP8_HEAD, "fp32-head")
            raise UsageError(why, f"Leave out {profile.FP32_HEAD}, or turn the FP8 LM head off.")
        flags.check(argv, engine, report)
        report(Phase("preparing the engine's folder"))
        folder = bundle.ensure()
        self._start = phases.StartLog(model.expert_layers)
        self._serving = phases.ServingLog()
        self._watchdog = Watchdog(unified=gpu is not None and gpu.unified)
        self._setting = replace(setting, attention=profile.attention_of(argv))
        self._moments = None
        return Launch(
            argv=[engine.path, str(folder / bundle.WRAPPER), *argv],
            stdin=json.dumps({"api_key": key}).encode() + b"\n",
            environment={
                **chosen.environment,
                "MAX_JOBS": str(compilers),
                "PYTHONPATH": os.pathsep.join(
                    filter(None, (str(folder), os.environ.get("PYTHONPATH", "")))
                ),
                "LING_CHAT_ENGINE": json.dumps(_request(on, model)),
            },
            endpoint=Endpoint(f"http://127.0.0.1:{port}", key),
            model_name=model.name,
            model_path=model.path,
            model_bytes=model.weight_bytes,
            context_tokens=context,
            threads=os.cpu_count() or 1,
            optimisations=declared if chosen is not profile.CPU else _without_gpu(declared),
        )

    def phase_of(self, log_line: str) -> Phase | None:
        return self._start.phase_of(log_line)

    async def is_ready(self, launch: Launch) -> bool:
        import httpx

        # Also while it starts, each request costs both sides something.
        if time.monotonic() - self._asked_ready < READY_EVERY_S:
            return False
        self._asked_ready = time.monotonic()
        try:
            # Not /health: that generates a token, and fails during long prefills.
            answer = await self._http.get(f"{launch.endpoint.base_url}/ready", timeout=5.0)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def prove(self, running: Running) -> tuple[Optimisation, ...]:
        launch = running.launch
        shown = None
        try:
            load, _ = loads.parse(await loads.ask(self._http, launch.endpoint))
            if not load.running:  # a probe would wait behind the user's own request
                shown = await probe.run(self._http, launch.endpoint, launch.context_tokens)
            seen = await self._seen(launch.endpoint, shown)
        except OSError as error:
            note = f"The engine did not answer the questions about it ({error})."
            return tuple(o.model_copy(update={"note": note}) for o in launch.optimisations)
        if shown is not None:
            self._learned.learn(self._setting, shown.prompt_tokens, shown.decode)
            self._learned.save()
        effects = speculation.effects(self._learned, self._setting, shown)
        self._proven = proof.judge(launch.optimisations, seen, effects)
        return self._proven

    async def sample(self, running: Running) -> Load:
        answer = await loads.ask(self._http, running.launch.endpoint)
        load, now = loads.parse(answer, self._moments)
        grown = now.since(self._moments) if self._moments is not None else None
        self._moments = now
        gpu = self._gpu.read()
        slow = self._slow.feed(time.monotonic(), gpu) if gpu else ""
        prefill = self._serving.prefill if load.running else None
        context = load.context_tokens or (self._serving.context_tokens if load.running else None)
        if grown is not None or not load.running:
            self._rates = {name: getattr(load, name) for name in RATES}
        if grown is not None and context:
            decode = Decode(grown.step_s, grown.tokens_per_step, grown.steps)
            speculation.learn(self._learned, self._setting, context, decode)
        if time.monotonic() - self._saved > SAVE_EVERY_S:
            self._saved = time.monotonic()
            self._learned.save()
        return load.model_copy(
            update={
                **self._rates,
                "context_tokens": context,
                "state_usage": self._serving.state_usage,
                "prefill_done_tokens": prefill.done if prefill else None,
                "prefill_total_tokens": prefill.total if prefill else None,
                "memory_bytes": (gpu.apps_bytes if gpu else None)
                or loads.weight_and_cache_bytes(answer),
                "gpu": gpu,
                "advice": slow or (self._serving.advice if load.running else ""),
            }
        )

    def watch(self, running: Running, load: Load) -> tuple[Optimisation, ...] | None:
        changed = speculation.watch(self._proven, load, self._learned, self._setting)
        self._proven = changed or self._proven
        return changed

    def hear(self, log_line: str) -> None:
        self._serving.hear(log_line)

    def watchdog(self) -> Diagnosis | None:
        reason = self._watchdog.feed(time.monotonic(), read_memory(), self._gpu.new_xid())
        if not reason:
            return None
        return Diagnosis(
            f"{reason} The engine was stopped before the machine would stop answering.",
            "Close other programs or ask for a shorter --context, then start it again.",
        )

    def diagnose(self, exit_code: int | None, log_tail: Sequence[str]) -> Diagnosis:
        return failures.diagnose(exit_code, log_tail)

    @property
    def _http(self) -> "httpx.AsyncClient":
        """One client for all polls: a new one each second would cost a core 3%."""
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, verify=False)  # noqa: S501
        return self._client

    async def _seen(self, endpoint: Endpoint, shown: probe.Probe | None) -> proof.Seen:
        import httpx

        try:
            info = await self._http.get(
                f"{endpoint.base_url}/server_info", headers=endpoint.headers, timeout=30.0
            )
            metrics = await self._http.get(f"{endpoint.base_url}/metrics/", timeout=30.0)
            return proof.Seen(
                info.raise_for_status().json(),
                proof.counters(metrics.text if metrics.is_success else ""),
                shown.accept_length if shown else None,
            )
        except (httpx.HTTPError, ValueError) as error:
            raise OSError(str(error)) from error


def _here(name: str) -> checkpoint.Checkpoint | None:
    """The facts of a model that is here already; never downloads."""
    folder = hub.folder_of(name)
    try:
        return checkpoint.read(folder) if folder is not None and folder.is_dir() else None
    except BridgeError:
        return None  # the start itself will say it better


def _request(on: frozenset[str], model: checkpoint.Checkpoint) -> dict[str, bool | str]:
    """What the plugin inside the engine is asked for; see `engine_bridge.sglang_plugin`."""
    return {
        "fp8_head": switches.FP8_HEAD in on,
        "nextn": switches.NEXTN in on,
        "humming": switches.HUMMING in on,
        "clamp": switches.HUMMING in on and bool(model.clamped_layers),
        "split_verify": switches.SPLIT in on,
        "evidence": str(paths.state_dir() / "sglang-evidence.json"),
    }


def _without_gpu(declared: tuple[Optimisation, ...]) -> tuple[Optimisation, ...]:
    from engine_bridge.contract import Verdict

    update = {"verdict": Verdict.NOT_SUPPORTED, "note": "There is no GPU here."}
    return tuple(o.model_copy(update=update) if o.id in switches.OF_A_GPU else o for o in declared)
