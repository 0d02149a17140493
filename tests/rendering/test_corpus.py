"""Resumes that nobody here wrote, in the layouts."""

import pytest

from resumes.analyzer.schema import LAYOUTS
from resumes.rendering import PdfOptions, Renderer, compose
from tests.support.pdfs import absent, iter_corpus, read_with_pdftotext, texts_of

STRIDE = 5
"""A layout has every fifth of them, so that each is drawn in three."""


@pytest.mark.campaign
@pytest.mark.parametrize("layout", LAYOUTS)
def test_resumes_that_nobody_here_wrote_are_drawn_and_found_whole(
    renderer: Renderer, layout: str
) -> None:
    first = list(LAYOUTS).index(layout)
    without_a_font = 0
    for number, (name, document) in enumerate(iter_corpus()):
        if (number - first) % STRIDE:
            continue
        pdf, missing = renderer.render(compose(document, "0" * 24, PdfOptions(layout=layout)))
        without_a_font += missing is not None
        whole, raw = read_with_pdftotext(pdf), read_with_pdftotext(pdf, "-raw")
        lost = [text for text in absent(texts_of(document), whole) if absent([text], raw)]
        assert missing is not None or lost == [], name
    assert without_a_font <= 2  # those with an emoji
