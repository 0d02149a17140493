"""JSON Resume, the format of jsonresume.org, to the analyzer format and back.

What goes where is one table for both directions: `mapping.py`.
"""

from resumes.analyzer.jsonresume.conversion import (
    Conversion,
    is_json_resume,
    sections_left_out,
    to_jsonresume,
)

__all__ = ["Conversion", "is_json_resume", "sections_left_out", "to_jsonresume"]
