"""`python -m server.openapi FILE` writes the OpenAPI document of a service with default settings."""

import sys
from pathlib import Path

from server.openapi import document_bytes

Path(sys.argv[1]).write_bytes(document_bytes())
