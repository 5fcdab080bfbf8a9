"""What a transcript consists of: what the user said, what the model replied, notes of the app."""

import time
from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style

from app.core.figures import reply_line, seconds
from app.tui.plain import Plain, plain
from app.tui.transcript.lines import Line, Run, wrap
from app.tui.transcript.paint import PROSE, Painter
from app.tui.transcript.split import Part, Splitter
from app.tui.transcript.stack import Block, Look
from engine_bridge.chat.events import Timings

MARGIN = 2
PATIENCE_S = 2.0
"""Seconds of waiting after which a clock shows that time goes by."""


class Entry:
    """Some blocks of the transcript that belong together."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._changed = 0

    def act(self, action: str) -> bool:
        """A row with this action was clicked; True if that changed something."""
        return False

    def refresh(self) -> int:
        """Bring `blocks` up to date; returns the first that changed since the last time."""
        changed, self._changed = self._changed, len(self.blocks)
        return changed


class UserEntry(Entry):
    """A message of the user's. `waits` says what for, while it is not sent yet."""

    def __init__(self, text: str, attachments: Sequence[str] = (), waits: str = "") -> None:
        super().__init__()
        self.text = text
        self.attachments = tuple(attachments)
        self.waits = waits
        self.blocks = [Block(self._paint, self, len(text))]

    def set_waits(self, waits: str) -> None:
        """Show what it waits for; empty once it is sent."""
        if waits != self.waits:
            self.waits = waits
            self.blocks[0].invalidate()
            self._changed = 0

    def _paint(self, look: Look) -> list[Line]:
        palette = look.palette
        width = min(look.width, PROSE + 2 * MARGIN)
        bar: list[Run] = [(f"{look.glyphs.bar} ", palette.user_bar)]
        quiet = palette.user + Style(color=palette.block_label.color)
        runs: list[Run] = [(plain(self.text).expandtabs(4).strip("\n"), palette.user)]
        lines = wrap(runs, width - 1, bar, bar, gutter=2)
        for title in self.attachments:
            note = [(f"{look.glyphs.document} {plain(title)}", quiet)]
            lines += wrap(note, width - 1, bar, bar, gutter=2)
        if self.waits:
            note = [(self.waits, quiet + Style(italic=True))]
            lines += wrap(note, width - 1, bar, bar, gutter=2)
        for line in lines:
            line.fill(width, palette.user)
        return [Line([]), *lines]


class NoteEntry(Entry):
    """A sentence of the app's: what went wrong and what helps."""

    def __init__(self, text: str, cure: str = "", is_bad: bool = False) -> None:
        super().__init__()
        self.text, self.cure, self.is_bad = text, cure, is_bad
        self.blocks = [Block(self._paint, self)]

    def _paint(self, look: Look) -> list[Line]:
        return [Line([]), *_note(self.text, self.cure, self.is_bad, look)]


def _note(text: str, cure: str, is_bad: bool, look: Look) -> list[Line]:
    style = look.palette.bad if is_bad else look.palette.muted
    sign = f"{look.glyphs.warn} " if is_bad else ""
    runs: list[Run] = [(plain(text), style), (" " if cure else "", style)]
    runs.append((plain(cure), look.palette.text))
    lead = " " * MARGIN
    rest = [(lead + " " * len(sign), style)]
    return wrap(runs, min(look.width, PROSE), [(lead + sign, style)], rest, gutter=MARGIN)


class _Stream:
    """Markdown that arrives: settled blocks, painted once, and a live one."""

    def __init__(self, owner: Entry, quiet: bool = False) -> None:
        self._splitter = Splitter()
        self._plain = Plain()
        self._owner = owner
        self._quiet = quiet
        self._dirty = False
        self.text = ""
        self.settled: list[Block] = []
        self.live: Block | None = None

    def feed(self, text: str) -> None:
        self._add(self._plain.feed(text))

    def _add(self, text: str) -> None:
        self.text += text
        self.settled += [self._block([part]) for part in self._splitter.feed(text)]
        self._dirty = True

    def finish(self) -> None:
        self._add(self._plain.end())
        self.settled += [self._block([part]) for part in self._splitter.finish()]
        self.live, self._dirty = None, False
        if self._splitter.references:  # a link may be defined after its use
            for block in self.settled:
                block.invalidate()

    def live_blocks(self) -> list[Block]:
        """The rest that may still change, as it looks now."""
        if self._dirty:
            parts = self._splitter.live()
            self.live = self._block(parts) if parts else None
            self._dirty = False
        return [self.live] if self.live else []

    def _block(self, parts: Sequence[Part]) -> Block:
        def paint(look: Look) -> list[Line]:
            palette = look.palette.quiet() if self._quiet else look.palette
            room = max(8, look.width - 2 * MARGIN)
            painter = Painter(room, palette, look.glyphs, self._splitter.references)
            lines = [line for part in parts for line in painter.part(part)]
            for line in lines:
                line.indent(" " * MARGIN, palette.text)
            return lines

        return Block(paint, self._owner, sum(len(part.source) for part in parts))


class Reply(Entry):
    """A reply from its request to its figures."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._since = now()
        self._answer = _Stream(self)
        self._thinking = _Stream(self, quiet=True)
        self._fold = Block(self._paint_fold, self)
        self._tail = Block(self._paint_tail, self)
        self._thought_since: float | None = None
        self._thought_s: float | None = None
        self.thinking_tokens: int | None = None
        self.is_open = False
        self.is_done = False
        self.activity = ""
        """What the engine does while nothing has arrived: "reading the prompt · 78%"."""
        self.timings: Timings | None = None
        self.reason = self.cure = ""
        self.is_bad = False
        self.blocks = [self._tail]
        self._solid = self._taken = 0
        """How many of `blocks`, and of the answer's settled ones among them, stay as they are."""

    @property
    def text(self) -> str:
        """The answer so far, without the thinking."""
        return self._answer.text

    @property
    def thinking(self) -> str:
        return self._thinking.text

    def set_activity(self, text: str) -> None:
        """Show what happens before the first text, in place of it."""
        if text != self.activity:
            self.activity = text
            self._tail.invalidate()
            self._changed = min(self._changed, self._solid)

    def feed_thinking(self, text: str) -> None:
        if self._thought_since is None:
            self._thought_since = self._now()
        self.set_activity("")
        self._thinking.feed(text)
        self._rebuild()

    def feed(self, text: str) -> None:
        """Add answer text. The thinking, if there was any, is over."""
        self._end_thinking()
        self.set_activity("")
        self._answer.feed(text)
        self._changed = min(self._changed, self._solid)

    def finish(
        self,
        timings: Timings | None = None,
        reason: str = "",
        cure: str = "",
        is_bad: bool = True,
    ) -> None:
        """No more will come. With a `reason` the reply is shown as broken off."""
        self._end_thinking()
        self._answer.finish()
        self.timings, self.reason, self.cure, self.is_bad = timings, reason, cure, is_bad
        self.activity, self.is_done = "", True
        self._tail.invalidate()
        self._rebuild()

    def toggle_thinking(self) -> None:
        """Open or fold the thinking."""
        self.is_open = not self.is_open
        self._rebuild()

    def act(self, action: str) -> bool:
        if action != "fold":
            return False
        self.toggle_thinking()
        return True

    def tick(self) -> None:
        """Time went by: the clock of a running thought, or of the wait before it, moves."""
        if self._thinking.text and self._thought_s is None:
            self._rebuild()
        elif self.activity:
            self._tail.invalidate()
            self._changed = min(self._changed, self._solid)

    def refresh(self) -> int:
        changed = min(self._changed, self._solid, len(self.blocks))
        if self._changed >= len(self.blocks) and self.blocks:
            return len(self.blocks)
        if changed < self._solid or not self._solid:
            changed, self._taken = 0, 0
            self.blocks = self._head()
        else:
            del self.blocks[self._solid :]
        self.blocks += self._answer.settled[self._taken :]
        self._taken = len(self._answer.settled)
        self._solid = len(self.blocks)
        self.blocks += self._answer.live_blocks()
        self.blocks.append(self._tail)
        self._changed = len(self.blocks)
        return changed

    def _head(self) -> list[Block]:
        if not self._thinking.text:
            return []
        thoughts = [*self._thinking.settled, *self._thinking.live_blocks()] if self.is_open else []
        return [self._fold, *thoughts]

    def _rebuild(self) -> None:
        """Blocks above the answer's end change."""
        self._fold.invalidate()
        self._changed = 0

    def _end_thinking(self) -> None:
        if self._thinking.text and self._thought_s is None and self._thought_since is not None:
            self._thought_s = self._now() - self._thought_since
            self._thinking.finish()
            self._rebuild()

    def _paint_fold(self, look: Look) -> list[Line]:
        sign = look.glyphs.unfolded if self.is_open else look.glyphs.folded
        if self._thought_s is None and self._thought_since is not None:
            text = f"thinking for {seconds(self._now() - self._thought_since)}"
        else:
            text = f"thought for {seconds(self._thought_s or 0)}"
        if self.thinking_tokens:
            text += f" {look.glyphs.dot} {self.thinking_tokens:,} tok"
        style = look.palette.muted
        line = Line([Segment(f"  {sign} {text}", style)], gutter=MARGIN, action="fold")
        return [Line([]), line]

    def _paint_tail(self, look: Look) -> list[Line]:
        lines: list[Line] = []
        room = min(look.width, PROSE)
        lead = [(" " * MARGIN, look.palette.muted)]
        if self.activity:
            waited = self._now() - self._since
            clock = f" {look.glyphs.dot} {seconds(round(waited))}" if waited >= PATIENCE_S else ""
            runs = [(self.activity + clock, look.palette.muted)]
            lines += [Line([]), *wrap(runs, room, lead, lead)]
        if self.reason:
            lines += [Line([]), *_note(self.reason, self.cure, self.is_bad, look)]
        if self.timings and (figures := reply_line(self.timings, look.glyphs.dot)):
            style = look.palette.muted
            gutter = MARGIN + len(figures)  # figures are not part of what was said
            lines += [Line([]), *wrap([(figures, style)], look.width, lead, lead, gutter)]
        return lines
