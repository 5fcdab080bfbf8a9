"""Bytes of unknown encoding become text."""

import codecs
import re

from engine_bridge.errors import UsageError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY = (
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"RIFF", "a media file"),
    (b"\x1f\x8b", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"\xfd7zXZ", "a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a compressed file"),
    (b"7z\xbc\xaf", "an archive"),
    (b"GGUF", "a model file"),
    (b"\x7fELF", "a program"),
)
_LEGACY = (
    ("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1252", "latin_1"),
    ("cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"),
)
"""Tried in two rounds: Western text would often pass for Central European."""


_SEVERAL_BYTES = ("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr")
_SAMPLE = 200_000
_PIECE = 1 << 18
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def decode(data: bytes, title: str) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _text(data, encoding), encoding.removesuffix("-sig")
    kind = next((kind for magic, kind in _BINARY if data.startswith(magic)), None)
    if kind is None:
        try:
            if b"\0" not in data:
                return _text(data, "utf-8", "strict"), "utf-8"
        except UnicodeDecodeError:
            pass
        if utf16 := _utf16_without_mark(data):
            return _text(data, utf16), utf16
        kind = "a binary file" if b"\0" in data else None
    if kind is None and (found := _detect(data)):
        return found
    raise UsageError(
        f"{title} is {kind or 'text in an unknown encoding'}, which cannot be read.",
        "Attach a PDF of it: its text is recognised where tesseract is installed."
        if kind == "an image"
        else "Save it as plain text and attach that.",
    )


def _text(data: bytes, encoding: str, errors: str = "replace") -> str:
    """The text, decoded piece by piece: no thread keeps the others waiting for long."""
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    pieces = [decoder.decode(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE)]
    return "".join(pieces) + decoder.decode(b"", True)


def _utf16_without_mark(data: bytes) -> str | None:
    """UTF-16 of mostly Latin text has a zero in every other byte, and nowhere else."""
    sample = data[:4096]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if half and odd > 0.4 * half and even == 0:
        return "utf-16-le"
    if half and even > 0.4 * half and odd == 0:
        return "utf-16-be"
    return None


def _detect(data: bytes) -> tuple[str, str] | None:
    """The likeliest of the legacy encodings, as charset-normalizer judges its text."""
    sample = data[:_SAMPLE]
    found = _judge(sample, _LEGACY[0]) or _judge(sample, _LEGACY[1])
    if found not in _SEVERAL_BYTES:
        found = _damaged(sample) or found
    if found is not None:
        return _text(data, found), found
    # Too short or too accented to judge; but text has none of these control characters.
    return None if _CONTROL.search(data) else (_text(data, "cp1252"), "cp1252")


def _judge(sample: bytes, encodings: tuple[str, ...]) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(encodings)).best()
    return None if best is None else best.encoding


def _damaged(sample: bytes) -> str | None:
    """An encoding of several bytes a letter that fits but for a few letters.

    One letter that a cut or a fault has broken would make such a text pass for Western.
    """
    wholes = {
        encoding: sample.decode(encoding, "ignore").encode(encoding, "ignore")
        for encoding in _SEVERAL_BYTES
    }
    for encoding in sorted(wholes, key=lambda encoding: -len(wholes[encoding])):
        lost = len(sample) - len(wholes[encoding])
        few = 0 < lost <= len(sample) / 200
        if few and _judge(wholes[encoding], _LEGACY[0]) == encoding:
            return encoding
    return None
