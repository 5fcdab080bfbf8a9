"""The engine's state and its switches in words; panel, status line and engine screen share them."""

from textual.content import Content

from app.core import figures
from app.core.i18n import _, ngettext
from app.tui.glyphs import Glyphs
from app.tui.plain import said
from engine_bridge.contract import (
    Applies,
    EngineSpec,
    EngineState,
    EngineStatus,
    Optimisation,
    Verdict,
)
from engine_bridge.models.progress import size_text


def state_sign(status: EngineStatus, glyphs: Glyphs, frame: int = 0) -> Content:
    """One character for the state; it turns while something is under way."""
    match status.state:
        case EngineState.READY | EngineState.BUSY:
            return Content.assemble((glyphs.on, "$success"))
        case EngineState.FAILED:
            return Content.assemble((glyphs.warn, "bold $error"))
        case EngineState.STOPPED:
            return Content.assemble((glyphs.off, "$muted"))
        case _:
            return Content.assemble((glyphs.spinner[frame % len(glyphs.spinner)], "$accent"))


def state_text(status: EngineStatus, glyphs: Glyphs) -> str:
    """The state in a few words, with the phase of a start and how long it will still take, or the
    key that ends it."""
    match status.state:
        case EngineState.STARTING:
            phase = said(status.phase) or _("starting")
            return f"{phase} {progress_text(status)}".rstrip()
        case EngineState.STOPPED:
            return _("stopped {dot} F5 starts it").format(dot=glyphs.dot)
        case EngineState.FAILED:
            helps = _("F6 does what helps") if status.remedy else _("F5 starts it again")
            return f"{said(str(status.state))} {glyphs.dot} {helps}"
        case _:
            return said(str(status.state))


def progress_text(status: EngineStatus) -> str:
    """How far the start is and how long it will still take; empty where neither is known."""
    share = f"{status.fraction:.0%}" if status.fraction is not None else ""
    left = ""
    if status.eta_s is not None:
        left = _("{time} left").format(time=figures.seconds(max(1.0, status.eta_s)))
    return ", ".join(filter(None, (share, left)))


def steps(status: EngineStatus, now: float) -> list[tuple[str, float | None]]:
    """The steps of the start and their seconds: of the running one those until `now` (Unix time),
    None for one that never ended."""
    running: float | None = None
    if status.state is EngineState.STARTING and status.started_at is not None:
        running = max(0.0, now - status.started_at - sum(p.seconds or 0 for p in status.phases))
    return [
        (said(each.title), running if each.seconds is None else each.seconds)
        for each in status.phases
    ]


def engine_facts(status: EngineStatus, glyphs: Glyphs) -> str:
    """Memory and threads, as far as known."""
    facts: list[str] = []
    if status.load.memory_bytes:
        facts.append(size_text(status.load.memory_bytes))
    if status.threads:
        facts.append(ngettext("{n} thread", "{n} threads", status.threads).format(n=status.threads))
    return f" {glyphs.dot} ".join(facts)


def cure(status: EngineStatus) -> str:
    """What helps a failed engine, with the key that does it where one can."""
    key = _("F6 does that.") if status.remedy else ""
    return f"{said(status.cure)} {key}".strip()


def gpu_facts(status: EngineStatus, glyphs: Glyphs) -> str:
    """The GPU's clock, power, temperature and use, as far as they are known."""
    gpu = status.load.gpu
    if gpu is None:
        return ""
    facts = [
        f"{gpu.clock_mhz:,} MHz" if gpu.clock_mhz is not None else "",
        f"{gpu.power_w:.0f} W" if gpu.power_w is not None else "",
        f"{gpu.temperature_c} °C" if gpu.temperature_c is not None else "",
        f"{gpu.utilisation:.0%}" if gpu.utilisation is not None else "",
    ]
    return f" {glyphs.dot} ".join(filter(None, facts))


def switch_sign(optimisation: Optimisation, glyphs: Glyphs) -> tuple[str, str]:
    """A switch's sign and its colour."""
    match optimisation.verdict:
        case Verdict.NOT_SUPPORTED:
            return glyphs.absent, "$muted 70%"
        case Verdict.VERIFIED:
            return glyphs.on, "$success"
        case Verdict.FELL_BACK:
            return glyphs.warn, "$warning"
        case Verdict.UNPROVEN if optimisation.requested:
            return glyphs.partly, "$accent"
        case _:
            return glyphs.off, "$muted"


def is_down(status: EngineStatus) -> bool:
    """Whether nothing happens until the user starts the engine. One that was never asked for has
    no spec yet."""
    is_stopped = status.state is EngineState.STOPPED and status.spec is not None
    return is_stopped or status.state is EngineState.FAILED


def is_ours(spec: EngineSpec) -> bool:
    """Whether the engine is started by us, so that we may stop and keep it too."""
    return spec.backend != "attach"


def can_switch(optimisation: Optimisation) -> bool:
    """Whether it has a switch here that does something."""
    return optimisation.switchable and optimisation.verdict is not Verdict.NOT_SUPPORTED


def switch_hint(optimisation: Optimisation) -> str:
    """The key that switches it, and what that would mean."""
    verb = _("off") if optimisation.requested else _("on")
    means = switch_means(optimisation)
    return _("Space switches it {verb}; {means}.").format(verb=verb, means=means)


def switch_means(optimisation: Optimisation) -> str:
    """When a switch of it applies, and how long that took last time."""
    if optimisation.applies is Applies.NEXT_MESSAGE:
        return _("it applies to the next message")
    took = optimisation.last_change_s
    last = (
        _(" (took {took} last time)").format(took=figures.seconds(took)) if took is not None else ""
    )
    return _("the engine restarts{last}").format(last=last)
