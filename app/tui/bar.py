"""Moving the bar of a list from outside it, while the keys go to a text box beside it."""

from textual.widgets import OptionList


def move(options: OptionList, step: int) -> None:
    """One option on (`step` above 0) or back, around the ends."""
    options.action_cursor_down() if step > 0 else options.action_cursor_up()
