"""Documents: what people attach, as text that a model can read."""

from app.core.documents.document import Document
from app.core.documents.limits import MAX_BYTES
from app.core.documents.progress import Progress
from app.core.documents.read import document_from_bytes
from app.core.documents.sources import extract, is_address, read_document

__all__ = [
    "MAX_BYTES",
    "Document",
    "Progress",
    "document_from_bytes",
    "extract",
    "is_address",
    "read_document",
]
