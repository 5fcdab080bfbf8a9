"""The list of offers over the box."""

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Offset
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.bar import move
from app.tui.composer.offers import Offer
from app.tui.plain import one_line

ROWS = 10


class PopUp(OptionList, can_focus=False):
    """Shows offers at a place of the screen; the box moves through them."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, markup=False, compact=True)
        self._offers: tuple[Offer, ...] = ()
        self.display = False

    @property
    def is_open(self) -> bool:
        return bool(self._offers)

    @property
    def chosen(self) -> Offer | None:
        """The offer under the bar."""
        at = self.highlighted
        return self._offers[at] if at is not None and at < len(self._offers) else None

    def show(self, offers: Sequence[Offer], at: Offset) -> None:
        """Show these offers above this place of the screen; none closes the list."""
        if tuple(offers) != self._offers:
            self._offers = tuple(offers)
            widest = max((len(one_line(each.text)) for each in offers), default=0)
            self.set_options(Option(_row(each, widest)) for each in offers)
            self.highlighted = 0 if offers else None
        self.absolute_offset = at - Offset(0, min(ROWS, len(offers)))
        self.display = bool(offers)

    def close(self) -> None:
        """Show nothing."""
        self.show((), Offset())

    def move(self, step: int) -> None:
        """Move the bar, around the ends."""
        if self._offers:
            move(self, step)


def _row(offer: Offer, widest: int) -> Content:
    text = one_line(offer.text)
    hint = f"  {' ' * (widest - len(text))}{offer.hint}" if offer.hint else ""
    return Content.assemble(text, (hint, "$muted"))
