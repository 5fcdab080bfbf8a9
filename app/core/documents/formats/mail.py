"""E-mail: single messages (.eml) and folders of them (.mbox), each message a page."""

import email
import email.policy
import mailbox
from email.message import EmailMessage
from pathlib import Path

from app.core.documents.decode import decode
from app.core.documents.formats.extracted import Extracted
from app.core.documents.formats.web_page import to_markdown
from app.core.documents.progress import Progress, Report
from engine_bridge.errors import BridgeError

_HEADERS = ("From", "To", "Cc", "Date", "Subject")


def read_eml(path: Path, title: str, report: Report) -> Extracted:
    found = Extracted("mail")
    text, attachments = _message(path.read_bytes())
    found.add(text)
    note_attachments(found, attachments)
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
    note_attachments(found, attachments)
    return found


def note_attachments(found: Extracted, attachments: int) -> None:
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
