"""Text that a terminal cannot be commanded with: what models and documents say is only text."""

import re

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC …
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # other escapes
)
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x1b\x80-\x9f]*\x1b?"
    r"|\x1b[ -/]*)\Z"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 but tab and line feed, DEL, C1, and what reorders text (bidirectional overrides)."""
HOLD = 4096
"""Characters of an unfinished sequence that are held; a longer one shows as text."""


def is_plain(text: str) -> bool:
    """Whether nothing in the text, which holds no part of a sequence begun before it, is taken out
    by `plain`."""
    return not _CONTROL.search(text)


def plain(text: str) -> str:
    """The text without escape sequences, control characters and direction overrides."""
    if is_plain(text):
        return text  # every sequence starts with one of these
    cleaner = Plain()
    return cleaner.feed(text) + cleaner.end()


class Plain:
    """`plain` for text that comes in pieces: a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        text, self._held = self._held + text, ""
        unfinished = _UNFINISHED.search(text, max(0, len(text) - HOLD))
        if unfinished:
            text, self._held = text[: unfinished.start()], unfinished[0]
        return _CONTROL.sub("", _SEQUENCE.sub("", text))

    def end(self) -> str:
        """What was held back, once nothing more can come."""
        held, self._held = self._held, ""
        return _CONTROL.sub("", held)
