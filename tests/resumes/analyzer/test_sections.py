import pytest

from resumes.analyzer.kinds import Choice, Flag, Group, Kind, Listing, Number, Text
from resumes.analyzer.sections import (
    DATE_RANGE,
    HEADER,
    LAYOUTS,
    MONTHS,
    SECTION_TYPES,
    STYLE,
    nearest_section_type,
    show_flag,
)

# The section types of docs/format.md; fields without a mark are strings.
TABLE = """
summaries: text
experiences: workplace position location link companyLogo dateRange:DateRange description bullets:[]
educations: institution degree location companyLogo dateRange:DateRange gpa maxGpa gpaText bullets:[]
industryExperiences: name level:number icon
volunteering: institution role location companyLogo dateRange:DateRange description bullets:[]
publications: title author edition link dateRange:DateRange description
projects: title location link dateRange:DateRange description bullets:[]
achievements: title description icon
awards: title description icon
certificates: title issuer
courses: title description
languages: name level:number levelText
interests: title description icon
books: title author image
quotes: quote author
references: name contact
findMeOnline: title link icon
strengths: title description icon
skills: title description tags:[]
mytime: pieces:number data:[{}]
customs: title description icon dateRange:DateRange
customs2: title description
customs3: title description
additionalExperiences: workplace position dateRange:DateRange
additionalPublications: title author dateRange:DateRange
additionalTechnologies: title tags:[]
"""


def mark_of(kind: Kind) -> str:
    if kind is DATE_RANGE:
        return ":DateRange"
    if isinstance(kind, Listing):
        return ":[{}]" if isinstance(kind.entry, Group) else ":[]"
    return ":number" if isinstance(kind, Number) else ""


def test_the_table_holds_the_26_section_types_and_item_fields_of_the_spec() -> None:
    table = "\n".join(
        f"{name}: {' '.join(field + mark_of(kind) for field, kind in row.fields.items())}"
        for name, row in SECTION_TYPES.items()
    )
    assert table == TABLE.strip()
    assert len(SECTION_TYPES) == 26


def test_all_header_fields_are_strings() -> None:
    assert list(HEADER.fields) == ["name", "title", "email", "phone", "location", "website"]
    assert all(isinstance(kind, Text) for kind in HEADER.fields.values())


def test_a_date_range_has_four_numbers_and_a_boolean() -> None:
    assert {name: type(kind) for name, kind in DATE_RANGE.fields.items()} == {
        "fromYear": Number,
        "fromMonth": Number,
        "toYear": Number,
        "toMonth": Number,
        "isOngoing": Flag,
    }


def test_style_has_the_fields_of_the_spec() -> None:
    assert " ".join(STYLE.fields) == (
        "layout colors fontBody fontHeading fontSize hideBranding isLetterSize marginOption"
        " pageMarginOption columnLayoutOption lineHeightOption headerExtraSpacing"
    )
    assert isinstance(STYLE.fields["layout"], Choice)
    assert len(LAYOUTS) == 15


def test_months_count_from_0() -> None:
    assert (MONTHS[0], MONTHS[11], len(MONTHS)) == ("January", "December", 12)


def test_every_section_type_has_a_default_heading() -> None:
    assert SECTION_TYPES["experiences"].heading == "Experience"
    assert all(row.heading.strip() for row in SECTION_TYPES.values())
    assert len({row.heading for row in SECTION_TYPES.values()}) == 26


def test_a_show_flag_is_named_after_its_field() -> None:
    assert show_flag("description") == "showDescription"
    assert show_flag("dateRange") == "showDateRange"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("education", "educations"),
        ("Educations", "educations"),
        ("summary", "summaries"),
        ("experience", "experiences"),
        ("skill", "skills"),
        ("findmeonline", "findMeOnline"),
        ("zzz", None),
        ("", None),
        ("educations" * 100_000, None),
    ],
)
def test_the_nearest_section_type_is_found_in_any_case(name: str, nearest: str | None) -> None:
    assert nearest_section_type(name) == nearest
