"""What a transcript consists of: what the user said, what the model replied, notes of the app."""

import time
from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style

from app.core.chat.tree import Turn
from app.core.figures import reply_line, seconds, thought_line
from app.core.i18n import _
from app.tui.plain import plain
from app.tui.transcript.lines import Line, Run, wrap
from app.tui.transcript.paint import PROSE
from app.tui.transcript.stack import Block, Look
from app.tui.transcript.stream import MARGIN, Stream
from engine_bridge.chat.events import Timings

PATIENCE_S = 2.0
"""Seconds of waiting after which a clock shows that time goes by."""


class Entry:
    """Some blocks of the transcript that belong together."""

    is_folded = False
    """True while one block stands for all of a text that nobody has looked at yet."""
    node: Turn | None = None
    """What it shows of the conversation."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.version = (1, 1)
        """Which of how many versions of this message it is."""
        self._changed = 0

    @property
    def is_settled(self) -> bool:
        """Whether it stays as it is unless the user does something."""
        return True

    def unfold(self) -> None:
        """Lay out what is_folded stood for."""

    def fold(self) -> bool:
        """Let one block stand for it again; False for what is better left laid out."""
        return False

    def act(self, action: str) -> bool:
        """A row with this action was clicked; True if that changed something."""
        return False

    def refresh(self) -> int:
        """Bring `blocks` up to date; returns the first that changed since the last time."""
        changed, self._changed = self._changed, len(self.blocks)
        return changed


def version_text(version: tuple[int, int], look: Look) -> str:
    """Which version this is and how to see the others; empty where there is one."""
    number, count = version
    return f"{look.glyphs.branch} {number}/{count}" if count > 1 else ""


class UserEntry(Entry):
    """A message of the user's. `waits` says what for, while it is not sent yet."""

    def __init__(self, text: str, attachments: Sequence[str] = (), waits: str = "") -> None:
        super().__init__()
        self.text = text
        self.attachments = tuple(attachments)
        self.waits = waits
        self.replaces: Turn | None = None
        """The question that it puts in other words."""
        self.thinking: bool | None = None
        """Whether its answer is thought about; None takes the session's setting."""
        self.blocks = [Block(self._paint, self, text)]

    @property
    def is_settled(self) -> bool:
        return not self.waits

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
        for text in filter(None, (version_text(self.version, look), self.waits)):
            note = [(text, quiet + Style(italic=True))]
            lines += wrap(note, width - 1, bar, bar, gutter=2 + len(text))
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


class Reply(Entry):
    """A reply from its request to its figures."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._since = now()
        self._answer = Stream(self)
        self._thinking = Stream(self, quiet=True)
        self._fold = Block(self._paint_fold, self)
        self._tail = Block(self._paint_tail, self)
        self._stored: tuple[str, str] | None = None
        """Thinking and answer of a reply that is laid out when it comes into view."""
        self._thought_since: float | None = None
        self._thought_s: float | None = None
        self.thinking_tokens: int | None = None
        """Of a thought that still grows."""
        self.thought: Timings | None = None
        """Figures that tell of a thought that is over; ours until they are there."""
        self.is_open = False
        self.is_done = False
        self.activity = ""
        """What the engine does while nothing has arrived: "reading the prompt · 78%"."""
        self.timings: Timings | None = None
        self.reason = self.cure = ""
        self.is_bad = False
        self._notes: tuple[tuple[str, bool], ...] = ()
        """What is to be known of its text, and whether that is a fault."""
        self.blocks = [self._tail]
        self._solid = self._taken = 0
        """How many of `blocks`, and of the answer's settled ones among them, stay as they are."""

    @classmethod
    def stored(cls, text: str, thinking: str = "", timings: Timings | None = None) -> "Reply":
        """A reply of long ago: its text is laid out when it comes into view."""
        reply = cls()
        reply.is_done = True
        reply.timings = reply.thought = timings
        reply._stored = (thinking, text)
        reply.blocks = [Block(reply._paint_room, reply, length=len(text) + 60)]
        return reply

    def fold(self) -> bool:
        if self.is_folded or not self.is_done or self.is_open:
            return False
        rows = sum(block.height for block in self.blocks)
        self._stored = (self.thinking, self.text)
        self._answer, self._thinking = Stream(self), Stream(self, quiet=True)
        self.blocks = [Block(self._paint_room, self, rows=rows)]
        self._solid = self._taken = 0
        self._changed = len(self.blocks)
        return True

    @property
    def is_folded(self) -> bool:  # type: ignore[override]
        return self._stored is not None

    def unfold(self) -> None:
        if self._stored is None:
            return
        (thinking, text), self._stored = self._stored, None
        self._thinking.feed(thinking)
        self._answer.feed(text)
        self._thinking.finish()
        self._answer.finish()
        self._fold.written = self._thinking.text
        self._rebuild()
        self.refresh()

    @property
    def is_settled(self) -> bool:
        return self.is_done

    @property
    def text(self) -> str:
        """The answer so far, without the thinking."""
        return self._stored[1] if self._stored else self._answer.text

    @property
    def thinking(self) -> str:
        return self._stored[0] if self._stored else self._thinking.text

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
        reflowed = self._answer.feed(text)
        self._changed = 0 if reflowed else min(self._changed, self._solid)

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
        if timings is not None and timings.thought_s is not None:
            self.thought = timings
        self.activity, self.is_done = "", True
        self._tail.invalidate()
        self._rebuild()

    def set_notes(self, notes: Sequence[tuple[str, bool]]) -> None:
        """Say something of the text below it; with True, that it is at fault."""
        self._notes = tuple(notes)
        self._tail.invalidate()
        self._changed = min(self._changed, self._solid)

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
        if self._stored is not None:
            return super().refresh()
        if self._answer.look_at_live():
            self._changed = 0
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
        if self._answer.live is not None:
            self.blocks.append(self._answer.live)
        self.blocks.append(self._tail)
        self._changed = len(self.blocks)
        return changed

    def _head(self) -> list[Block]:
        if not self._thinking.text:
            return []
        if not self.is_open:
            return [self._fold]
        self._thinking.look_at_live()
        live = [self._thinking.live] if self._thinking.live is not None else []
        return [self._fold, *self._thinking.settled, *live]

    def _rebuild(self) -> None:
        """Blocks above the answer's end change."""
        self._fold.invalidate()
        self._changed = 0

    def _end_thinking(self) -> None:
        if self._thinking.text and self._thought_s is None and self._thought_since is not None:
            self._thought_s = self._now() - self._thought_since
            self._thinking.finish()
            self._fold.written = self._thinking.text
            self._rebuild()

    def _paint_room(self, look: Look) -> list[Line]:
        """The room it will take, until it is in view."""
        return [Line([])] * self.blocks[0].height

    def _paint_fold(self, look: Look) -> list[Line]:
        sign = look.glyphs.unfolded if self.is_open else look.glyphs.folded
        if self._thought_s is None and self._thought_since is not None:
            took = seconds(self._now() - self._thought_since)
            text = _("thinking for {time}").format(time=took)
            if self.thinking_tokens:
                text += f" {look.glyphs.dot} {self.thinking_tokens:,} tok"
        else:
            ours = Timings(thought_s=self._thought_s, thought_tokens=self.thinking_tokens)
            text = thought_line(self.thought or ours, look.glyphs.dot)
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
        lines += [Line([])] if self._notes else []
        for text, is_bad in self._notes:
            sign = f"{look.glyphs.warn} " if is_bad else ""
            style = look.palette.caution if is_bad else look.palette.muted
            runs = [(f"{sign}{plain(text)}", style)]
            lines += wrap(runs, room, lead, [(" " * (MARGIN + len(sign)), style)], MARGIN)
        figures = reply_line(self.timings, look.glyphs.dot) if self.timings else ""
        which = version_text(self.version, look)
        if figures := f" {look.glyphs.dot} ".join(filter(None, (which, figures))):
            style = look.palette.muted
            gutter = MARGIN + len(figures)  # figures are not part of what was said
            lines += [Line([]), *wrap([(figures, style)], look.width, lead, lead, gutter)]
        return lines
