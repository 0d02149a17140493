"""The API described as OpenAPI 3.1, built from the tables that the service itself goes by."""

from server.openapi.document import build_document, document_bytes

__all__ = ["build_document", "document_bytes"]
