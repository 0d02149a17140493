"""JSON Resume, the format of jsonresume.org, to the analyzer format and back.

What goes where is one table for both directions: `mapping.py`.
"""

from resumes.analyzer.jsonresume.converting import Conversion, convert
from resumes.analyzer.jsonresume.exporting import sections_left_out, to_jsonresume
from resumes.analyzer.jsonresume.recognising import is_json_resume

__all__ = ["Conversion", "convert", "is_json_resume", "sections_left_out", "to_jsonresume"]
