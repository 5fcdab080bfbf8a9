"""E-mail: single messages (.eml, .msg) and folders of them (.mbox), each message a page."""

import codecs
import email
import email.policy
import mailbox
import re
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.documents.decode import decode
from app.core.documents.formats.extracted import Extracted
from app.core.documents.formats.office import rtf_text
from app.core.documents.formats.web_page import to_markdown
from app.core.documents.progress import Progress, Report
from engine_bridge.errors import BridgeError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from oxmsg import Message

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_RTF_BODY = 0x1009
"""A property of a .msg."""
_HTML_TAG = re.compile(rb"\{\\\*\\htmltag\d* ?")
_RTF_ONLY = re.compile(rb"\\htmlrtf1?(?![a-z0-9]).*?\\htmlrtf0 ?", re.DOTALL)
_OR_GUESSED = "or_guessed_"


def read_eml(path: Path, title: str, report: Report) -> Extracted:
    found = Extracted("mail")
    text, attachments = _message(path.read_bytes())
    found.add(text)
    _note(found, attachments)
    return found


def read_mbox(path: Path, title: str, report: Report) -> Extracted:
    found, attachments = Extracted("mail"), 0
    box = mailbox.mbox(path, create=False)
    keys = box.keys()
    for number, key in enumerate(keys, 1):
        text, more = _message(box.get_bytes(key))
        attachments += more
        found.add_page(text)
        report(Progress("reading", number, len(keys)))
    _note(found, attachments)
    return found


def read_msg(path: Path, title: str, report: Report) -> Extracted:
    from compressed_rtf import decompress
    from oxmsg import Message

    found = Extracted("mail")
    message = Message.load(str(path))
    _mistrust_code_pages(message)
    heads = {
        "From": _decoded(message.sender or ""),
        "To": ", ".join(_named(one.name, one.email_address) for one in message.recipients),
        "Date": message.sent_date,
        "Subject": _decoded(message.subject),
        "Attached": ", ".join(one.file_name for one in message.attachments if one.file_name),
    }
    lines = [f"{name}: {value}" for name, value in heads.items() if value]
    body = message.body or to_markdown(message.html_body or "")[0]
    if not body.strip() and (rtf := message.properties.binary_prop_value(_RTF_BODY)):
        body = _from_rtf(decompress(rtf))
    found.add("\n".join(lines) + f"\n\n{body}")
    _note(found, len(message.attachments))
    return found


def _from_rtf(rtf: bytes) -> str:
    """The body. Where it was HTML, Outlook has that in its RTF: the tags in groups of their own,
    what only RTF needs between marks."""
    if b"\\fromhtml" not in rtf[:200]:
        return rtf_text(rtf)
    return to_markdown(rtf_text(_HTML_TAG.sub(b"{", _RTF_ONLY.sub(b"", rtf))))[0]


def _mistrust_code_pages(message: "Message") -> None:
    """What a message says of its 8-bit strings can be wrong, or nothing that is known."""
    from oxmsg.domain.model import UnrecognizedCodePageError, UnsupportedEncodingError

    properties, trusted = message.properties, {}
    for name in ("_str_prop_encoding", "body_encoding"):
        try:
            trusted[name] = getattr(properties, name)
        except (UnrecognizedCodePageError, UnsupportedEncodingError):
            trusted[name] = "ascii"
    for name, encoding in trusted.items():
        properties.__dict__[name] = _OR_GUESSED + encoding  # computed once: it is taken from here


def _or_guessed(name: str) -> codecs.CodecInfo | None:
    """The codec that takes the encoding after the prefix where it fits, else what does fit."""
    if not name.startswith(_OR_GUESSED):
        return None

    def read(buffer: "ReadableBuffer", _errors: str = "strict", /) -> tuple[str, int]:
        data = bytes(buffer)
        try:
            text = data.decode(name.removeprefix(_OR_GUESSED))
        except (LookupError, ValueError):
            text = decode(data, "the message")[0]
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


def _note(found: Extracted, attachments: int) -> None:
    if attachments:
        what = "attachment was" if attachments == 1 else "attachments were"
        found.notes.append(f"{attachments} {what} not read; save and attach what matters.")


def _message(data: bytes) -> tuple[str, int]:
    """The message as text, and how many attachments are left out."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    names = [part.get_filename() or "unnamed" for part in message.iter_attachments()]
    lines += [f"Attached: {', '.join(names)}"] if names else []
    return "\n".join(lines) + f"\n\n{_body(message)}", len(names)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, LookupError, IndexError, AttributeError):  # what damaged ones cost
        return ""


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    try:
        text = str(part.get_content())
    except (LookupError, ValueError):  # an encoding nobody knows
        data = part.get_payload(decode=True)
        if not isinstance(data, bytes) or not data:
            return ""
        try:
            text, _ = decode(data, "the message")
        except BridgeError:
            return ""
    return to_markdown(text)[0] if part.get_content_type() == "text/html" else text
