"""A text of any length in which each line tells its own number."""

from app.core.documents import Document, document_from_bytes

LINE = "Clause {n}: the tenant pays the rent on the first day of the month.\n"


def lease(lines: int, title: str = "lease.txt") -> Document:
    text = "".join(LINE.format(n=n) for n in range(1, lines + 1))
    return document_from_bytes(text.encode(), title)
