"""Parse resumes in the analyzer format, and create the views of a stored resume."""

from resumes.analyzer.jsonresume.conversion import sections_left_out, to_jsonresume
from resumes.analyzer.resume import Resume, check_stored, parse, parse_imported, stored_warnings
from resumes.analyzer.schema import DEFAULT_FORMAT, Format
from resumes.analyzer.view import (
    attachment,
    filename,
    is_filename,
    iter_sections,
    list_title,
    load_stored,
    plain_number,
    public_json,
    sent_json,
    shown_view,
    whole_json,
)

__all__ = [
    "DEFAULT_FORMAT",
    "Format",
    "Resume",
    "attachment",
    "check_stored",
    "filename",
    "is_filename",
    "iter_sections",
    "list_title",
    "load_stored",
    "parse",
    "parse_imported",
    "plain_number",
    "public_json",
    "sections_left_out",
    "sent_json",
    "shown_view",
    "stored_warnings",
    "to_jsonresume",
    "whole_json",
]
