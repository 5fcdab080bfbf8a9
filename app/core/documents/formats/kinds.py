"""Which format a file has: by its bytes first, by its name where many formats look alike."""

import zipfile
from collections.abc import Callable
from pathlib import Path

from app.core.documents.formats import docx, mail, office, outlook, pdf, structured, web_page
from app.core.documents.formats.extracted import Extracted
from app.core.documents.limits import MAX_ENTRIES, MAX_UNPACKED
from app.core.documents.names import CFB, RTF, ZIP, is_pdf, looks_like_html
from app.core.documents.progress import Report
from engine_bridge.errors import BridgeError, UsageError

Reader = Callable[[Path, str, Report], Extracted]

_BY_MIMETYPE: dict[bytes, Reader] = {
    b"application/epub+zip": web_page.read_epub,
    b"application/vnd.oasis.opendocument.text": office.read_odt,
    b"application/vnd.oasis.opendocument.spreadsheet": office.read_sheets,
    b"application/vnd.oasis.opendocument.presentation": office.read_odp,
}
_BY_MAIN_PART: dict[str, Reader] = {
    "word/document.xml": docx.read_docx,
    "ppt/presentation.xml": office.read_pptx,
    "xl/workbook.xml": office.read_sheets,
    "xl/workbook.bin": office.read_sheets,
    "META-INF/container.xml": web_page.read_epub,
}
_BY_STREAM: dict[str, Reader] = {
    "Workbook": office.read_sheets,
    "Book": office.read_sheets,
    "__properties_version1.0": outlook.read_msg,
}
_BY_SUFFIX: dict[str, Reader] = {
    ".eml": mail.read_eml,
    ".mbox": mail.read_mbox,
    ".ipynb": structured.read_notebook,
    ".srt": structured.read_subtitles,
    ".vtt": structured.read_subtitles,
    ".ass": structured.read_subtitles,
    ".ssa": structured.read_subtitles,
}
_CURE = "Save it as DOCX, PDF or plain text and attach that."


def reader_of(path: Path, title: str) -> Reader:
    """The reader for a file. Raises UsageError for formats and sizes that are not read."""
    with path.open("rb") as file:
        head = file.read(4096)
    if is_pdf(head, title):
        return pdf.read_pdf
    if head.startswith(ZIP):
        return _in_zip(path, title)
    if head.startswith(CFB):
        return _in_compound_file(path, title)
    if head.startswith(RTF):
        return office.read_rtf
    if reader := _BY_SUFFIX.get(Path(title).suffix.lower()):
        return reader
    if looks_like_html(head, title):
        return web_page.read_html
    raise UsageError(f"{title} is in a format that cannot be read.", _CURE)


def _in_zip(path: Path, title: str) -> Reader:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        if size > MAX_UNPACKED or len(entries) > MAX_ENTRIES:
            raise UsageError(
                f"{title} would unpack to {size >> 20:,} MB in {len(entries):,} files, "
                "which is too much to be a document.",
                "Attach the part that matters.",
            )
        if any(entry.flag_bits & 1 for entry in entries):
            raise UsageError(
                f"{title} is encrypted.", "Save a copy without a password and attach that."
            )
        names = {entry.filename for entry in entries}
        if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
            mimetype = archive.read("mimetype").strip()
            if _encrypted_odf(archive, names):
                raise UsageError(
                    f"{title} is encrypted.", "Save a copy without a password and attach that."
                )
            for known, reader in _BY_MIMETYPE.items():
                if mimetype.startswith(known):
                    return reader
    for part, reader in _BY_MAIN_PART.items():
        if part in names:
            return reader
    raise UsageError(f"{title} is an archive, not a document.", "Unpack it and attach the folder.")


def _encrypted_odf(archive: zipfile.ZipFile, names: set[str]) -> bool:
    manifest = "META-INF/manifest.xml"
    return manifest in names and b":encryption-data" in archive.read(manifest)


def _in_compound_file(path: Path, title: str) -> Reader:
    import olefile

    with olefile.OleFileIO(str(path)) as container:
        streams = {"/".join(name) for name in container.listdir()}
    if "EncryptedPackage" in streams:
        raise UsageError(
            f"{title} is encrypted.", "Save a copy without a password and attach that."
        )
    for stream, reader in _BY_STREAM.items():
        if stream in streams:
            return reader
    raise UsageError(f"{title} is an old Office file, which cannot be read.", _CURE)


def extract_file(path: Path, title: str, report: Report) -> Extracted:
    """A document's text, whatever it costs: for the worker process only."""
    found = reader_of(path, title)(path, title, report)
    if not found.text.strip():
        raise UsageError(f"{title} is empty.", "Give a file with text in it.")
    return found


def broken(title: str, error: BaseException) -> BridgeError:
    """The one sentence for whatever a library says of a damaged file."""
    if isinstance(error, BridgeError):
        return error
    if isinstance(error, MemoryError):
        return BridgeError(
            f"{title} needs more memory than a document may take.", "Attach the part that matters."
        )
    if isinstance(error, RecursionError):
        return BridgeError(f"{title} is nested too deeply to be read.", _CURE)
    return BridgeError(
        f"{title} is damaged or not what its name says ({type(error).__name__}).",
        "Open and save it again with the program that wrote it.",
    )
