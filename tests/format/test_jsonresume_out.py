"""From what is shown of a resume to a JSON Resume: what is written, and what is left out."""

import json
from typing import Any

import pytest

from resumes.analyzer import schema, sections_left_out, to_jsonresume
from resumes.analyzer.jsonresume.mapping import HEADER, SECTIONS
from tests.support.documents import a_document, with_section
from tests.support.json_resumes import COMPLETE, SCHEMA, there_and_back


def test_it_says_what_it_is_and_has_nothing_that_is_not_there() -> None:
    document = with_section("interests", {"title": "Music"}, name="Fun", order=2) | {
        "header": {"name": "Ada"}
    }
    assert to_jsonresume(document) == {
        "$schema": "https://raw.githubusercontent.com/jsonresume/resume-schema/v1.0.0/schema.json",
        "basics": {"name": "Ada"},
        "interests": [{"name": "Music"}],
        "meta": {"version": "v1.0.0"},
    }
    assert to_jsonresume({"header": {}, "sections": {}})["basics"] == {}
    email = {"header": {"email": "ada at example"}, "sections": {}, "title": "T", "style": {}}
    assert to_jsonresume(email)["basics"] == {"email": "ada at example"}


def test_keys_have_the_order_of_the_schema() -> None:
    assert list(there_and_back(COMPLETE)) == list(SCHEMA["properties"])


@pytest.mark.parametrize(
    ("section", "item", "key", "entry"),
    [
        ("experiences", {"bullets": ["a", None, "", "b"]}, "work", {"highlights": ["a", "b"]}),
        ("additionalExperiences", {"workplace": "E"}, "work", {"name": "E"}),
        ("additionalPublications", {"title": "N"}, "publications", {"name": "N"}),
        ("additionalTechnologies", {"title": "T", "tags": ["a"]}, "skills",
         {"name": "T", "keywords": ["a"]}),
        ("educations", {"gpa": "3.7", "maxGpa": "4.0"}, "education", {"score": "3.7/4.0"}),
        ("educations", {"gpa": "3.7"}, "education", {"score": "3.7"}),
        ("educations", {"degree": "Bachelor, Maths, pure"}, "education",
         {"studyType": "Bachelor", "area": "Maths, pure"}),
        ("educations", {"degree": ", Physics"}, "education", {"studyType": ", Physics"}),
        ("awards", {"description": "A - B - 2014 - C - D"}, "awards",
         {"awarder": "A - B", "date": "2014", "summary": "C - D"}),
        ("awards", {"description": "Time - For x"}, "awards", {"summary": "Time - For x"}),
        ("certificates", {"issuer": "Board, 20th"}, "certificates", {"issuer": "Board, 20th"}),
        ("educations", {"institution": "I", "location": "L", "companyLogo": "C", "gpaText": "G"},
         "education", {"institution": "I", "location": "L"}),
        ("projects", {"title": "T", "location": "L"}, "projects", {"name": "T"}),
        ("volunteering", {"role": "R", "location": "L"}, "volunteer", {"position": "R"}),
        ("publications", {"title": "T", "author": "A"}, "publications", {"name": "T"}),
        ("interests", {"title": "T", "icon": "star"}, "interests", {"name": "T"}),
        ("interests", {"description": "a, , b, "}, "interests", {"keywords": ["a", "b"]}),
        ("interests", {"description": "a, " * 200 + "b"}, "interests",
         {"keywords": ["a, " * 200 + "b"]}),
        ("interests", {"description": "a, " * 199 + "b"}, "interests",
         {"keywords": ["a"] * 199 + ["b"]}),
        ("references", {"name": "Bo", "contact": "bo@example.org"}, "references", {"name": "Bo"}),
        ("publications", {"title": "N", "dateRange": {"toYear": 2020, "toMonth": 4}},
         "publications", {"name": "N", "releaseDate": "2020-05"}),
        ("publications", {"dateRange": {"fromYear": 2017, "toYear": 2020}}, "publications",
         {"releaseDate": "2017"}),
        ("languages", {"level": 3, "levelText": "Rusty"}, "languages", {"fluency": "Rusty"}),
        *(("languages", {"name": "French", "level": level}, "languages",
           {"language": "French", "fluency": word})
          for level, word in enumerate(["Beginner", "Basic", "Intermediate", "Fluent", "Native"], 1)),
        *(("languages", {"name": "French", "level": level}, "languages", {"language": "French"})
          for level in (0, 4.5, 17)),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_an_item_is_an_entry_of_a_list(section: str, item: Any, key: str, entry: Any) -> None:
    assert to_jsonresume(with_section(section, item))[key] == [entry]


def test_a_highest_grade_alone_is_not_written() -> None:
    assert "education" not in to_jsonresume(with_section("educations", {"maxGpa": "4.0"}))


@pytest.mark.parametrize(
    ("item", "profile"),
    [
        ({"title": "Own"}, {"network": "Own"}),
        ({"link": "Xada", "icon": "star"}, {"username": "Xada"}),
        *(({"link": link}, {"url": link}) for link in ("ada.X", "a:b", "a/b")),
    ],
)
def test_an_address_has_a_mark_that_no_name_has(item: Any, profile: Any) -> None:
    assert to_jsonresume(with_section("findMeOnline", item))["basics"]["profiles"] == [profile]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Washington, D.C.", {"city": "Washington", "region": "D.C."}),
        ("Quarter, City, Region, FR",
         {"city": "Quarter, City", "region": "Region", "countryCode": "FR"}),
        ("Remote", {"city": "Remote"}),
        ("FR", {"countryCode": "FR"}),
        ("Berlin, Germany", {"city": "Berlin", "countryCode": "DE"}),
        ("Atlanta, Georgia", {"city": "Atlanta", "region": "Georgia"}),
        ("Paris, , , FR", {"city": "Paris", "countryCode": "FR"}),
        ("Berlin, , DE", {"city": "Berlin", "countryCode": "DE"}),
        (", Ontario, CA", {"city": "Ontario", "countryCode": "CA"}),
        (", , CA", {"countryCode": "CA"}),
        ("Sacramento, CA, ", {"city": "Sacramento", "region": "CA"}),
        (", , ", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_place_is_taken_apart_by_position(line: str, place: dict[str, str] | None) -> None:
    assert to_jsonresume(a_document(header={"location": line}))["basics"].get("location") == place


@pytest.mark.parametrize(
    ("span", "dates"),
    [
        ({"fromYear": 2020, "fromMonth": 0, "toYear": 2021.0, "toMonth": 11.0}, "2020-01 2021-12"),
        ({"fromYear": 2020, "isOngoing": True}, "2020"),
        ({"fromYear": 2020, "toYear": 2021, "isOngoing": True}, "2020"),
        ({"fromYear": 2020, "fromMonth": 2}, "2020-03 2020-03"),
        ({"toYear": 2020, "isOngoing": False}, " 2020"),
        ({"fromYear": 2020, "toYear": 20200}, "2020 2020"),
        *(({"fromYear": 2020, "fromMonth": month}, "2020 2020") for month in (12, -1, 0.5)),
        *(({"fromYear": year}, "") for year in (999, 3000, 2020.5)),
        *(({"fromYear": year}, f"{year} {year}") for year in (1000, 2999)),
        ({"fromMonth": 3}, ""),
        ({"isOngoing": True}, ""),
    ],
)
def test_a_span_is_written_as_it_reads(span: dict[str, Any], dates: str) -> None:
    document = with_section("experiences", {"workplace": "E", "dateRange": span})
    start, _, end = dates.partition(" ")
    expected = {"name": "E", "startDate": start, "endDate": end}
    assert to_jsonresume(document)["work"] == [{name: it for name, it in expected.items() if it}]


def test_a_list_is_of_all_sections_that_say_the_same() -> None:
    sections = {
        "additionalTechnologies": {"column": 0, "items": [{"title": "b"}]},
        "skills": {"column": 0, "items": [{"title": "a"}, {}]},
    }
    assert to_jsonresume(a_document(sections=sections))["skills"] == [{"name": "a"}, {"name": "b"}]


def test_several_summaries_are_paragraphs_of_one() -> None:
    document = with_section("summaries", {"text": "a "}, {}, {"text": " "}, {"text": "\nb"})
    assert to_jsonresume(document)["basics"]["summary"] == "a \n\n\nb"


def test_quotes_are_references_only_where_they_are_called_so() -> None:
    quote = {"quote": "Good.", "author": "Bo"}
    assert to_jsonresume(with_section("quotes", quote, name="References"))["references"] == [
        {"reference": "Good.", "name": "Bo"}
    ]
    favourites = with_section("quotes", quote, name="Favourite quotes")
    assert "references" not in to_jsonresume(favourites)
    assert sections_left_out(favourites) == ("quotes",)


def test_what_is_left_out_is_named() -> None:
    shown = {"column": 0, "items": [{"title": "x"}]}
    sections = {
        "books": shown,
        "skills": shown,
        "strengths": {"column": 0, "items": [{}]},
        "mytime": {"column": 0, "items": []},
        "hobbies": {"column": 0, "items": ["kept"]},
    }
    assert sections_left_out(a_document(sections=sections)) == ("books", "hobbies")
    assert "books" not in json.dumps(to_jsonresume(a_document(sections=sections)))


NO_PLACE = {
    "companyLogo", "icon", "educations.gpaText", "volunteering.location", "publications.author",
    "projects.location", "references.contact", "additionalPublications.author",
}  # fmt: skip


def test_every_field_has_a_place_in_a_json_resume_or_is_known_to_have_none() -> None:
    found = {field for part in HEADER for field in part.fields}
    for field in found ^ schema.HEADER.fields.keys():
        assert f"header.{field}" in NO_PLACE, f"jsonresume/mapping.py: HEADER: {field}"
    for mapping in SECTIONS:
        has_place = {field for part in mapping.parts for field in part.fields}
        for field in schema.SECTION_TYPES[mapping.section].fields.keys() - has_place:
            name = f"{mapping.section}.{field}"
            assert NO_PLACE & {field, name}, f"jsonresume/mapping.py lacks {name}"
