"""What a user names becomes a document: a file, a folder, or the address of a page."""

import asyncio
import contextlib
from pathlib import Path

from app.core.documents.document import Document
from app.core.documents.folder import preview_folder, read_folder
from app.core.documents.progress import Progress, Report, unheard
from app.core.documents.read import document_from_bytes, one_reader, read_file
from app.core.documents.reader import Reader, StoppedError
from app.core.documents.web import fetch
from engine_bridge.errors import BridgeError
from engine_bridge.paths import expanded


async def extract(source: str | Path, report: Report = unheard) -> Document:
    """`read_document` beside a running event loop, in which `report` is called.

    Cancelling it ends the worker process at once.
    """
    loop = asyncio.get_running_loop()
    reader = Reader()

    def tell(progress: Progress) -> None:
        loop.call_soon_threadsafe(report, progress)

    def work() -> Document:
        with reader:
            return read_document(source, tell, reader)

    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        reader.stop()
        with contextlib.suppress(StoppedError, BridgeError):
            await task
        raise


def read_document(
    source: str | Path, report: Report = unheard, reader: Reader | None = None
) -> Document:
    """Read a file, a folder or, given as text that starts with http:// or https://, a page.

    Plain text is decoded here, anything else parsed in a worker process (`reader` if given).
    Raises UsageError with a cure when it is missing, empty or in no known format, and
    BridgeError when it cannot be read.
    """
    with one_reader(reader) as parser:
        if is_address(source):
            data, title = fetch(str(source), report, parser)
            return document_from_bytes(data, title, report, parser)
        path = expanded(source)
        if _is_folder(path):
            return read_folder(preview_folder(path), report, parser)
        return read_file(path, report, parser)


def is_address(source: str | Path) -> bool:
    """Whether what a user typed is the address of a page."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
