"""What every key does."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Writing",
        (
            ("Enter", "send"),
            ("Ctrl+J, Shift+Enter", "new line"),
            ("Up, Down", "earlier messages"),
            ("Ctrl+U, Ctrl+K", "delete to the line's start, end"),
            ("Ctrl+Z", "undo"),
        ),
    ),
    (
        "Replies",
        (
            ("Esc", "stop; or take a waiting message back"),
            ("Ctrl+R", "ask again"),
            ("Ctrl+Y", "copy the selection, else the last reply"),
            ("Ctrl+T", "open or fold the thinking"),
            ("Ctrl+N", "new chat"),
        ),
    ),
    (
        "Looking around",
        (
            ("PageUp, PageDown", "scroll by a page"),
            ("Ctrl+Up, Ctrl+Down", "scroll by a row"),
            ("Ctrl+Home, Ctrl+End", "to the beginning, to the end"),
            ("Tab, Shift+Tab", "to the next, the previous part"),
            ("Mouse", "wheel scrolls, drag selects"),
        ),
    ),
    (
        "Engine",
        (
            ("F2", "engine: phases, proofs, log"),
            ("F3", "show or hide the panel"),
            ("F5", "start the engine"),
            ("F6", "do what helps a failed engine, where a switch does"),
            ("Space, click", "switch the optimisation under the cursor"),
            ("i", "its proof"),
        ),
    ),
    (
        "App",
        (
            ("Ctrl+P", "all commands: themes, keep the engine, verify …"),
            ("F1", "this page"),
            ("Ctrl+Q, twice Ctrl+C", "quit"),
        ),
    ),
)
COLUMN = 22


class KeysScreen(ModalScreen[None]):
    """A page of keys over the present screen."""

    CSS_PATH = "keys.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter", "dismiss", "Back"),
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            for title, keys in KEYS:
                yield Static(title, classes="title")
                rows = [
                    Content.assemble((f"{key:<{COLUMN}}", "$accent"), what) for key, what in keys
                ]
                yield Static(Content("\n").join(rows), classes="keys")

    def on_mount(self) -> None:
        self.query_one("#page").focus()
