"""The bench screen: pick a benchmark, watch it run, stop it, and compare what was measured."""

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from app.core import figures
from app.core.i18n import _
from app.core.plain import plain
from app.tui.panel.gauges import meter
from app.tui.plain import one_line
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.bench.history import Point
    from app.bench.ledger import Ledger
    from app.bench.menu import Benchmark
    from app.bench.progress import Step
    from app.tui.app import LingChat

NARROW = 90
PLOT_ROWS = 9
BAR = 20


class BenchScreen(Screen[None]):
    """Benchmarks to the left, their history and results to the right, progress below."""

    CSS_PATH = "bench.tcss"
    AUTO_FOCUS = "#menu"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f7", "back", _("Back"), id="bench.back"),
        Binding("s", "stop", _("Stop"), id="bench.stop"),
        Binding("space", "mark", _("Mark"), id="bench.mark"),
        Binding("c", "compare", _("Compare"), id="bench.compare"),
        Binding("e", "export", _("Export"), id="bench.export"),
    ]

    app: "LingChat"

    def __init__(self) -> None:
        super().__init__()
        self._menu = OptionList(id="menu", markup=False)
        self._about = Static(id="about")
        self._plot = Static(id="plot", markup=False)
        self._runs = OptionList(id="runs", markup=False)
        self._result = Static(id="result-text", markup=False)
        self._now = Static(id="now")
        self._benchmarks: dict[str, Benchmark] = {}
        self._points: dict[str, Point] = {}
        self._marked: list[str] = []
        self._compared_at: str | None = None
        """The run under the bar when two were compared: its own result must not come after that."""
        self._ledger: Ledger | None = None
        self._worker: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble((_("Benchmarks"), "bold $primary")), id="title")
        with Horizontal(id="columns"):
            yield self._menu
            with Vertical(id="right"):
                yield self._about
                yield self._plot
                yield self._runs
                with VerticalScroll(id="result"):
                    yield self._result
        yield self._now
        yield Footer(show_command_palette=False, compact=True)

    async def on_mount(self) -> None:
        from app.bench.menu import menu

        self._say(_("Enter runs a benchmark; every result is kept."))
        for each in await asyncio.to_thread(menu, self.app.status, self.app.spec):
            self._benchmarks[each.id] = each
            self._menu.add_option(Option(one_line(each.title), id=each.id))
        self._menu.action_first()
        await self._load()

    def on_resize(self) -> None:
        self.set_class(self.size.width < NARROW, "-narrow")
        self._draw_history()

    async def on_unmount(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
        if self._ledger is not None:
            self._ledger.close()

    async def _load(self) -> None:
        """Read the ledger, away from the loop."""
        try:
            if self._ledger is None:
                from app.bench.ledger import Ledger

                self._ledger = await asyncio.to_thread(Ledger)
                if self._ledger.notice:
                    self.notify(self._ledger.notice, severity="warning", markup=False)
            from app.bench.history import history

            ledger = self._ledger
            points = await asyncio.to_thread(lambda: history(ledger.runs()))
        except BridgeError as error:
            self._say(str(error), "$error")
            return
        self._points = {str(point.run.id): point for point in points}
        self._draw_history()

    # What is shown

    @property
    def _chosen(self) -> "Benchmark | None":
        option = self._menu.highlighted_option
        return self._benchmarks.get(option.id or "") if option else None

    def _history(self) -> "list[Point]":
        """Runs of the kind of benchmark under the cursor, oldest first."""
        chosen = self._chosen
        if chosen is None:
            return []
        like = (p for p in self._points.values() if p.run.kind == chosen.kind)
        return [p for p in like if _is_of(p, chosen)]

    @on(OptionList.OptionHighlighted, "#menu")
    def _draw_history(self) -> None:
        chosen = self._chosen
        if chosen is None or not self.is_running:
            return
        self._about.update(Content(chosen.about))
        points = self._history()
        self._runs.clear_options()
        for point in reversed(points):
            self._runs.add_option(Option(self._row(point), id=str(point.run.id)))
        self._runs.display = bool(points)
        if points:
            self._runs.highlighted, self._compared_at = 0, None
            self._show(points[-1])  # at once: the event of the bar comes later
            like = [p for p in points if p.run.identity == points[-1].run.identity]
            self.run_worker(self._draw_plot(like), group="bench-plot", exclusive=True)
        else:
            self._plot.update("")
            self._result.update(_("Nothing was measured yet."))

    async def _draw_plot(self, points: "list[Point]") -> None:
        from app.bench.plot import plot

        width = max(0, self._plot.container_size.width - 2)
        drawn = await asyncio.to_thread(
            plot, points, width, PLOT_ROWS, ascii_only=self.app.has_class("-ascii")
        )
        self._plot.update(Content(drawn))

    def _row(self, point: "Point") -> Content:
        from app.bench.export import stamp

        mark = "*" if str(point.run.id) in self._marked else " "
        value = "–" if point.value is None else f"{point.value:.2f}"
        on = [name for name, is_on in (point.run.setup.get("switches") or {}).items() if is_on]
        head = f"{mark} #{point.run.id:<4} {stamp(point.run.started_at)} {value:>8}  "
        switches = one_line(", ".join(on)) or _("no switch on")
        slower = f"  {_('slower:')} {point.regression}" if point.regression else ""
        return Content.assemble((head, ""), (switches, "$muted"), (slower, "$warning"))

    @on(OptionList.OptionHighlighted, "#runs")
    def _show_run(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id != self._compared_at and (
            point := self._points.get(event.option_id or "")
        ):
            self._compared_at = None
            self._show(point)

    def _show(self, point: "Point") -> None:
        from app.bench.export import TEXTS

        run = point.run
        text = TEXTS[run.kind](run.result) if run.result and run.kind in TEXTS else ""
        self._result.update(Content(plain(text)))

    def _say(self, text: str, style: str = "$muted") -> None:
        self._now.update(Content.assemble((one_line(text), style)))

    # Running

    @property
    def is_measuring(self) -> bool:
        return self._worker is not None and self._worker.is_running

    @on(OptionList.OptionSelected, "#menu")
    def _run(self) -> None:
        chosen = self._chosen
        if chosen is None or self._ledger is None:
            return
        if self.is_measuring:
            self.notify(_("One benchmark at a time: S stops the one that runs."))
        elif self.app.engine.endpoint is None:
            self.notify(_("The engine is not ready; F5 starts it."), severity="warning")
        else:
            self._worker = self.run_worker(self._measure(chosen), group="bench")
            self.refresh_bindings()

    async def _measure(self, chosen: "Benchmark") -> None:
        ledger = self._ledger
        assert ledger is not None
        try:
            result: dict[str, Any] = await chosen.run(self.app.engine, ledger, self._step)
        except asyncio.CancelledError:
            goes_on = chosen.kind == "gsm8k"
            self._say(
                _("Stopped; Enter goes on with the next question.")
                if goes_on
                else _("Stopped; an unfinished run is not shown.")
            )
            raise
        except BridgeError as error:
            self._say(str(error), "$error")
            return
        finally:
            self.call_later(self.refresh_bindings)
        self._say(result.get("sentence") or _("Done: {title}.").format(title=chosen.title))
        await self._load()

    def _step(self, step: "Step") -> None:
        """Progress; comes on the loop, at each step of a run."""
        parts: list[Content | str] = []
        if step.total:
            parts += [meter(step.done / step.total, BAR, self.app.glyphs), " "]
            parts.append(f"{step.done}/{step.total} ")
        parts.append(one_line(step.title))
        if step.eta_s:
            parts.append(_(" · {time} left").format(time=figures.seconds(step.eta_s)))
        if step.figure:
            parts.append(f" · {one_line(step.figure)}")
        self._now.update(Content.assemble(*parts))

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "stop":
                return self.is_measuring
            case "compare":
                return len(self._marked) == 2
            case "mark" | "export":
                return bool(self._points)
            case _:
                return True

    def action_back(self) -> None:
        """Stop what runs, else back to the conversation."""
        if self.is_measuring:
            self.action_stop()
        else:
            self.app.pop_screen()

    def action_stop(self) -> None:
        """Stop the benchmark that runs."""
        if self._worker is not None:
            self._worker.cancel()

    def action_mark(self) -> None:
        """Mark the run under the cursor, to be compared with another."""
        option = self._runs.highlighted_option
        if option is None or option.id is None:
            return
        if option.id in self._marked:
            self._marked.remove(option.id)
        else:
            self._marked = [*self._marked, option.id][-2:]
        for at in range(self._runs.option_count):
            each = self._runs.get_option_at_index(at)
            self._runs.replace_option_prompt_at_index(at, self._row(self._points[each.id or ""]))
        self.refresh_bindings()

    def action_compare(self) -> None:
        """Show the two marked runs side by side."""
        from app.bench.compare import compare_text

        option = self._runs.highlighted_option
        self._compared_at = option.id if option else None
        first, second = (self._points[each].run for each in self._marked)
        self._result.update(Content(plain(compare_text(first, second))))

    async def action_export(self) -> None:
        """Write all runs as a report and as CSV beside the ledger."""
        from app.bench import export
        from engine_bridge import files, paths

        points = list(self._points.values())

        def write() -> str:
            folder = paths.data_dir()
            files.replace(folder / "benchmarks.md", export.as_markdown(points))
            files.replace(folder / "benchmarks.csv", export.as_csv(points))
            return str(folder)

        try:
            folder = await asyncio.to_thread(write)
        except (OSError, BridgeError) as error:
            self._say(str(error), "$error")
            return
        self.notify(
            _("benchmarks.md and benchmarks.csv are in {folder}.").format(folder=folder),
            markup=False,
        )


def _is_of(point: "Point", chosen: "Benchmark") -> bool:
    """Whether a run was one of this benchmark: same lengths, same switch, same task."""
    settings = point.run.settings
    parts = chosen.id.split("-")
    match chosen.kind:
        case "synthetic":
            return [str(settings.get(n)) for n in ("input_tokens", "output_tokens")] == parts[1:]
        case "ab":
            return chosen.id == f"ab-{settings.get('toggle')}-{settings.get('task')}"
        case "lossless":
            return chosen.id == f"lossless-{settings.get('toggle')}"
        case _:
            return True
