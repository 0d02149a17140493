"""From a JSON Resume to an analyzer document: what is one, and what becomes of it."""

import json
from calendar import month_name
from typing import Any

import pytest

from resumes.analyzer import parse, parse_imported
from resumes.errors import InvalidInput, InvalidResume
from resumes.rendering.words import WORDS
from tests.support.documents import SECTIONS, a_document, with_section
from tests.support.json_resumes import (
    COMPLETE,
    SCHEMA,
    entry_back,
    imported,
    imported_items,
    imported_view,
    warnings_of,
    with_list,
)

ADDRESS = "https://raw.example/jsonresume/resume-schema/v1.0.0/schema.json"


def outcome(parser: Any, body: bytes) -> Any:
    """What comes of the bytes: the resume, or all that the error says."""
    try:
        return parser(body)
    except InvalidInput as error:
        return type(error), error.message, vars(error)


@pytest.mark.parametrize(
    "document",
    [
        COMPLETE,
        {"basics": {}},
        {"basics": {"name": "Ada"}, "unknown": 1},
        {"$schema": ADDRESS, "skills": []},
        {"$schema": "https://jsonresume.example/v1.json", "skills": []},
        {"$schema": "https://raw.example/RESUME-schema/v1.json", "skills": []},
        {"$schema": ADDRESS, "basics": None},
        {"work": [{"company": "Engines"}]},
        {"education": [{"institution": "School"}], "skills": [], "meta": {}},
        {key: [] for key in SCHEMA["properties"]} | {"$schema": None, "basics": {"name": "Ada"}},
        {"basics": {"name": "Ada"}, "header": None},
        {"basics": {"name": "Ada"}, "header": None, "sections": None},
        {"basics": {"name": "Ada"}, "sections": {}},
        {"basics": {"name": "Ada"}, "sections": {}, "metadata": {}},
        {"basics": {"name": "Ada"}, "sections": ["work"], "headings": {"work": "Jobs"}},
        {"basics": {"name": "Ada"}, "header": "Ada", "sections": "work"},
        {"basics": {"name": "Ada"}, "header": {}},
    ],
)
def test_a_json_resume_is_recognised_by_its_shape_and_only_in_files(document: Any) -> None:
    body = json.dumps(document).encode()
    assert outcome(parse_imported, body) != outcome(parse, body)
    with pytest.raises(InvalidResume, match="Missing required field"):
        parse(body)


OTHERS: list[Any] = [
    a_document(title="Engineer", unknown=1),
    with_section("skills", {"tags": 5}, layoutMode="tags"),
    a_document(basics={}, work=[{"company": "Engines"}]),
    a_document(basics={"name": "Bo"}),
    a_document(sections={"awards": {"column": 0}}, basics={"name": "Bo"}, metadata={}),
    {"header": {}, "basics": None},
    {"header": None, "work": [{"name": "Engines"}]},
    {"sections": {}, "basics": []},
    {"sections": [], "$schema": ADDRESS, "work": [{"name": "Engines"}]},
    {"sections": {"education": {}}},
    {"title": "Analyst"},
    {"type": "coverLetter"},
    {},
    {"$schema": ADDRESS},
    {"$schema": ADDRESS, "meta": {}},
    {"$schema": ADDRESS.replace("schema.json", "job-schema.json"), "skills": []},
    {"$schema": "https://example.org/analyzer.json", "skills": []},
    {"$schema": 5, "skills": []},
    {"basics": []},
    {"basics": "Ada"},
    {"work": []},
    {"work": ["Engines"]},
    {"work": [{"x": 1}]},
    {"work": {"name": "Engines"}},
    {"work": [{"name": "Engines"}, 1]},
    {"work": [{"name": "Engines"}], "employees": 5},
    {"skills": [{"name": "Analysis"}]},
    [],
    [COMPLETE],
    "basics",
    None,
    5,
    *({name: {"column": 0, "items": [{"name": "x"}]}} for name in SECTIONS),
    *({name: [{"name": "x", "title": "x"}]} for name in SECTIONS),
]


@pytest.mark.parametrize(
    "body",
    [json.dumps(document).encode() for document in OTHERS]
    + [b'{"header": {}, "sections": {}, "x": 1e999}', b'{"work": [],}', b"{", b"", b"\xff\xfe{"],
)
def test_what_is_no_json_resume_gives_what_parse_gives(body: bytes) -> None:
    assert outcome(parse_imported, body) == outcome(parse, body)


def test_an_export_of_resumake_is_read_and_what_is_left_out_is_named() -> None:
    document = {
        "selectedTemplate": 1,
        "headings": {"work": "Jobs"},
        "basics": {
            "name": "Ada",
            "website": "https://ada.example",
            "location": {"address": "Leeds, UK"},
        },
        "education": [
            {"institution": "School", "location": "York", "studyType": "BSc", "area": "Maths",
             "gpa": "3.9", "startDate": "Sep 2014", "endDate": "May 2017"},
        ],
        "work": [
            {"company": "Engines", "location": "Leeds", "position": "Analyst", "website": "e.example",
             "startDate": "2020-01", "endDate": "Present", "highlights": ["Built", ""]},
        ],
        "skills": [{"name": "Tools", "level": "", "keywords": ["Loom", "Lathe"]}],
        "projects": [
            {"name": "Table", "description": "Of numbers", "url": "t.example", "keywords": ["C", "R"]},
        ],
        "awards": [{"title": "Medal", "date": "2019", "awarder": "Society", "summary": ""}],
        "sections": ["templates", "profile", "work"],
    }  # fmt: skip
    assert set(warnings_of(document)) == {"selectedTemplate", "headings", "sections"}
    view = imported_view(document)
    assert view["header"] == {
        "name": "Ada",
        "location": "Leeds, UK",
        "website": "https://ada.example",
    }
    items = {name: section["items"][0] for name, section in view["sections"].items()}
    assert items == {
        "experiences": {
            "workplace": "Engines",
            "position": "Analyst",
            "location": "Leeds",
            "link": "e.example",
            "dateRange": {"fromYear": 2020, "fromMonth": 0, "isOngoing": True},
            "bullets": ["Built"],
        },
        "educations": {
            "institution": "School",
            "degree": "BSc, Maths",
            "location": "York",
            "dateRange": {"fromYear": 2014, "fromMonth": 8, "toYear": 2017, "toMonth": 4},
            "gpa": "3.9",
        },
        "projects": {
            "title": "Table",
            "link": "t.example",
            "description": "Of numbers",
            "bullets": ["C, R"],
        },
        "skills": {"title": "Tools", "tags": ["Loom", "Lathe"]},
        "awards": {"title": "Medal", "description": "Society - 2019"},
    }


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"basics": {"name": "A"}, "sections": {"work": {"items": []}}, "metadata": {"theme": "x"}},
         "a Reactive Resume document"),
        ({"profile": {"firstName": "A"}, "work": {"items": []}, "metadata": {}},
         "a Reactive Resume document"),
        ({"name": "A", "meta": {"format": "FRESH@0.6.0"}, "contact": {}}, "a FRESH resume"),
        ({"name": "A", "employment": {"history": [{"employer": "E"}]}}, "a FRESH resume"),
        ({"cv": {"name": "A", "sections": {}}}, "a RenderCV document"),
        ({"SkillsPassport": {}}, "a Europass document"),
        ({"firstName": "A", "headline": "x", "positions": {"values": []}}, "a LinkedIn profile"),
        ({"first_name": "A", "experiences": []}, "a LinkedIn profile"),
    ],
)  # fmt: skip
def test_another_format_is_named_with_what_to_do(document: Any, name: str) -> None:
    with pytest.raises(InvalidResume) as refusal:
        imported(document)
    assert refusal.value.message == (
        f"This looks like {name}. Convert it to JSON Resume or to the analyzer format"
    )
    with pytest.raises(InvalidResume, match="Missing required field: header"):
        parse(json.dumps(document).encode())


def test_a_text_in_several_languages_is_read_in_english_or_the_first() -> None:
    document = {
        "basics": {"name": {"de": "Ada", "en-GB": "Ada L"}, "summary": {"fr": "", "es": "Hola"}},
        "work": [
            {"name": {"de": "Maschinen"}, "highlights": {"en": ["a", "b"], "de": ["c"]}},
            {"name": {"url": "x"}, "position": {"id": "1", "no": "2"}},
        ],
    }
    view = imported_view(document)
    assert view["header"]["name"] == "Ada L"
    assert view["sections"]["summaries"]["items"] == [{"text": "Hola"}]
    assert view["sections"]["experiences"]["items"][0] == {
        "workplace": "Maschinen",
        "bullets": ["a", "b"],
    }
    assert warnings_of(document) == {
        "basics.name": "name is in 2 languages: only en-GB is used",
        "work[0].highlights": "highlights is in 2 languages: only en is used",
        "work[1].name": "name is not text: left out",
        "work[1].position": "position is not text: left out",
    }


@pytest.mark.parametrize(
    ("project", "bullets"),
    [
        ({"keywords": ["C"]}, ["C"]),
        ({"keywords": "C"}, ["C"]),
        ({"highlights": ["a"], "keywords": ["C", "R"]}, ["a", "C, R"]),
        ({"highlights": ["a"] * 200, "keywords": ["C"]}, ["a"] * 200),
        ({"highlights": ["a"], "keywords": ["x" * 15_000] * 2}, ["a"]),
        ({"keywords": [{"name": "C"}, {}, "R"]}, ["C, R"]),
    ],
)
def test_the_keywords_of_a_project_are_one_more_of_its_bullets(
    project: Any, bullets: list[str]
) -> None:
    [item] = imported_items(with_list("projects", project), "projects")
    assert item["bullets"] == bullets
    is_left_out = "C" not in bullets[-1] and "projects[0].keywords" in warnings_of(
        with_list("projects", project)
    )
    assert is_left_out == (bullets[-1] == "a")


def test_a_json_resume_is_stored_as_an_analyzer_document() -> None:
    resume = imported({"basics": {"name": "Ada Example", "label": "Analyst"}})
    assert (resume.title, resume.name) == ("Ada Example - Analyst", "Ada Example")
    assert resume.filename == "AdaExampleResume.pdf"
    assert json.loads(resume.document) == {
        "header": {"name": "Ada Example", "title": "Analyst"},
        "sections": {},
        "title": "Ada Example - Analyst",
    }


@pytest.mark.parametrize(
    ("basics", "title"),
    [
        ({"name": "Ada"}, "Ada"),
        ({"label": "Analyst"}, "Analyst"),
        ({}, None),
        ({"name": "A" * 150, "label": "B" * 150}, f"{'A' * 150} - {'B' * 47}"),
        ({"name": "A" * 197, "label": "B"}, f"{'A' * 197} -"),
    ],
)
def test_the_title_is_what_there_is_of_name_and_label(basics: Any, title: str | None) -> None:
    assert imported_view({"basics": basics}).get("title") == title


def test_everything_of_a_whole_json_resume_has_its_place() -> None:
    view = imported_view(COMPLETE)
    assert view["header"] == {
        "name": "Ada Example",
        "title": "Analyst",
        "email": "ada@example.org",
        "phone": "+44 20 0000 0000",
        "location": "London, England, GB",
        "website": "https://example.org",
    }
    assert view["title"] == "Ada Example - Analyst"
    sections = view["sections"]
    assert [(name, s["column"], s["order"], s["name"]) for name, s in sections.items()] == [
        ("summaries", 0, 0, "Summary"),
        ("findMeOnline", 1, 1, "Find Me Online"),
        ("experiences", 0, 2, "Experience"),
        ("educations", 0, 3, "Education"),
        ("projects", 0, 4, "Projects"),
        ("volunteering", 0, 5, "Volunteering"),
        ("publications", 0, 6, "Publications"),
        ("skills", 1, 7, "Skills"),
        ("languages", 1, 8, "Languages"),
        ("awards", 1, 9, "Awards"),
        ("certificates", 1, 10, "Certificates"),
        ("interests", 1, 11, "Interests"),
        ("quotes", 1, 12, "References"),
        ("references", 1, 13, "References"),
    ]
    assert parse(json.dumps(view).encode()).warnings == ()
    assert set(warnings_of(COMPLETE)) == {
        "basics.image",
        "basics.location.address",
        "basics.location.postalCode",
        "basics.profiles[1].username",
        "work[0].description",
        "volunteer[0].url",
        "education[0].url",
        "certificates[0].url",
        "projects[0].roles",
        "projects[0].entity",
        "projects[0].type",
    }


@pytest.mark.parametrize(
    ("key", "entry", "section", "item", "back"),
    [
        # Older names.
        ("work", {"company": "E", "website": "w"}, "experiences", {"workplace": "E", "link": "w"},
         {"name": "E", "url": "w"}),
        ("work", {"description": "d"}, "experiences", {"description": "d"}, {"summary": "d"}),
        ("education", {"gpa": "1"}, "educations", {"gpa": "1"}, {"score": "1"}),
        ("publications", {"name": "N", "website": "w"}, "publications",
         {"title": "N", "link": "w"}, {"name": "N", "url": "w"}),
        ("projects", {"website": "w", "summary": "s"}, "projects",
         {"link": "w", "description": "s"}, {"url": "w", "description": "s"}),
        # A text in the place of an object.
        ("work", "E", "experiences", {"workplace": "E"}, {"name": "E"}),
        ("education", "U", "educations", {"institution": "U"}, {"institution": "U"}),
        ("projects", "P", "projects", {"title": "P"}, {"name": "P"}),
        ("volunteer", "V", "volunteering", {"institution": "V"}, {"organization": "V"}),
        ("publications", "N", "publications", {"title": "N"}, {"name": "N"}),
        ("skills", 5, "skills", {"title": "5"}, {"name": "5"}),
        ("languages", "Latin", "languages", {"name": "Latin"}, {"language": "Latin"}),
        ("awards", "A", "awards", {"title": "A"}, {"title": "A"}),
        ("certificates", "C", "certificates", {"title": "C"}, {"name": "C"}),
        ("interests", "I", "interests", {"title": "I"}, {"name": "I"}),
        ("references", "Works.", "quotes", {"quote": "Works."}, {"reference": "Works."}),
        # Several fields in one.
        ("education", {"studyType": "Bachelor", "area": "Physics"}, "educations",
         {"degree": "Bachelor, Physics"}, None),
        ("education", {"studyType": "Bachelor", "area": "Maths, pure"}, "educations",
         {"degree": "Bachelor, Maths, pure"}, None),
        ("education", {"studyType": "Arts"}, "educations", {"degree": "Arts"}, None),
        ("education", {"area": "Physics"}, "educations", {"degree": "Physics"},
         {"studyType": "Physics"}),
        ("education", {"score": 3.7}, "educations", {"gpa": "3.7"}, {"score": "3.7"}),
        ("awards", {"awarder": "Time", "date": "2014-11-01", "summary": "For x"}, "awards",
         {"description": "Time - 2014-11-01 - For x"}, None),
        ("awards", {"awarder": "A - B", "date": "2014", "summary": "C - D"}, "awards",
         {"description": "A - B - 2014 - C - D"}, None),
        ("awards", {"awarder": "Time", "date": "2014-11"}, "awards",
         {"description": "Time - 2014-11"}, None),
        ("awards", {"date": "2014", "summary": "x"}, "awards", {"description": "2014 - x"}, None),
        ("awards", {"summary": "For x"}, "awards", {"description": "For x"}, None),
        ("awards", {"awarder": "Time", "summary": "For x"}, "awards",
         {"description": "Time - For x"}, {"summary": "Time - For x"}),
        ("certificates", {"issuer": "Board, UK", "date": "2020-05-06"}, "certificates",
         {"issuer": "Board, UK, 2020-05-06"}, None),
        ("certificates", {"issuer": "Board"}, "certificates", {"issuer": "Board"}, None),
        ("certificates", {"date": "2020"}, "certificates", {"issuer": "2020"}, None),
        ("interests", {"name": "Music", "keywords": ["Harp", "Flute"]}, "interests",
         {"title": "Music", "description": "Harp, Flute"}, None),
        ("work", {"location": {"city": "London", "x": ""}}, "experiences", {"location": "London"},
         {"location": "London"}),
        ("work", {"highlights": "a"}, "experiences", {"bullets": ["a"]}, {"highlights": ["a"]}),
        # Dates; a release never goes on.
        ("work", {"startDate": "2019-03", "endDate": "2020-12"}, "experiences",
         {"dateRange": {"fromYear": 2019, "fromMonth": 2, "toYear": 2020, "toMonth": 11}}, None),
        ("work", {"startDate": "2019"}, "experiences",
         {"dateRange": {"fromYear": 2019, "isOngoing": True}}, None),
        ("work", {"endDate": "2020-01"}, "experiences",
         {"dateRange": {"toYear": 2020, "toMonth": 0}}, None),
        ("publications", {"releaseDate": "2017-08"}, "publications",
         {"dateRange": {"fromYear": 2017, "fromMonth": 7}}, None),
        ("publications", {"name": "N", "releaseDate": "soon"}, "publications", {"title": "N"},
         {"name": "N"}),
        # Words for how well a language is spoken stay beside the level.
        ("languages", {"language": "French", "fluency": "B2, rusty"}, "languages",
         {"name": "French", "levelText": "B2, rusty", "level": 4}, None),
        ("languages", {"fluency": "Enough"}, "languages", {"levelText": "Enough"}, None),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_an_entry_of_a_list_is_an_item_and_comes_back(
    key: str, entry: Any, section: str, item: Any, back: Any
) -> None:
    assert imported_items(with_list(key, entry), section) == [item]
    assert entry_back(key, entry) == (back or entry)


@pytest.mark.parametrize(
    ("fluency", "level"),
    [
        ("Native speaker", 5), ("C2", 5), ("Native or Bilingual Proficiency", 5),
        ("fluent", 4), ("C1 (advanced)", 4), ("Full Professional Proficiency", 4), ("B2", 4),
        ("Limited Working Proficiency", 3), ("Limited professional", 3), ("intermediate", 3),
        ("B1", 3), ("Basic", 2), ("elementary", 2), ("A2", 2), ("Beginner", 1), ("A1", 1),
        ("Enough to order", None),
    ],
)  # fmt: skip
def test_words_mean_a_level_if_they_are_known(fluency: str, level: int | None) -> None:
    [item] = imported_items(with_list("languages", {"fluency": fluency}), "languages")
    assert item.get("level") == level


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ({"city": "Antibes", "countryCode": "US"}, "Antibes, US"),
        ({"city": "Austin", "region": "TX", "countryCode": "US"}, "Austin, TX, US"),
        ({"city": "San Francisco", "region": "CA"}, "San Francisco, CA"),
        ({"city": "Toronto", "countryCode": "CA"}, "Toronto, Canada"),
        ({"city": "Berlin", "region": "Berlin", "countryCode": "DE"}, "Berlin, Berlin, DE"),
        ({"city": "Washington, D.C."}, "Washington, D.C."),
        ({"countryCode": "US"}, "US"),
        ({"countryCode": "DE"}, "Germany"),
        ({"city": "x" * 19_993, "countryCode": "DE"}, "x" * 19_993 + ", , DE"),
        ({"city": "x" * 19_991, "countryCode": "DE"}, "x" * 19_991 + ", Germany"),
        ({}, None),
        ("Paris", "Paris"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_place_is_one_line(location: Any, line: str | None) -> None:
    assert imported_view({"basics": {"location": location}})["header"].get("location") == line


# Dates


def span_of(**dates: Any) -> Any:
    [item] = imported_items(with_list("work", {"name": "Engines", **dates}), "experiences")
    return item.get("dateRange")


@pytest.mark.parametrize(
    ("text", "year", "month"),
    [
        ("2020", 2020, None),
        ("2020-01", 2020, 0),
        ("2020-12-31", 2020, 11),
        ("2020-1-5", 2020, 0),
        ("2020/03", 2020, 2),
        ("2020.03.01", 2020, 2),
        ("2020-03-01T00:00:00.000Z", 2020, 2),
        ("03/2020", 2020, 2),
        ("March" + " " * 51 + "2020", 2020, 2),
        ("Sept. 2020", 2020, 8),
        ("mar, 2020", 2020, 2),
        (" 2020-01 ", 2020, 0),
        (2020, 2020, None),
        ("01.09.2014", 2014, 8),
        ("13/04/2014", 2014, 3),
        ("04/13/2014", 2014, 3),
        ("04/04/2014", 2014, 3),
        ("13/01/2014", 2014, 0),
        ("12/25/2014", 2014, 11),
        ("2014 год", 2014, None),
        ("2014-00-00", 2014, None),
        ("2020-00", 2020, None),
        ("2014年9月", 2014, 8),
        ("2014年9月1日", 2014, 8),
        ("2014年", 2014, None),
        ("2014年九月", 2014, 8),
        ("2014년 9월", 2014, 8),
        ("2014. 9. 1.", 2014, 8),
        ("٢٠١٤-٠٩", 2014, 8),
        ("２０１４年９月", 2014, 8),
        ("März 2014", 2014, 2),
        ("Maerz 2014", 2014, 2),
        ("setiembre 2014", 2014, 8),
        ("sep-2014", 2014, 8),
        ("Sep2014", 2014, 8),
        ("Sep 1, 2014", 2014, 8),
        ("1 September 2014", 2014, 8),
        ("September 1st, 2014", 2014, 8),
        ("1er septembre 2014", 2014, 8),
        ("1. ZÁŘÍ 2014", 2014, 8),
        ("1 de septiembre de 2014", 2014, 8),
        ("d\N{RIGHT SINGLE QUOTATION MARK}abril del 2014", 2014, 3),
        ("2014. szeptember 1.", 2014, 8),
        ("1 октября 2014 г.", 2014, 9),  # noqa: RUF001  (Cyrillic)
        ("Kasım 2014", 2014, 10),  # noqa: RUF001  (Turkish)
        ("سبتمبر 2014", 2014, 8),
        ("फरवरी 2014", 2014, 1),
        *((f"{name} 2020", 2020, month) for month, name in enumerate(month_name[1:])),
    ],
)
def test_a_year_and_a_month_from_0_are_read_and_a_day_is_not(
    text: Any, year: int, month: int | None
) -> None:
    start = {"fromYear": year} | ({} if month is None else {"fromMonth": month})
    end = {"toYear": year} | ({} if month is None else {"toMonth": month})
    assert span_of(startDate=text, endDate=text) == start | end
    assert span_of(startDate=text) == start | {"isOngoing": True}
    assert span_of(endDate=text) == end


@pytest.mark.parametrize(
    "text",
    [
        "soon", "Summer\x1b 2020", "2020-13", "20", "0999", "3000", "09/14", "May", "2014/2015",
        "Sep 2014 - Oct 2015", "13/13/2014", "Brumaire 2014", "2014-09-01 or so",
        "2014-01-01 2015-01-01",
    ],
)  # fmt: skip
def test_what_is_no_date_is_not_guessed(text: str) -> None:
    assert span_of(startDate=text) is None
    assert span_of(startDate="2020", endDate=text) == {"fromYear": 2020}
    assert warnings_of(with_list("work", {}, {"startDate": text})) == {
        "work[1].startDate": (
            f'startDate "{text}" cannot be read as a date: left out'.replace("\x1b", "\\x1b")
        )
    }


@pytest.mark.parametrize(
    "text", ["03/04/2014", "3-4-2014", "Summer 2014", "2014 Q3", "listopad 2014"]
)
def test_of_what_can_mean_two_months_the_year_is_read(text: str) -> None:
    assert span_of(startDate=text, endDate=text) == {"fromYear": 2014, "toYear": 2014}
    assert warnings_of(with_list("work", {"startDate": text})) == {
        "work[0].startDate": f'startDate "{text}" does not say which month: only the year is used'
    }


@pytest.mark.parametrize(
    "end",
    [
        *(words.present for words in WORDS.values()),
        "aujourd'hui", "AUJOURD\N{RIGHT SINGLE QUOTATION MARK}HUI", "Bis heute", "À ce jour", "a ce jour", "hasta la fecha", "hoy",
        "till date", "To date", "(Present)", "- present", "heute.", "Presente", "Gegenwart", "今",
        "現在に至る", "现在", "재직 중", "н.в.", "по настоящее время", "z. Zt.", "à présent",
        "en la actualidad", "d.d.", "tills vidare", "aktualnie", "до сих пор", "إلى الآن", "在职",
    ],
)  # fmt: skip
def test_what_is_not_over_is_read_in_every_language_of_our_pdfs(end: str) -> None:
    assert span_of(startDate="2020", endDate=end) == {"fromYear": 2020, "isOngoing": True}
    assert warnings_of(with_list("work", {"name": "E", "startDate": "2020", "endDate": end})) == {}


@pytest.mark.parametrize(
    ("end", "should_continue"),
    [
        *((end, True) for end in ("Present", "current", " NOW ", "ongoing", "today", "", None)),
        *((end, False) for end in ("presently", 5, {"year": 2021})),
    ],
)
def test_an_end_that_is_still_to_come(end: Any, should_continue: bool) -> None:
    span = {"fromYear": 2020} | ({"isOngoing": True} if should_continue else {})
    assert span_of(startDate="2020", endDate=end) == span
    is_reported = "work[0].endDate" in warnings_of(with_list("work", {"endDate": end}))
    assert is_reported is not should_continue
    assert span_of(endDate=end) == ({"isOngoing": True} if should_continue and end else None)


def test_whatever_stands_beside_what_is_left_out_is_read() -> None:
    document = {
        "basics": "x",
        "work": [None, {"name": "E", "highlights": ["a", 5, "", None, True, {"name": "n"},
                                                    {"title": "t"}]}, 5, [1], "F"],
    }  # fmt: skip
    assert imported_items({"$schema": ADDRESS, **document}, "experiences") == [
        {"workplace": "E", "bullets": ["a", "5", "n", "t"]},
        {"workplace": "5"},
        {"workplace": "F"},
    ]
    lists: list[Any] = [[{}, None, {"company": ""}, {"url": []}], {"name": "x"}, "x", 5]
    for nothing in lists:
        assert imported_view({"basics": {}, "work": nothing})["sections"] == {}


def test_a_reference_with_a_text_is_a_quote_and_one_without_a_name() -> None:
    references = with_list(
        "references",
        {"name": "Bo", "reference": "Good."},
        {"name": "Cy", "reference": ""},
        {"name": "Di", "reference": {"text": "Good."}},
        {"reference": 5},
    )
    assert imported_items(references, "quotes") == [
        {"quote": "Good.", "author": "Bo"},
        {"quote": "5"},
    ]
    assert imported_items(references, "references") == [{"name": "Cy"}, {"name": "Di"}]


@pytest.mark.parametrize(
    ("profile", "item"),
    [
        ({"network": "GitHub", "url": "https://github.example/ada"},
         {"title": "GitHub", "link": "https://github.example/ada", "icon": "35-github"}),
        ({"network": " X ", "username": "ada"},
         {"title": " X ", "link": "ada", "icon": "29-twitter"}),
        ({"network": "Own", "website": "a.example"}, {"title": "Own", "link": "a.example"}),
        ({"network": "Own", "url": " "}, {"title": "Own"}),
        ("https://a.example", {"link": "https://a.example"}),
    ],
)  # fmt: skip
def test_a_profile_is_a_title_with_its_link_and_icon(profile: Any, item: dict[str, str]) -> None:
    assert imported_items({"basics": {"profiles": [profile]}}, "findMeOnline") == [item]


def test_known_networks_have_icons_of_the_fixed_set() -> None:
    networks = [
        "AngelList", "Behance", "Discord", "Dribbble", "Facebook", "Figma", "Flickr", "GitHub",
        "Instagram", "Kaggle", "LinkedIn", "Medium", "Pinterest", "Quora", "Reddit", "Skype",
        "SlideShare", "SoundCloud", "Spotify", "Stack Overflow", "StackOverflow", "Tumblr",
        "Twitter", "Vimeo", "VK", "Weibo", "WhatsApp", "X", "YouTube",
    ]  # fmt: skip
    document = {"basics": {"profiles": [{"network": network} for network in networks]}}
    assert all("icon" in item for item in imported_items(document, "findMeOnline"))
    assert warnings_of(document) == {}
