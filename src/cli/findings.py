"""What a check of `resumes doctor` found."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `remedy` None: all is well."""

    subject: str
    text: str
    remedy: str | None = None


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding as `--json` prints it. `remedy` null: all is well."""
    return {
        "subject": finding.subject,
        "ok": finding.remedy is None,
        "text": finding.text,
        "remedy": finding.remedy,
    }
