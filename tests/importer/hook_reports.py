"""Reports of an importer as its hooks are given them."""

from pathlib import Path
from typing import Any

from importer.telling import FileReport
from resumes.store.ledger import FileOutcome


def a_report(name: str = "ana/cv.json", **fields: Any) -> FileReport:
    """A file that is done, unless told otherwise."""
    values: dict[str, Any] = {
        "account": "ana",
        "outcome": FileOutcome.DONE,
        "reason": None,
        "message": None,
        "filed_as": Path("/drop/_done/2026-01-01/cv-0123abcd.json"),
        "resume_id": "2" * 24,
        "warnings": 0,
    }
    return FileReport(name=name, **(values | fields))
