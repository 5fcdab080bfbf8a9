"""Text files, standard input and pastes: read once, decoded, known by the hash of their bytes."""

import hashlib
from pathlib import Path

from app.core.documents.decode import decode
from app.core.documents.document import Document
from engine_bridge.errors import BridgeError, UsageError

MAX_BYTES = 64 * 1024 * 1024
"""More text than any context holds (262,144 tokens are about 1 MB)."""


def read_document(path: str | Path) -> Document:
    """Read a text file.

    Raises UsageError with a cure when it is missing, a directory, empty or no text, and
    BridgeError when it cannot be read.
    """
    path = Path(path).expanduser()
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a directory.", "Give a text file.")
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than 64 MB.", "Give the part that matters.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # a device or a pipe has no size, and maybe no end
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {path}.", "Check the path.") from error
    except PermissionError as error:
        raise BridgeError(f"{path} may not be read.", "Give yourself read permission.") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BridgeError(
            f"{path} cannot be read ({why}).", "Check the disk and the path."
        ) from error
    return document_from_bytes(data, path.name)


def document_from_bytes(data: bytes, title: str) -> Document:
    """A document from bytes, such as standard input's. Raises UsageError as `read_document`."""
    if not data.strip():
        raise UsageError(f"{title} is empty.", "Give a file with text in it.")
    if len(data) > MAX_BYTES:
        raise UsageError(f"{title} is larger than 64 MB.", "Give the part that matters.")
    text, encoding = decode(data, title)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    if not text.strip():
        raise UsageError(f"{title} is empty.", "Give a file with text in it.")
    return Document(title, text, encoding, hashlib.sha256(data).hexdigest(), len(text))
