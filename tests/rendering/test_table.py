"""Every field of the format is drawn or said not to be, and every layout can be."""

import re

import pytest

from resumes.analyzer.schema import LAYOUTS, SECTION_TYPES
from resumes.rendering import Paper, PdfOptions, Renderer, compose
from resumes.rendering.child import TEMPLATE
from resumes.rendering.shapes import NOT_DRAWN, ROWS
from tests.support.documents import a_document, with_section


def test_every_section_type_has_a_row_and_every_field_of_it_a_part() -> None:
    assert ROWS.keys() == SECTION_TYPES.keys()
    for name, section_type in SECTION_TYPES.items():
        drawn = ROWS[name].parts.values()
        assert set(drawn) == section_type.fields.keys() - NOT_DRAWN, name


def test_nothing_is_listed_as_not_drawn_that_is_no_field() -> None:
    fields = {field for section_type in SECTION_TYPES.values() for field in section_type.fields}
    assert fields >= NOT_DRAWN


def test_the_template_has_the_layouts_of_the_format_and_no_package() -> None:
    source = TEMPLATE.read_text("utf-8")
    rows = source.partition("#let layouts = (")[2].partition("\n)\n")[0]
    assert re.findall(r"^  (\w+):", rows, re.MULTILINE) == list(LAYOUTS)
    assert not re.search(r"#?(import|include|plugin|read|image)\b", re.sub("//.*", "", source))


@pytest.mark.parametrize("paper", Paper)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_drawn_on_every_paper(
    renderer: Renderer, layout: str, paper: Paper
) -> None:
    for document in (
        a_document(),
        a_document(header={}),
        with_section("summaries", {"text": "x"}, column=2),
    ):
        page = compose(document, "0" * 24, PdfOptions(layout=layout, paper=paper))
        assert renderer.render(page).missing is None


@pytest.mark.parametrize("name", SECTION_TYPES)
def test_a_section_of_every_type_is_drawn_with_each_field_alone(
    renderer: Renderer, name: str
) -> None:
    dates = {"fromYear": 2001, "fromMonth": 1, "isOngoing": True}
    odd = {"bullets": ["x"], "tags": ["x"], "data": [{"title": "x", "value": 1}]}
    odd |= {"dateRange": dates, "level": 2, "pieces": 3}
    items = [{field: odd.get(field, "x")} for field in SECTION_TYPES[name].fields]
    for layout in ("double", "timeline"):
        page = compose(with_section(name, *items), "0" * 24, PdfOptions(layout=layout))
        assert renderer.render(page).missing is None


def test_a_type_that_an_installation_admits_is_drawn_as_text(renderer: Renderer) -> None:
    from resumes.analyzer import Format

    admitted = Format(extra_section_types=frozenset({"hobbies"}))
    document = with_section("hobbies", {"what": "Chess", "since": 1990}, "Go", column=0)
    page = compose(document, "0" * 24, format=admitted)
    assert page["columns"][0][0]["items"] == [{"text": "Chess"}, {"text": "Go"}]
    assert renderer.render(page).missing is None
