"""Which resumes a query finds: an index of their words, and the proof, agree with the rules."""

import json
import unicodedata
from itertools import chain
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resumes.search.query import Kind, Query, hits, parse_query
from resumes.search.texts import GROUPS
from resumes.search.words import index_tokens
from tests.support import finding
from tests.support.documents import SECTIONS, a_document, with_section

FAMILIES: Final = [
    family.split(" ")
    for family in (
        "java javascript JAVA java-script internationalization internationalizations",
        "c c++ C# c+ c+d C++17 .c# ++ + # c+# c-c++",
        ".NET ..net ASP.NET net .net-core core .netcore netcore full-stack fullstack",
        "Node.js node JS nodejs Node-JS Node.JS+ js+ 3.8 3 8 38",
        "e-mail email mail e\u2011mail E-Mail-Marketing marketing mailmarketing",
        "ada ada@example.org ada.lovelace@example.org adalovelace example.org lovelace ada@ @ exam",
        "東京大学 東京 京大 大 大学東京 React開発 React 開発 。 東",
        "Émile emile E\u0301MILE cafe\u0301 ŁÓDŹ lodz straße STRASSE ½ 1 2 ﬁne fine \u017fkill skill",
        "mar Maria maria's O\u2019Brien O'Brien \u02bcn obrien jean-pierre Pierre jeanpierre jean-p",
        "서울에서 서울 القيرواني मृणालिनी मृण ภาษาไทย \u202e x oaxs netpswclo name",
        "a-b-c a-.b ab a b-c R&D rd snake_case a b c - . .. * security+ security 10+ 10",
    )
]
SEPARATORS: Final = (" ", " ", " ", "", "-", ".", ", ", "/", "@", "\n", "'", "\x1e")
PREFIXES: Final = ("", "", "", "", "-", "skill:", "-name:", "TITLE: ", "work:-", "foo:")


@st.composite
def resumes_and_queries(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A document and a query of the same few words."""
    family = st.sampled_from(draw(st.sampled_from(FAMILIES)))
    words = st.tuples(family, st.sampled_from(SEPARATORS)).map("".join)
    texts = st.lists(words, min_size=1, max_size=4).map("".join)
    return draw(_documents(texts)), draw(_queries(texts))


@st.composite
def _documents(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> dict[str, Any]:
    fields = st.fixed_dictionaries({}, optional={"name": texts, "email": texts, "website": texts})
    sections = {}
    for name in draw(st.lists(st.sampled_from([*SECTIONS, "extras"]), max_size=2, unique=True)):
        values: dict[str, st.SearchStrategy[Any]] = {
            "text": texts,
            "texts": st.tuples(texts, st.none(), texts).map(list),
            "slices": texts.map(lambda text: [{"title": text, "value": 3}]),
        }
        kinds = SECTIONS.get(name, {"any": "texts"})
        field = draw(st.sampled_from([field for field in kinds if kinds[field] in values]))
        items = [{field: draw(values[kinds[field]])}]
        sections[name] = {"column": 0, "name": draw(texts), "items": items}
    return {"header": draw(fields), "sections": sections, "title": draw(st.none() | texts)}


@st.composite
def _queries(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    query = ""
    for _ in range(draw(st.integers(1, 2))):
        word = draw(texts)
        kind = draw(st.sampled_from(["word", "phrase", "phrase", "beginning", "part", "quote"]))
        if kind in ("phrase", "quote"):
            word = f'"{word}' + '"' * (kind == "phrase")
        elif kind == "part":
            word = word[: draw(st.integers(1, 6))]
        query += draw(st.sampled_from(PREFIXES)) + word + "*" * (kind == "beginning")
        query += draw(st.sampled_from([" ", " ", ""]))
    return query


def agree(document: dict[str, Any], text: str, *, is_typing: bool = False) -> bool:
    """Whether a query finds a resume, after the index, the proof and the rules said the same."""
    stored, name = json.dumps(document), document["header"].get("name") or None
    columns: Any = {"title": document.get("title") or None, "name": name, "label": "zz-2026"}
    query = parse_query(text, is_typing=is_typing)
    expected = finding.is_found(document, text, **columns, is_typing=is_typing)
    may_match = finding.may_have(index_tokens(stored, **columns), query)
    assert query.matches(stored, **columns) == expected
    assert may_match == expected if query.is_exact else may_match >= expected
    return expected


@settings(max_examples=200)
@given(resumes_and_queries(), st.booleans())
def test_index_and_proof_agree_with_the_rules(
    both: tuple[dict[str, Any], str], is_typing: bool
) -> None:
    agree(*both, is_typing=is_typing)


@pytest.mark.parametrize(
    ("text", "query", "in_title", "in_skills"),
    [
        ("JavaScript", "java", True, False),
        ("JavaScript", '"java"', False, False),
        ("JavaScript", "java*", True, True),
        ("JavaScript", "jav*", True, False),
        ("Internationalizationist", "internationalization", True, False),
        ("Internationalizationist", "internationalizations", False, False),
        ("Internationalizationist", '"internationalization"', False, False),
        ("C++, C#", "c", True, False),
        ("C++", "c+", True, False),
        ("C++", '"c+"', False, False),
        ("C+", "c++", False, False),
        ("10+java", "10+", False, False),
        ("Security+", '"security"', True, True),
        ("..net", ".net", False, False),
        (".NET-Core", ".net", True, True),
        (".NET-Core", ".netcore", True, True),
        (".NET full-stack", '".net fullstack"', True, True),
        ("E-mail", "email", True, True),
        ("E-mail", "mai", True, False),
        ("email", "e-mail", True, True),
        ("e mail", "e-mail", False, False),
        ("e mail", '"e-mail"', True, True),
        ("machine-learning, Go", '"machine learning go"', True, True),
        ("machine learning", '"machine learn"', False, False),
        ("learning machine", '"machine learning"', False, False),
        ("it'squad", "it's*", True, False),
        ("it'squad", "it'sq*", True, True),
        ("grace.hopper@example.org", "hopper@exam", True, False),
        ("grace.hopper@example.org", "hopper@exam*", True, True),
        ("grace.hopper@example.org", "gracehopper@example.org", True, True),
        ("grace.hopper@example.org", "grace@example.org", False, False),
        ("東京大学", "京大", True, True),
        ("東京大学", "東京大", True, True),
        ("東京、京大", "東京大", False, False),
        ("東京 大学", "東京大学", False, False),
        ("東京大学", '"東京 大学"', True, True),
        ("서울에서", "서울*", True, True),
        ("مُحَمَّد", "محمد", True, True),
    ],
)
def test_a_text_is_found_in_the_title_and_in_skills(
    text: str, query: str, in_title: bool, in_skills: bool
) -> None:
    assert agree(a_document(title=text), query) is in_title
    document = with_section("skills", {"title": text, "tags": [text]})
    assert agree(document, query) is in_skills
    negative = "-" + query
    assert agree(a_document(title=text), negative) is not in_title
    assert agree(document, f"ada {negative}") is not in_skills


def test_only_63_characters_of_a_word_count() -> None:
    document = json.dumps(with_section("skills", {"title": "x" * 70}))
    for letters, is_found in ((62, False), (63, True), (64, True), (70, True)):
        query = parse_query("skill:" + "x" * letters)
        assert query.matches(document, title=None, name=None) is is_found
        assert finding.may_have(index_tokens(document, title=None, name=None), query) is is_found


def test_a_phrase_is_in_one_text() -> None:
    item = {"title": "Machine", "description": "learning", "tags": ["deep", "water"]}
    document = with_section("skills", item)
    assert agree(document, "machine deep learning")
    assert not agree(document, '"machine learning"')
    assert not agree(document, '"deep water"')


def found_by(text: str, *, is_typing: bool = False) -> list[str]:
    """The terms of a query: sign, groups, kind and words."""
    return [
        ("-" if term.is_negative else "")
        + ("" if term.groups == GROUPS else term.groups + ":")
        + " ".join(term.readings[-1]).replace("\0", "")
        + {Kind.WORD: "", Kind.BEGINNING: "*", Kind.PHRASE: '"'}[term.kind]
        for term in parse_query(text, is_typing=is_typing).terms
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Python  PORTO python", ["python", "porto"]),
        ("skill:python place:Porto", ["s:python", "p:porto"]),
        ("name:a title:b email:c work:d school:e label:f", ["n:a", "t:b", "e:c", "w:d", "c:e", "l:f"]),
        ('"Machine  Learning" -"data science"', ['machine learning"', '-data science"']),
        ('skill:"machine learning" -work:"x y"', ['s:machine learning"', '-w:x y"']),
        ("-java -skill:java", ["-java", "-s:java"]),
        ("pyth* skill:java* -engi*", ["pyth*", "s:java*", "-engi*"]),
        ("jav* c*", ["jav", "c"]),
        ("c++ c# .net node.js e-mail", ["c++", "c#", ".net", "nodejs", "email"]),
        ("ada.lovelace@example.org", ["ada lovelace example org"]),
        ("東京大学 東", ["東京大学", "東"]),
        # What is not a query is searched as words.
        ("foo:bar http://x.org 12:30", ["foo", "bar", "http", "xorg", "12", "30"]),
        ("(java OR c) AND NOT x", ["java", "or", "c", "and", "not", "x"]),
        ("html/css,js", ["html", "css", "js"]),
        ("-html/css", ["-html", "-css"]),
        ("--java - -- java- ", ["java"]),
        ('"a b"-c', ['a b"', "c"]),
        ("wo*rd *word", ["wo", "rd", "word"]),
        ('"data science', ["data", "science"]),
        ('skill:"data science', ["s:data", "science"]),
        ('a "b c" d" e', ["a", 'b c"', "d", "e"]),
        ('"" skill:"" -"" "..." * ** -* :', []),
        ("skill: name: -", []),
        # What many type, and there is only one meaning to it.
        ("skill: python Skill:go", ["s:python", "s:go"]),
        ("skill:-java skill: -go -skill:-c", ["-s:java", "-s:go", "-s:c"]),
        ("skill: name:ada skill:name:x", ["n:ada", "s:name", "s:x"]),
        ("\u201cdata science\u201d \u201ea b\u201c skill\uff1apython", ['data science"', 'a b"', "s:python"]),
        ("\u017fkill:a", ["skill", "a"]),
    ],
)  # fmt: skip
def test_what_a_query_means(text: str, terms: list[str]) -> None:
    assert found_by(text) == terms


@pytest.mark.parametrize(
    ("text", "needs_proof"),
    [
        ("java", False),
        ("pyth*", False),
        ("-skill:c++", False),
        ('"mar"', True),
        ('place:"porto"', False),
        ('"a b"', True),
        ('skill:"e-mail"', True),
        ("skill:e-mail", False),
        ("ada@example.org", True),
        ("東京", False),
        ('"東京"', False),
        ("東京都", True),
        ("internationalisms", True),
        ("internationalism", False),
        ("skill:internationalisms", False),
    ],
)
def test_what_tokens_cannot_tell_is_compared_with_the_text(text: str, needs_proof: bool) -> None:
    query = parse_query(text)
    assert [term.needs_proof for term in query.terms] == [needs_proof]
    assert query.is_exact is not needs_proof
    negative = parse_query("-" + text.removeprefix("-"))
    assert len(negative.looked_up) == (not needs_proof)


def test_the_last_word_is_a_beginning_while_it_is_typed() -> None:
    assert found_by("data scie", is_typing=True) == ["data", "scie*"]
    assert found_by("-skill:pyth", is_typing=True) == ["-s:pyth*"]
    assert found_by("ada@ex", is_typing=True) == ["ada ex*"]
    for done in ("data science ", "data science,", '"data science"'):
        assert found_by(done, is_typing=True) == found_by(done)
    assert found_by("data sci", is_typing=True) == ["data", "sci"]
    assert found_by("skill:", is_typing=True) == found_by('"', is_typing=True) == []


def test_a_long_query_is_cut_and_says_so() -> None:
    words = [f"word{number}" for number in range(1_000)]
    query = parse_query(" ".join(words[:20]))
    assert (len(query.terms), query.is_cut) == (20, False)
    assert parse_query(" ".join(words[:21])) == Query(query.terms, is_cut=True)
    assert parse_query(" ".join(words)) == Query(query.terms, is_cut=True)
    assert parse_query("x" * 500).is_cut is False
    assert [parse_query(f'"{"da " * count}"').is_cut for count in (5, 6)] == [False, True]
    assert [parse_query("-".join("ab" * count) + "@c").is_cut for count in (4, 5)] == [False, True]
    assert parse_query("da " * 100).is_cut is False
    assert parse_query("x" * 10_000_000) == Query(parse_query("x" * 500).terms, is_cut=True)
    [term] = parse_query(f'"{" ".join(words[:40])}"').terms
    assert max(map(len, term.rows)) == 8


@given(st.text(st.characters() | st.sampled_from("\"-*:+#.@'()^{}\0\ud800\u202e")), st.booleans())
@example("NEAR(a b, 3) AND {a}:b ^c a+b \0 \ud800 a:* !b | c & d <-> e \\'; --", False)
def test_only_letters_digits_marks_and_three_signs_are_looked_up(
    text: str, is_typing: bool
) -> None:
    for term in parse_query(text, is_typing=is_typing).terms:
        for token in (*chain(*term.rows), *term.beginnings):
            assert token[0] in term.groups
            assert 2 <= len(token) <= 64
            assert all(char in "+#." or unicodedata.category(char)[0] in "LMN" for char in token)
        assert term.rows or term.beginnings
        assert all(term.rows)
        assert all(len(beginning) > 4 for beginning in term.beginnings)


def marked(text: str, query: str, group: str | None = None) -> list[str]:
    return [text[start:end] for start, end in hits(text, parse_query(query), group)]


@pytest.mark.parametrize(
    ("text", "query", "group", "found"),
    [
        ("Émile Zola, CAFE\u0301", "emile cafe", None, ["Émile", "CAFE\u0301"]),
        ("Java and JavaScript", "java", None, ["Java"]),
        ("Maria Martin", "mar", "n", ["Mar", "Mar"]),
        ("Maria Martin", "mar", None, []),
        ("Maria Martin", 'mart* "maria"', None, ["Maria", "Mart"]),
        ("E-mail, C++, Node.js", "email c++ node", "s", ["E-mail", "C++", "Node"]),
        ("Jean-Pierre", "jean-p", "n", ["Jean-P"]),
        ("to grace.hopper@example.org", "hopper@exam", "e", ["hopper@exam"]),
        ("deep machine-learning", '"deep machine" learning', "o", ["deep machine", "learning"]),
        ("machine learning skills", '"machine learning" learning', "o", ["machine learning"]),
        ("東京大学の学生", "京大 学", "o", ["京大学", "学"]),
        ("서울에서", "서울*", "o", ["서울"]),
        ("Python", "skill:python", "w", []),
        ("Python", "skill:python", "s", ["Python"]),
        ("Python", "-python", "s", []),
        ("½ and ﬁne", "1 fine", "o", ["½", "ﬁne"]),
        ("data\x1escience", '"data science"', "o", ["data\x1escience"]),
        ("", "a", None, []),
    ],
)
def test_what_is_marked(text: str, query: str, group: str | None, found: list[str]) -> None:
    assert marked(text, query, group) == found


@given(resumes_and_queries())
def test_a_text_is_marked_if_it_is_found(both: tuple[dict[str, Any], str]) -> None:
    document, text = both
    for group, content in finding.iter_texts(document, None, None, None):
        letter = {"place": "p", "school": "c"}.get(group, group[0])
        sought = [words for words in finding.iter_words(text) if not words.is_negative]
        found = [
            words
            for words in sought
            if group in words.groups and finding.has(content, words, group)
        ]
        assert bool(hits(content, parse_query(text), letter)) == bool(found)
