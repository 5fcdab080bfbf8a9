"""Tells thinking from answer in a stream of text, and mends what chunk borders cut apart."""

OPEN, CLOSE = "<think>", "</think>"


class ThinkingSplitter:
    """Splits `<think>…</think>answer` as it streams in.

    `<think>` opens only at the very start, so an answer may speak of the tag. `</think>` never
    reaches the answer: chat templates that open the tag in the prompt leave it bare.
    """

    def __init__(self) -> None:
        self._held = ""
        self._at_start = True
        self._thinking = False

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The parts that are certain by now, as (is thinking, text) pairs."""
        self._held += text
        if self._at_start:
            head = self._held.lstrip()
            if OPEN.startswith(head[: len(OPEN)]) and len(head) < len(OPEN):
                return []
            self._at_start = False
            if head.startswith(OPEN):
                self._thinking = True
                self._held = head[len(OPEN) :]
        parts: list[tuple[bool, str]] = []
        while CLOSE in self._held:
            before, _, self._held = self._held.partition(CLOSE)
            parts.append((self._thinking, before))
            self._thinking = False
        keep = _overlap(self._held, CLOSE)
        parts.append((self._thinking, self._held[: len(self._held) - keep]))
        self._held = self._held[len(self._held) - keep :]
        return [part for part in parts if part[1]]

    def end(self) -> list[tuple[bool, str]]:
        """What was held back, once nothing more can come."""
        held, self._held = self._held, ""
        return [(self._thinking, held)] if held else []


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)


class SurrogateMender:
    """Joins UTF-16 surrogates that JSON escapes carried in two chunks; a lone one becomes U+FFFD.

    Python keeps a lone surrogate in a str, and then can neither print nor store it.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        text, self._held = self._held + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff" and not last:
            text, self._held = text[:-1], text[-1]
        if text.isascii():
            return text
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
