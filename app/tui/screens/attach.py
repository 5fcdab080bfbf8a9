"""What to attach: a path, completed as it is typed, or an address; and what a folder holds."""

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label, OptionList
from textual.widgets.option_list import Option

from app.core.i18n import _, ngettext
from app.tui.bar import move
from app.tui.composer.offers import Offer, Offers, Wanted
from app.tui.plain import one_line
from engine_bridge.models.progress import size_text

if TYPE_CHECKING:
    from app.core.documents.folder import FolderPreview
    from app.tui.app import LingChat

BYTES_PER_TOKEN = 3.5
"""For a first look at files nobody has read yet."""
MOST_SHOWN = 500


class AttachScreen(ModalScreen[str]):
    """Asks for a path or an address; empty where the user changed their mind."""

    CSS_PATH = "attach.tcss"
    AUTO_FOCUS = "#source"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", _("Back"), id="attach.cancel"),
        Binding("tab", "complete", _("Complete"), id="attach.complete", priority=True),
        Binding("down", "move(1)", _("Next"), show=False, id="attach.down", priority=True),
        Binding("up", "move(-1)", _("Previous"), show=False, id="attach.up", priority=True),
    ]

    def __init__(self, offers: Offers) -> None:
        super().__init__()
        self._offers = offers
        self._source = Input(placeholder=_("path, or https://…"), id="source", compact=True)
        self._list = OptionList(id="found", compact=True, markup=False)
        self._found: list[Offer] = []
        self._is_chosen = False
        """Whether the user moved to one of the offers."""

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Label(_("Attach a file, a folder, or a web page"), classes="title")
            yield self._source
            yield self._list
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._list.can_focus = False
        self._look("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._look(event.value)

    def _look(self, text: str) -> None:
        self.run_worker(self._fill(text), group="offers", exclusive=True)

    async def _fill(self, text: str) -> None:
        self._found = await self._offers.find(Wanted("path", text, 0))
        self._is_chosen = False
        self._list.set_options(Option(one_line(offer.text)) for offer in self._found)
        self._list.highlighted = 0 if self._found else None

    @property
    def _chosen(self) -> Offer | None:
        at = self._list.highlighted
        return self._found[at] if at is not None and at < len(self._found) else None

    def action_move(self, step: int) -> None:
        """Move through the offers."""
        if self._found:
            move(self._list, step)
            self._is_chosen = True

    def action_complete(self) -> None:
        """Put the offer in the input."""
        if offer := self._chosen:
            self._source.value = offer.text
            self._source.cursor_position = len(offer.text)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        typed = event.value.strip()
        offer = self._chosen
        if offer and (self._is_chosen or (typed and not typed.startswith(("http", "/", "~", ".")))):
            typed = offer.text
        self.dismiss(typed)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._found[event.option_index].text)

    def action_cancel(self) -> None:
        """Attach nothing."""
        self.dismiss("")


class FolderScreen(ModalScreen[bool]):
    """What of a folder goes in; whether the user wants it."""

    CSS_PATH = "attach.tcss"
    AUTO_FOCUS = "#files"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "answer(True)", _("Attach"), id="folder.attach", priority=True),
        Binding("escape", "answer(False)", _("Back"), id="folder.cancel"),
    ]

    app: "LingChat"

    def __init__(self, preview: "FolderPreview") -> None:
        super().__init__()
        self._preview = preview

    def on_key(self, event: events.Key) -> None:
        """Who types while this opens, as at a start with a folder, types on in the composer."""
        if event.is_printable and event.character:
            event.stop()
            self.app.chat.composer.insert(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """The same of what is pasted."""
        event.stop()
        self.app.chat.composer.post_message(events.Paste(event.text))

    def compose(self) -> ComposeResult:
        preview = self._preview
        by = _("as git knows it") if preview.repository else _("without hidden files")
        with Vertical(id="page"):
            yield Label(Content(f"{one_line(str(preview.root))}/"), classes="title")
            yield Label(Content(_counts(preview)))
            yield Label(Content(by), classes="quiet")
            if preview.left_out:
                yield Label(Content(_left_out(preview)), classes="quiet")
            yield OptionList(
                *(
                    Option(Content.assemble(f"{size_text(e.size):>9}  ", one_line(e.path)))
                    for e in sorted(preview.files, key=lambda e: -e.size)[:MOST_SHOWN]
                ),
                id="files",
                compact=True,
            )
            yield Footer(show_command_palette=False, compact=True)

    def action_answer(self, yes: bool) -> None:
        """Attach it, or not."""
        self.dismiss(yes)


def _counts(preview: "FolderPreview") -> str:
    n = len(preview.files)
    files = ngettext("{n:,} file", "{n:,} files", n).format(n=n)
    tokens = round(preview.size / BYTES_PER_TOKEN)
    return _("{files}, {size}, about {tokens:,} tokens").format(
        files=files, size=size_text(preview.size), tokens=tokens
    )


def _left_out(preview: "FolderPreview") -> str:
    reasons = ", ".join(f"{count:,} {why}" for why, count in preview.reasons.most_common())
    return _("Left out: {reasons}").format(reasons=reasons)
