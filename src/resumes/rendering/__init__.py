"""Resumes as PDF or Word: a pure model of the page, one Typst template, and a child process that draws.

    stored document ── page (what stands where) ── JSON ── child ─┬─ Typst, resume.typ, fonts ── PDF
                                                                  └─ word, python-docx ── Word

`book` joins the PDFs of many resumes. Data is never source, so nothing in a resume can do more than be
text (docs/pdf.md).
"""

from resumes.rendering.page import (
    DEFAULT_CHOICE,
    FileType,
    PageOptions,
    Paper,
    TooLong,
    compose,
)
from resumes.rendering.renderer import Rendered, Renderer, RenderingFailed, TemplateFailed

__all__ = [
    "DEFAULT_CHOICE",
    "FileType",
    "PageOptions",
    "Paper",
    "Rendered",
    "Renderer",
    "RenderingFailed",
    "TemplateFailed",
    "TooLong",
    "compose",
]
