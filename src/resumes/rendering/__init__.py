"""Render resumes as PDF or Word, in a child process.

    stored document ── page (content and layout) ─ JSON ── child ─┬─ Typst, resume.typ, fonts ── PDF
                                                                  └─ word, python-docx ── Word

`book` joins the PDFs of several resumes. The template only reads a resume as data and never
evaluates it as Typst code, so a resume cannot inject markup (docs/pdf.md).
"""

from resumes.rendering.page import DEFAULT_CHOICE, FileType, PageOptions, Paper, TooLong, compose
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
