"""Resumes as PDF: a pure model of the page, one Typst template, and a child process that draws.

    stored document ── page (what stands where) ── JSON ── child: Typst, resume.typ, fonts ── PDF

Data is never source, so nothing in a resume can do more than be text (docs/pdf.md).
"""

from resumes.rendering.page import DEFAULT_CHOICE, Paper, PdfOptions, TooLong, compose
from resumes.rendering.renderer import Rendered, Renderer, RenderingFailed, TemplateFailed

__all__ = [
    "DEFAULT_CHOICE",
    "Paper",
    "PdfOptions",
    "Rendered",
    "Renderer",
    "RenderingFailed",
    "TemplateFailed",
    "TooLong",
    "compose",
]
