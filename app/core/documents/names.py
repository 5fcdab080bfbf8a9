"""What a file's name and first bytes say before anything is parsed."""

import re
from pathlib import Path

ZIP = b"PK\x03\x04"
CFB = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
RTF = b"{\\rtf"
_HTML_SUFFIXES = {".html", ".htm", ".xhtml"}
_SUFFIXES = _HTML_SUFFIXES | {".eml", ".mbox", ".ipynb", ".srt", ".vtt", ".ass", ".ssa"}
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html)\b", re.IGNORECASE)


def needs_worker(head: bytes, title: str) -> bool:
    """Whether a file is parsed in a process of its own, rather than only decoded.

    `head` are its first bytes (1 KB or more).
    """
    return (
        is_pdf(head, title)
        or head.startswith((ZIP, CFB, RTF))
        or Path(title).suffix.lower() in _SUFFIXES
        or looks_like_html(head, title)
    )


def looks_like_html(head: bytes, title: str) -> bool:
    """By its name, or where the name says nothing by its first tag."""
    suffix = Path(title).suffix.lower()
    named = suffix in _HTML_SUFFIXES
    return named or (not suffix and _HTML.match(head.removeprefix(b"\xef\xbb\xbf")) is not None)


def is_pdf(head: bytes, title: str) -> bool:
    """By its first letters; a file of that name may have something before them."""
    named = Path(title).suffix.lower() == ".pdf"
    return head.lstrip().startswith(b"%PDF-") or (named and b"%PDF-" in head[:1024])
