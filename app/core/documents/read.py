"""Files and bytes become documents: plain text is decoded here, the rest parsed in a worker."""

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from app.core.documents.decode import decode
from app.core.documents.document import Document
from app.core.documents.formats.extracted import clean
from app.core.documents.limits import MAX_BYTES, MAX_FILE_BYTES
from app.core.documents.names import needs_worker
from app.core.documents.progress import Report, unheard
from app.core.documents.reader import Reader
from app.core.plain import HOLD, is_plain
from engine_bridge.errors import BridgeError, UsageError

_HEAD = 4096
PIPE_PATIENCE_S = 5.0
_PIECE = 1 << 18
"""Characters cleaned at a time: no thread keeps the others waiting for long."""


def document_from_bytes(
    data: bytes, title: str, report: Report = unheard, reader: Reader | None = None
) -> Document:
    """A document from bytes, such as standard input's. Raises as `read_document`."""
    if not data.strip():
        raise UsageError(f"{title} is empty.", "Give a file with text in it.")
    if len(data) > MAX_BYTES:
        raise UsageError(f"{title} is larger than 64 MB.", "Give the part that matters.")
    if needs_worker(data[:_HEAD], title):
        with one_reader(reader) as parser, tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return parser.read(Path(file.name), title, report)
    text, encoding = decode(data, title)
    text = "".join(_cleaned(text))
    if not text.strip():
        raise UsageError(f"{title} is empty.", "Give a file with text in it.")
    return Document(title, text, encoding, hashlib.sha256(data).hexdigest(), len(text))


@contextlib.contextmanager
def one_reader(reader: Reader | None) -> Iterator[Reader]:
    """The reader that is given, or one that ends with the block."""
    if reader is not None:
        yield reader
    else:
        with Reader() as fresh:
            yield fresh


def read_file(path: Path, report: Report, reader: Reader) -> Document:
    """A document from a file. Raises as `read_document`."""
    title = clean(path.name).replace("\n", " ")
    try:
        status = path.stat()
        if status.st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is larger than 512 MB.", "Give the part that matters.")
        if stat.S_ISFIFO(status.st_mode):
            return document_from_bytes(_from_pipe(path, reader), title, report, reader)
        with path.open("rb") as file:
            if file.isatty():  # what is typed there is meant for the app
                raise UsageError(f"{path} is a terminal.", "Give a file, or paste the text.")
            head = file.read(_HEAD)
            if stat.S_ISREG(status.st_mode) and needs_worker(head, title):
                return reader.read(path, title, report)
            if status.st_size > MAX_BYTES:
                raise UsageError(f"{path} is larger than 64 MB.", "Give the part that matters.")
            data = head + file.read(MAX_BYTES + 1)  # a device or a pipe has no size and no end
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {path}.", "Check the path.") from error
    except PermissionError as error:
        raise BridgeError(f"{path} may not be read.", "Give yourself read permission.") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BridgeError(
            f"{path} cannot be read ({why}).", "Check the disk and the path."
        ) from error
    return document_from_bytes(data, title, report, reader)


def _from_pipe(path: Path, reader: Reader) -> bytes:
    """What is written into a named pipe. Opened plainly, one without a writer would hang this
    thread beyond `reader.stop`, and the app with it."""
    patient_until = time.monotonic() + PIPE_PATIENCE_S
    data = bytearray()
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
        while len(data) <= MAX_BYTES:
            reader.check()
            piece = file.read(1 << 20)
            if piece:
                data += piece
                continue
            nobody_writes = piece is not None
            if nobody_writes and data:
                break
            if nobody_writes and time.monotonic() > patient_until:
                raise UsageError(f"Nobody writes to the pipe {path}.", "Start what writes to it.")
            time.sleep(0.05)
    return bytes(data)


def _cleaned(text: str) -> Iterator[str]:
    """The text without control sequences, piece by piece, each cut after a line or, as JSON of
    10 MB may be one line, where nothing that is cleaned can be cut."""
    done = 0
    while done < len(text):
        end = done + _PIECE
        while end < len(text) and not (text[end - 1] == "\n" or is_plain(text[end - HOLD : end])):
            end = text.find("\n", end, end + HOLD) + 1 or end + HOLD
        yield clean(text[done:end])
        done = end
