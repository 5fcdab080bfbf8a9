"""The embedded engine as the host sees it: llama.cpp, one process, one slot."""

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from engine_bridge import machine, paths
from engine_bridge.backends.base import Diagnosis, Endpoint, Launch, Phase, Report, Running
from engine_bridge.backends.llamacpp import failures, plan, proof, serve, switches
from engine_bridge.backends.llamacpp.counters import loopback_client, read_load
from engine_bridge.contract import EngineSpec, Load, Optimisation
from engine_bridge.errors import BridgeError
from engine_bridge.models import choose, store, tensors
from engine_bridge.models.ensure import ensure

PHASES = {
    "engine: loading the runtime": Phase("loading the runtime"),
    "engine: loading weights": Phase("loading weights"),
    "model loaded": Phase("warming up"),
}


class LlamaCpp:
    """See `engine_bridge.backends.base.Backend` for the meaning of each method."""

    id = "llamacpp"

    def __init__(self) -> None:
        self._before = Load()
        self._proven: tuple[Optimisation, ...] = ()

    def optimisations(self, spec: EngineSpec) -> tuple[Optimisation, ...]:
        return switches.declare(spec, _local(spec.model))

    def prepare(self, spec: EngineSpec, report: Report) -> Launch:
        model = ensure(spec.model, report)
        report(Phase("looking at this machine"))
        threads = spec.threads or machine.free_threads()
        # The trial's finding shall hold for later starts too, whatever is busy just now.
        choice = switches.resolve(spec, model.path, machine.cores(), report)
        size = choice.model_path.stat().st_size
        shape, free = _shape(choice.model_path), machine.free_memory()
        context = plan.plan_context(shape, size, free, spec.context_tokens)
        port, key = machine.free_port(), secrets.token_urlsafe(24)
        order = serve.ServeSpec(
            model=str(choice.model_path),
            alias=model.name,
            port=port,
            api_key=key,
            n_ctx=context,
            n_threads=threads,
            no_extra_bufts=choice.no_extra_bufts,
            speculation=choice.speculation,
            draft_match=choice.draft_match,
            draft_tokens=choice.draft_tokens,
            kv_folder=str(paths.kv_dir()),
            cache_bytes=plan.plan_cache(shape, size, free, context),
        )
        return Launch(
            argv=[sys.executable, "-m", serve.__name__],
            stdin=order.to_stdin(),
            environment=serve.ENVIRONMENT,
            endpoint=Endpoint(f"http://127.0.0.1:{port}", key),
            model_name=model.name,
            model_path=choice.model_path,
            context_tokens=context,
            threads=threads,
            caveat=" ".join(filter(None, (switches.caveat(choice.model_path), _slow(threads)))),
            optimisations=choice.optimisations,
        )

    def phase_of(self, log_line: str) -> Phase | None:
        return next((phase for text, phase in PHASES.items() if text in log_line), None)

    async def is_ready(self, launch: Launch) -> bool:
        import httpx

        try:
            async with loopback_client(timeout=5.0) as http:
                answer = await http.get(f"{launch.endpoint.base_url}/health")
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def prove(self, running: Running) -> tuple[Optimisation, ...]:
        launch = running.launch
        self._proven = await proof.prove(launch.optimisations, running.pid, launch.endpoint)
        return self._proven

    async def sample(self, running: Running) -> Load:
        return await read_load(running.launch.endpoint, running.pid)

    def watch(self, running: Running, load: Load) -> tuple[Optimisation, ...] | None:
        before, self._before = self._before, load
        changed = proof.watch(self._proven, before, load)
        self._proven = changed or self._proven
        return changed

    def diagnose(self, exit_code: int | None, log_tail: Sequence[str]) -> Diagnosis:
        return failures.diagnose(exit_code, log_tail)


def _slow(threads: int) -> str:
    if threads >= machine.cores():
        return ""
    return (
        f"It computes with {threads} of {machine.cores()} cores, since other programs were busy"
        " when it started; restart it to look again."
    )


def _local(name: str) -> Path | None:
    """The model's file if it is here already; never downloads."""
    try:
        return store.resolve(name or choose.default_model(machine.free_memory()).name).path
    except BridgeError:
        return None


def _shape(model: Path) -> plan.ModelShape:
    """The figures that size the KV cache, from the file's header."""
    gguf = tensors.read(model)
    heads = gguf.arch("attention.head_count") or 1
    length = (gguf.arch("embedding_length") or 0) // heads
    return plan.ModelShape(
        context_tokens=gguf.arch("context_length") or 0,
        layers=gguf.arch("block_count") or 1,
        # An array (one count a layer) reads as None: taking all heads errs on the safe side.
        kv_heads=gguf.arch("attention.head_count_kv") or heads,
        key_length=gguf.arch("attention.key_length") or length,
        value_length=gguf.arch("attention.value_length") or length,
        # F32; flash attention does without.
        score_bytes=0 if serve.FLASH_ATTENTION else 4 * heads * serve.BATCH_TOKENS,
    )
