"""Messages as Outlook keeps them (.msg)."""

import codecs
import re
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.documents.decode import decode
from app.core.documents.formats.extracted import Extracted
from app.core.documents.formats.mail import note_attachments
from app.core.documents.formats.office import rtf_text
from app.core.documents.formats.web_page import to_markdown
from app.core.documents.progress import Report
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from oxmsg.properties import Properties

_RTF_BODY = 0x1009
"""A property of a message."""
_HTML_TAG = re.compile(rb"\{\\\*\\htmltag\d* ?")
_RTF_ONLY = re.compile(rb"\\htmlrtf1?(?![a-z0-9]).*?\\htmlrtf0 ?", re.DOTALL)
_OR_GUESSED = "or_guessed_"


def read_msg(path: Path, title: str, report: Report) -> Extracted:
    from compressed_rtf import decompress
    from oxmsg import Message

    found = Extracted("mail")
    message = Message.load(str(path))
    people, attached = message.recipients, message.attachments  # others each time they are asked
    parts = [one.properties for one in people] + [one.properties for one in attached]
    _mistrust_code_pages(message.properties, parts)
    heads = {
        "From": _decoded(message.sender or ""),
        "To": ", ".join(_named(one.name, one.email_address) for one in people),
        "Date": message.sent_date,
        "Subject": _decoded(message.subject),
        "Attached": ", ".join(one.file_name for one in attached if one.file_name),
    }
    lines = [f"{name}: {value}" for name, value in heads.items() if value]
    body = message.body or to_markdown(message.html_body or "")[0]
    if not body.strip() and (rtf := message.properties.binary_prop_value(_RTF_BODY)):
        body = _from_rtf(decompress(rtf))
    found.add("\n".join(lines) + f"\n\n{body}")
    note_attachments(found, len(attached))
    return found


def _from_rtf(rtf: bytes) -> str:
    """The body. Where it was HTML, Outlook has that in its RTF: the tags in groups of their own,
    what only RTF needs between marks."""
    if b"\\fromhtml" not in rtf[:200]:
        return rtf_text(rtf)
    return to_markdown(rtf_text(_HTML_TAG.sub(b"{", _RTF_ONLY.sub(b"", rtf))))[0]


def _mistrust_code_pages(message: "Properties", parts: "list[Properties]") -> None:
    """Let 8-bit strings be read as the message says where that fits them, else as they look.

    What it says can be wrong, or nothing that is known; its recipients and attachments say
    nothing. And oxmsg takes no more than the name of an encoding, by which it decodes strictly:
    so the guess is an encoding with a name of its own.
    """
    from oxmsg.domain.model import UnrecognizedCodePageError, UnsupportedEncodingError

    trusted = {}
    for name in ("_str_prop_encoding", "body_encoding"):
        try:
            trusted[name] = _OR_GUESSED + getattr(message, name)
        except (UnrecognizedCodePageError, UnsupportedEncodingError):
            trusted[name] = _OR_GUESSED + "ascii"
    for properties in (message, *parts):
        properties.__dict__.update(trusted)  # what oxmsg has computed once it takes from here


def _or_guessed(name: str) -> codecs.CodecInfo | None:
    """The codec that takes the encoding after the prefix where it fits, else what does fit. It
    never fails: a string that nobody can read is no reason to refuse the message."""
    if not name.startswith(_OR_GUESSED):
        return None

    def read(buffer: "ReadableBuffer", _errors: str = "strict", /) -> tuple[str, int]:
        data = bytes(buffer)
        try:
            text = data.decode(name.removeprefix(_OR_GUESSED))
        except (LookupError, ValueError):
            try:
                text = decode(data, "the message")[0]
            except BridgeError:
                text = data.decode("latin-1")
        return text, len(data)

    return codecs.CodecInfo(codecs.latin_1_encode, read, name=name)


codecs.register(_or_guessed)


def _named(name: str, address: str) -> str:
    """Recipients of many messages have their address for a name."""
    name = _decoded(name)
    return f"{name} <{address}>" if address and name not in ("", address) else name or address


def _decoded(text: str) -> str:
    """A header's value without the codes that e-mail has for other letters (=?GBK?B?…?=)."""
    try:
        return str(make_header(decode_header(text)))
    except (LookupError, ValueError, HeaderParseError):
        return text
