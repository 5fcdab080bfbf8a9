"""Documents: what people attach, as text that a model can read."""

from app.core.documents.document import Document
from app.core.documents.read import MAX_BYTES, document_from_bytes, read_document

__all__ = ["MAX_BYTES", "Document", "document_from_bytes", "read_document"]
