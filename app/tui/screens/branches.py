"""The tree of a conversation: every version of every message, and which of them are active."""

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from app.core.chat.conversation import Conversation
from app.core.chat.tree import Turn
from app.core.i18n import _
from app.tui.glyphs import Glyphs
from app.tui.plain import one_line
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from app.tui.app import LingChat

PREVIEW = 600


class BranchesScreen(Screen[None]):
    """Enter shows the branch of the message under the cursor."""

    CSS_PATH = "branches.tcss"
    AUTO_FOCUS = "#tree"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+b,q", "back", _("Back"), id="branches.back"),
    ]

    app: "LingChat"

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[str, Turn] = {}
        self._tree = OptionList(id="tree", markup=False)
        self._text = Static(id="text")

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble((_("Branches"), "bold $primary")), id="title")
        yield self._tree
        yield self._text
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        talk = self.app.conversation
        self._turns = {turn.id: turn for turn in (*talk.turns, *talk.others)}
        rows = tree_rows(talk, self.app.glyphs)
        self._tree.add_options([Option(row, id=turn.id) for turn, row in rows])
        last = talk.turns[-1].id if talk.turns else ""
        places = [n for n, (turn, _row) in enumerate(rows) if turn.id == last]
        self._tree.highlighted = places[0] if places else None

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        turn = self._turns[event.option_id or ""]
        self._text.update(Content(one_line(turn.text[:PREVIEW]) or _("nothing was said")))

    @on(OptionList.OptionSelected)
    def _show(self, event: OptionList.OptionSelected) -> None:
        try:
            self.app.chat.talk.show_branch(self._turns[event.option_id or ""])
        except BridgeError as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        self.app.pop_screen()

    def action_back(self) -> None:
        """Back to the conversation."""
        self.app.pop_screen()


def tree_rows(talk: Conversation, glyphs: Glyphs) -> list[tuple[Turn, Content]]:
    """Each turn with its row: indented only where messages have several versions, so that a long
    conversation without branches stays a straight list."""
    after: dict[str, list[Turn]] = defaultdict(list)
    known = {turn.id for turn in (*talk.turns, *talk.others)}
    for turn in sorted((*talk.turns, *talk.others), key=lambda each: each.created):
        after[turn.parent if turn.parent in known else ""].append(turn)
    active = {turn.id for turn in talk.turns}
    rows: list[tuple[Turn, Content]] = []
    waiting = [(turn, 0) for turn in reversed(after[""])]
    deeper = int(len(waiting) > 1)
    waiting = [(turn, deeper) for turn, _depth in waiting]
    while waiting:
        turn, depth = waiting.pop()
        rows.append((turn, _row(turn, depth, turn.id in active, glyphs)))
        next_ones = after[turn.id]
        depth += len(next_ones) > 1
        waiting += [(each, depth) for each in reversed(next_ones)]
    return rows


def _row(turn: Turn, depth: int, is_active: bool, glyphs: Glyphs) -> Content:
    sign = glyphs.on if is_active else glyphs.off
    who = _("You") if turn.role == "user" else one_line(turn.origin.model if turn.origin else "")
    text = one_line(turn.text[:200])
    style = "" if is_active else "auto 60%"
    return Content.assemble(
        "  " * depth, (f"{sign} ", "$accent"), (who or _("Model"), "bold"), "  ", (text, style)
    )
