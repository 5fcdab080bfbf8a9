"""The compression that Outlook has for its RTF bodies (MS-OXRTFCP)."""

import struct

_HEAD = struct.Struct("<II4s4x")
_COMPRESSED, _PLAIN = b"LZFu", b"MELA"
_WINDOW = 4096
_KNOWN = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript "
    rb"\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""What every window begins with."""


def decompress(data: bytes) -> bytes:
    """The RTF. Raises ValueError or LookupError for what is damaged."""
    size, length, kind = _HEAD.unpack_from(data.ljust(_HEAD.size, b"\0"))
    body = data[_HEAD.size : size + 4]
    if kind == _PLAIN:
        return body[:length]
    if kind == _COMPRESSED:
        return _unpacked(body)
    raise ValueError(f"no compressed RTF: {kind!r}")


def _unpacked(body: bytes) -> bytes:
    window = bytearray(_KNOWN.ljust(_WINDOW, b"\0"))
    at, done, found = len(_KNOWN), 0, bytearray()
    while done < len(body):
        flags, done = body[done], done + 1
        for bit in range(8):
            if done >= len(body):
                break
            if flags >> bit & 1:
                place, count = divmod(body[done] << 8 | body[done + 1], 16)
                if place == at:
                    return bytes(found)
                places = range(place, place + count + 2)
                letters = (window[one % _WINDOW] for one in places)  # these may be written just now
                done += 2
            else:
                letters = (letter for letter in body[done : done + 1])
                done += 1
            for letter in letters:
                window[at] = letter
                found.append(letter)
                at = (at + 1) % _WINDOW
    return bytes(found)
