"""The report beside a file that is not simply done: what it was, why, and what to do."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from importer.claims import Claim
from importer.outcomes import Conclusion
from importer.reading import Signature
from resumes.clock import timestamp
from resumes.errors import Issue
from resumes.store.ledger import FileOutcome
from resumes.text import escaped

MARKER = "resumes_import_report"
"""A report's first field, by which it is known as ours if it gets into the inbox (pitfalls I13)."""

VERSION = 1
MAX_REPORT_BYTES = 64 * 1024 * 1024


def compose(
    claim: Claim,
    signature: Signature,
    conclusion: Conclusion,
    *,
    sha256: str | None,
    now_us: int,
) -> bytes:
    """The report as indented JSON. Lists of issues and warnings hold at most 50 and a count.

    Of a file of several resumes `items` says what became of each.
    """
    refusal = conclusion.refusal
    is_duplicate = conclusion.outcome is FileOutcome.DUPLICATE
    report: dict[str, Any] = {
        MARKER: VERSION,
        "outcome": conclusion.outcome.value,
        "reason": refusal.reason.value if refusal else None,
        "message": escaped(refusal.message) if refusal else conclusion.remark,
        "path": escaped(refusal.path) if refusal and refusal.path is not None else None,
        "byte_offset": refusal.byte_offset if refusal else None,
        "hint": conclusion.hint,
        "issues": _listed(refusal.issues if refusal else ()),
        "warnings": _listed(conclusion.warnings),
        "items": [item.as_dict() for item in conclusion.items],
        "resume_id": None if is_duplicate else conclusion.resume_id,
        "duplicate_of": conclusion.resume_id if is_duplicate else None,
        "file": claim.name,
        "account": claim.account,
        "account_id": claim.account_id,
        "claim_id": claim.id,
        "size_bytes": signature.size_bytes,
        "sha256": sha256,
        "modified_at": _modified_at(signature.mtime_ns),
        "claimed_at": claim.claimed_at,
        "finished_at": timestamp(now_us),
    }
    return json.dumps(report, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"


def _modified_at(mtime_ns: int) -> str | None:
    # A file's time is whatever its writer set: years that no calendar holds, too.
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return timestamp(mtime_ns // 1_000)
    return None


def _listed(issues: tuple[Issue, ...]) -> list[dict[str, str]]:
    return [{"path": escaped(issue.path), "message": escaped(issue.message)} for issue in issues]


def is_report(body: bytes) -> bool:
    """Whether the bytes are a report of ours."""
    return _parse(body) is not None


def find_report(path: Path) -> dict[str, Any] | None:
    """The report at the path, if there is one and it is ours."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_REPORT_BYTES:
            return None
        return _parse(path.read_bytes())
    except OSError:
        return None


def remove_report(path: Path, claim_id: str) -> None:
    """A report on this claim no longer lies at the path; anything else there stays."""
    report = find_report(path)
    if report is not None and report.get("claim_id") == claim_id:
        path.unlink(missing_ok=True)


def is_foreign(path: Path, claim_id: str) -> bool:
    """Whether something other than a report on this claim lies at the path."""
    if not os.path.lexists(path):
        return False
    report = find_report(path)
    return report is None or report.get("claim_id") != claim_id


def _parse(body: bytes) -> dict[str, Any] | None:
    if MARKER.encode() not in body[:200]:
        return None
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) and report.get(MARKER) == VERSION else None
