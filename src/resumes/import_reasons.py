"""Explain the reasons why a file is not done, and what its owner can do."""

from collections.abc import Mapping
from enum import StrEnum


class Reason(StrEnum):
    """The reasons why a file is not done: folder names under `_failed`, and `reason` in reports.

    If the API rejects the same bytes too, the reason equals its error code.
    """

    INVALID_JSON = "invalid_json"
    INVALID_RESUME = "invalid_resume"
    COVER_LETTER = "cover_letter"
    INVALID_ARCHIVE = "invalid_archive"
    ANALYZER = "analyzer"
    TOO_LARGE = "too_large"
    QUOTA_REACHED = "quota_reached"
    DUPLICATE = "duplicate"
    FORGOTTEN = "forgotten"
    ACCOUNT_DELETED = "account_deleted"
    UNREADABLE = "unreadable"
    CRASHED = "crashed"
    INTERNAL_ERROR = "internal_error"


WORDS: Mapping[Reason, str] = {
    Reason.INVALID_JSON: "invalid JSON",
    Reason.INVALID_RESUME: "not a valid resume",
    Reason.COVER_LETTER: "cover letter",
    Reason.INVALID_ARCHIVE: "damaged archive",
    Reason.ANALYZER: "not analyzed",
    Reason.TOO_LARGE: "too large",
    Reason.QUOTA_REACHED: "plan full",
    Reason.DUPLICATE: "already stored",
    Reason.FORGOTTEN: "person erased",
    Reason.ACCOUNT_DELETED: "account deleted",
    Reason.UNREADABLE: "permission denied",
    Reason.CRASHED: "importer crashed",
    Reason.INTERNAL_ERROR: "internal error",
}
"""Each reason in at most 20 characters, so that its column leaves room for the file's name."""

_HINTS: Mapping[Reason, str] = {
    Reason.INVALID_JSON: (
        "Have the analyzer write the file again, as UTF-8 JSON, and drop it into the inbox. "
        "The byte offset is where reading failed. Take this file off the list with "
        "`resumes imports dismiss {id}`."
    ),
    Reason.INVALID_RESUME: (
        "Fix the listed fields in the file without moving it, then run "
        "`resumes imports retry {id}`."
    ),
    Reason.COVER_LETTER: (
        "Only resumes are imported. Keep cover letters out of the inbox. Delete this file, or take it "
        "off the list with `resumes imports dismiss {id}`."
    ),
    Reason.INVALID_ARCHIVE: (
        "Create the archive again, with gzip, or with zip using deflate and no password, from .json, "
        ".ndjson or .jsonl files. Then drop it into the inbox."
    ),
    Reason.ANALYZER: (
        "Fix the file without moving it, or the analyzer, then run `resumes imports retry {id}`. To run the "
        "analyzer by hand, see the setting analyzer."
    ),
    Reason.TOO_LARGE: (
        "Make the file smaller, for example by leaving out embedded pictures, or raise "
        "max_body_bytes (for a resume) or max_file_bytes (for a file) in the settings; then run `resumes imports retry {id}`."
    ),
    Reason.QUOTA_REACHED: (
        "Nothing to fix: the file will be imported, in order of arrival, as soon as the plan allows more "
        "resumes or one is deleted."
    ),
    Reason.DUPLICATE: (
        "The same content was already imported into this account. The file can be deleted."
    ),
    Reason.FORGOTTEN: (
        "Delete the file. If it may be imported after all, run `resumes forget EMAIL --lift`, then "
        "`resumes imports retry {id}`."
    ),
    Reason.ACCOUNT_DELETED: (
        "The account was deleted after the file was picked up. To import the file into another account, "
        "move it into the folder of that account."
    ),
    Reason.UNREADABLE: (
        "Give the user that runs the importer read access to the file, then run "
        "`resumes imports retry {id}`."
    ),
    Reason.CRASHED: (
        "Inspect the file with other tools, and report the problem: no file should crash the importer. "
        "Retry it with `resumes imports retry {id}`."
    ),
    Reason.INTERNAL_ERROR: (
        "This is a bug in the importer. Report it with the ID from its log. When it is fixed, run "
        "`resumes imports retry {id}`."
    ),
}


def plain_words(reason: str) -> str:
    """Return the reason in plain words. An unknown reason is returned unchanged."""
    # A newer version may have stored an unknown reason.
    return WORDS[Reason(reason)] if reason in set(Reason) else reason


def find_hint(reason: str, claim_id: str = "ID") -> str | None:
    """Return what the owner of the file with this ID can do, or None if the reason is unknown."""
    return _HINTS[Reason(reason)].format(id=claim_id) if reason in set(Reason) else None
