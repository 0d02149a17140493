import pytest
from hypothesis import given
from hypothesis import strategies as st

from resumes.store.search_words import (
    FIELD_CHARACTERS,
    folded,
    holds,
    parse_terms,
    pieces_of_terms,
    pieces_of_words,
    searched_words,
)

ADA = searched_words("Señor Engineer (C++)", "Ada Lovelace", "ada.lovelace@mail.example.com")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("ADA", "ada"),
        ("ÀÉÎÕÜ Ñ", "aeiou n"),
        ("Straße", "strasse"),
        ("ŁÓDŹ Ørsted Æsir œuvre", "lodz orsted aesir oeuvre"),
        ("İstanbul \u0131s\u0131", "istanbul isi"),
        ("ﬁne \uff21\uff22", "fine ab"),
        ("山田 Ελένη", "山田 ελενη"),
    ],
)
def test_case_and_accents_make_no_difference(text: str, plain: str) -> None:
    assert folded(text) == plain


@pytest.mark.parametrize(
    "text",
    ["ngin", "senor", "LOVELACE", "ada lov", "lov ada", "e@mail.ex", "c++", "a", "ad", "lo", "co"],
)
def test_parts_of_words_and_beginnings_are_found(text: str) -> None:
    assert holds(ADA, parse_terms(text))


@pytest.mark.parametrize("text", ["da", "g", "om", "ada love lady", "adalovelace", "lovelace ng"])
def test_fewer_than_three_characters_inside_a_word_and_absent_words_are_not(text: str) -> None:
    assert not holds(ADA, parse_terms(text))


def test_a_resume_without_a_title_is_found_as_it_is_shown() -> None:
    assert searched_words(None, "Ada", None) == "ada resume"
    assert searched_words(" ", None, None) == "new resume"


def test_only_the_beginning_of_a_long_field_is_searched() -> None:
    words = searched_words("x" * 20_000, "y" * 20_000, "z" * 20_000)
    assert words.split(" ") == [char * FIELD_CHARACTERS for char in "xyz"]


def test_only_the_first_200_characters_and_ten_words_of_a_search_count() -> None:
    assert parse_terms("ada ADA Ada") == ["ada"]
    assert parse_terms(" ".join(map(str, range(20)))) == [str(number) for number in range(10)]
    assert parse_terms("a" * 20_000) == ["a" * 200]
    assert parse_terms(" \t\n\u2003") == []


TEXTS = st.text(st.sampled_from("abß ́-_.@+İ山\ud800\x00"), max_size=12) | st.text(max_size=12)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_words_that_hold_the_terms_have_their_pieces(
    title: str, name: str, email: str, text: str
) -> None:
    words, terms = searched_words(title, name, email), parse_terms(text)
    if holds(words, terms):
        assert pieces_of_terms(terms) <= pieces_of_words(words)


def test_a_short_term_is_looked_up_by_all_its_pieces_and_a_long_one_by_half() -> None:
    assert pieces_of_terms(["comple", "a", "an"]) == {"com", "omp", "mpl", "ple", "a", "an"}
    assert pieces_of_terms(["engineering"]) == {"eng", "gin", "nee", "eri", "ing"}
    assert pieces_of_terms(["engineers."]) == {"eng", "gin", "nee", "ers", "rs."}


@given(TEXTS)
def test_every_word_of_a_title_finds_it(title: str) -> None:
    words = searched_words(title, None, None)
    assert holds(words, parse_terms(title))
