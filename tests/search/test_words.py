"""The words of a resume: which texts are searched, in which group, and what a word is."""

import json
import unicodedata
from itertools import product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resumes.analyzer.readable import header_lines, section_lines
from resumes.errors import StoreIncompatible
from resumes.search.texts import GROUPS, section_group
from resumes.search.words import EVERY_RESUME, MAX_TOKENS, fold, index_tokens, words_in
from resumes.text import folded
from tests.support.documents import DOCUMENTS, HEADER, SECTIONS, a_document, with_section
from tests.support.finding import plain


def tokens_of(document: Any, title: str | None = None, label: str | None = None) -> set[str]:
    name = document["header"].get("name")
    return index_tokens(json.dumps(document), title=title, name=name, label=label)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Senior NURSE, Zürich", "senior nurse zurich"),
        ("Łódź, Straße, İzmir, Ἀθῆναι", "lodz strasse izmir αθηναι"),
        ("Node.js e-mail O\u2019Brien R&D snake_case", "node js nodejs e mail email o brien obrien "
         "r d rd snake case snakecase"),
        ("C, C++ (17) and C#. F#/c+ C++17", "c c++ 17 and c# f# c+"),
        ("Security+, 10+ years, notepad++", "security+ security 10+ 10 years notepad++ notepad"),
        ("objective-c++", "objective c++ objectivec++ objectivec"),
        (".NET ASP.NET ...etc end.", ".net net asp aspnet etc end"),
        ("grace.hopper@example.org", "grace hopper gracehopper example org exampleorg"),
        ("- a - .. 'b' && _c_ ++ #1", "a b c 1"),
        ("a--b a-.b c+d x/y 1,000.5", "a b .b c d x y 1 000 5 0005"),
        ("½ ﬁne ① Ⅷ x²", "1 2 fine 1 viii x2"),
        ("東京大学", "東 京 大 学 東京 京大 大学"),
        ("React開発、東", "react 開 発 開発 東"),
        ("プログラム", "フ ロ ク ラ ム フロ ロク クラ ラム"),
        ("मृणालिनी खेतवाल", "मृणालिनी खेतवाल"),
        ("می\u200cشود", "میشود"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("co\u00adoperate cafe\u0301", "cooperate cafe"),
        ("py\u202ethon \ud800 \0 \x1e \x1f \U0001f600", "py thon"),
    ],
)  # fmt: skip
def test_what_a_word_is(text: str, words: str) -> None:
    assert words_in(fold(text)) == {plain(word) for word in words.split()}


@given(st.text())
def test_case_and_accents_do_not_count_as_in_all_of_the_project(text: str) -> None:
    assert _letters(fold(text)) == _letters(folded(text).replace("\u02bc", "'"))


def _letters(text: str) -> str:
    return "".join(char for char in text if unicodedata.category(char)[0] in "LMN")


TEXTS: Final = {
    "text": "wanted",
    "texts": [None, "wanted"],
    "slices": [{"title": "wanted", "value": 3, "unknown": "hidden"}],
}


@pytest.mark.parametrize("section_type", SECTIONS)
def test_the_texts_that_are_shown_are_searched_and_no_others(section_type: str) -> None:
    for field, kind in SECTIONS[section_type].items():
        # The highest grade is shown with a grade.
        item = {"gpa": "1", field: TEXTS.get(kind), "unknown": "hidden", "record": "hidden"}
        document = with_section(section_type, item, style={"layout": "hidden"}, unknown="hidden")
        shown = [phrase.text for line in section_lines(document, None) for phrase in line.phrases]
        found = {token for token in tokens_of(document) if token.endswith(("wanted", "hidden"))}
        is_shown = any("wanted" in text for text in shown)
        assert found == ({section_group(section_type) + "wanted"} if is_shown else set()), field


def test_each_field_of_the_header_is_searched_in_its_group() -> None:
    document = a_document(header={field: f"of {field}" for field in HEADER} | {"unknown": "hidden"})
    shown = [phrase.text for line in header_lines(document) for phrase in line.phrases]
    assert sorted(shown) == sorted(f"of {field}" for field in HEADER)
    tokens = tokens_of(document, title="CV", label="Class-2026")
    groups = {"name": "n", "title": "t", "email": "e", "location": "p"}
    assert {groups.get(field, "o") + field for field in HEADER} <= tokens
    assert {"tcv", "lclass", "l2026", "lclass2026"} <= tokens
    assert not {token for token in tokens if token.endswith("hidden")}
    assert {"tof", "tname", "tresume"} <= tokens_of(document)  # as a list shows it
    assert {"tnew", "tresume"} <= tokens_of(a_document(header={}))


def test_groups_of_sections() -> None:
    groups: dict[str, set[str]] = {group: set() for group in GROUPS}
    for section_type in SECTIONS:
        groups[section_group(section_type)].add(section_type)
    assert groups.pop("s") == {
        *("skills", "additionalTechnologies", "languages", "strengths", "industryExperiences")
    }
    assert groups.pop("w") == {
        *("experiences", "additionalExperiences", "volunteering", "projects")
    }
    assert groups.pop("c") == {"educations", "courses", "certificates"}
    assert {name for name, section_types in groups.items() if section_types} == {"o"}
    assert section_group("section types to come") == "o"


def test_headings_are_searched_if_they_are_shown_and_extra_sections_whole() -> None:
    document = with_section("skills", {"title": "Go"}, name="Tools")
    assert {"otools", "sgo"} <= tokens_of(document)
    assert "otools" not in tokens_of(with_section("skills", name="Tools"))
    document = with_section("extras", {"kind": ["Piano", {"level": "grade 8"}]}, "Cello", 5)
    assert {"opiano", "ograde", "o8", "ocello"} <= tokens_of(document)
    assert not {"okind", "olevel", "o5"} & tokens_of(document)


def test_a_field_that_an_earlier_release_did_not_know_is_searched_if_it_is_shown() -> None:
    item = {"title": "Word", "description": "fine"}
    assert "sfine" in tokens_of(with_section("additionalTechnologies", item))
    item["description"] = ["not", "a", "text"]  # type: ignore[assignment]  # 1.0.0 stored anything
    assert tokens_of(with_section("additionalTechnologies", item)) & {"snot", "stext"} == set()


def test_name_title_and_address_are_found_by_beginnings() -> None:
    document = a_document(header={"name": "Jean-Marc", "email": "a.bo@x.org", "location": "Rome"})
    tokens = tokens_of(document, title="C++ Internationalization")
    names = "j je jea jean jeanm jeanma jeanmar jeanmarc m ma mar marc"
    assert {token[1:] for token in tokens if token[0] == "n"} == {*names.split()}
    emails = "a ab abo b bo x xo xor xorg o or org"
    assert {token[1:] for token in tokens if token[0] == "e"} == {*emails.split()}
    titles = {"internationalization"[:end] for end in range(1, 17)}
    assert {token[1:] for token in tokens if token[0] == "t"} == {"c", "c+", "c++", *titles}
    assert {token[1:] for token in tokens if token[0] == "p"} == {"rome"}


@given(DOCUMENTS, st.text(), st.text())
def test_tokens_have_only_letters_digits_marks_and_three_signs(
    document: dict[str, Any], title: str, label: str
) -> None:
    for token in tokens_of(document, title, label) - {EVERY_RESUME}:
        assert token[0] in GROUPS
        assert 2 <= len(token) <= 64
        assert all(char in "+#." or unicodedata.category(char)[0] in "LMN" for char in token)


def test_long_words_and_long_resumes_are_cut() -> None:
    assert "o" + "a" * 63 in tokens_of(with_section("summaries", {"text": "a" * 70}))
    words = [*map("".join, product("abcdefghijklmnopqrstuvwxy", repeat=3))]
    items = [{"text": " ".join(words[at : at + 4_000])} for at in range(0, len(words), 4_000)]
    document = with_section("summaries", *items)
    assert len(tokens_of(document)) > len(words)
    jobs = [{"description": item["text"]} for item in items]
    document["sections"] |= with_section("experiences", *jobs)["sections"]
    tokens = tokens_of(document, title="\x1f" * 2_000 + "b" * 30)
    assert len(tokens) == MAX_TOKENS
    assert {EVERY_RESUME, "nada", "waaa", "oaaa"} <= tokens
    assert not {"tb", "oyyy"} & tokens
    document = with_section("summaries", *[{"text": "\x1e" * 20_000}] * 5, {"text": "late"})
    assert "olate" not in tokens_of(document)


def test_a_damaged_document_is_reported_and_damaged_parts_are_passed_over() -> None:
    with pytest.raises(StoreIncompatible, match="damaged"):
        index_tokens("{}", title=None, name=None)
    sections = {"skills": {"items": [None, {"title": ["x"]}, {"title": "Go"}]}, "courses": 3}
    assert "sgo" in tokens_of(a_document(sections=sections))
