"""What every key does."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

Section = tuple[str, tuple[tuple[str, str], ...]]
ENGINE_SCREEN: Section = (
    "Engine screen",
    (
        ("1-9", "switch the optimisation with this number"),
        ("PageUp, PageDown", "scroll the details; in the log, the log"),
        ("Tab, Shift+Tab", "to a switch, to the log"),
        ("Enter, r, s", "start, restart, stop the engine"),
        ("v", "prove every optimisation again"),
        ("Esc, F2, q", "back"),
    ),
)
KEYS: tuple[Section, ...] = (
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
            ("F2", "engine: switches, phases, proofs, log"),
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

    def __init__(self, engine_first: bool = False) -> None:
        """`engine_first` begins with the keys of the engine screen."""
        super().__init__()
        self._sections = (ENGINE_SCREEN, *KEYS) if engine_first else KEYS

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            for title, keys in self._sections:
                yield Static(title, classes="title")
                rows = [
                    Content.assemble((f"{key:<{COLUMN}}", "$accent"), what) for key, what in keys
                ]
                yield Static(Content("\n").join(rows), classes="keys")

    def on_mount(self) -> None:
        self.query_one("#page").focus()
