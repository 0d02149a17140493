"""Whose a resume is: the same person in every way that an analyzer writes a name and an address."""

import json
from typing import Any

import pytest

from resumes.analyzer import parse
from resumes.analyzer.person import find_person
from tests.support.resumes import a_document


def person_of(name: str | None, email: str | None, **top_level: Any) -> bytes | None:
    """The person of a new resume, which is that of the stored one."""
    made = parse(a_document(header={"name": name, "email": email}, **top_level))
    assert find_person(made.document, made.name) == made.person
    return made.person


ADA = person_of("Ada Lovelace", "ada@example.com")


@pytest.mark.parametrize(
    ("name", "email"),
    [
        ("Ada Lovelace", "Ada@Example.com"),
        ("ADA LOVELACE", " ada@example.com\n"),
        ("Lovelace, Ada", "ada@example.com"),
        ("Adá  Lovelace", "ada@example.com"),
        ("\uff21da Lovelace", "ada@example.com"),
    ],
)
def test_case_accents_blanks_and_the_order_of_names_do_not_tell_people_apart(
    name: str, email: str
) -> None:
    assert ADA is not None
    assert len(ADA) == 16
    assert person_of(name, email) == person_of(name, email, unknown=1) == ADA


@pytest.mark.parametrize(
    ("name", "email"),
    [
        ("Ada Byron", "ada@example.com"),
        ("Ada Lovelace", "lovelace@example.com"),
        ("Ada", "ada@example.com lovelace"),
        ("Ada L.", "ada@example.com"),
        (None, "ada@example.com"),
    ],
)
def test_another_name_or_address_is_another_person(name: str | None, email: str) -> None:
    assert person_of(name, email) not in (None, ADA)


@pytest.mark.parametrize("email", [None, "", " \t"])
def test_without_an_address_no_person_is_assumed(email: str | None) -> None:
    assert person_of("Ada Lovelace", email) is None


def test_words_that_differ_in_vowel_signs_differ() -> None:
    assert person_of("रवि", "r@example.com") != person_of("रवी", "r@example.com")


def test_a_damaged_document_has_no_person() -> None:
    for document in (
        b"",
        b"\xff",
        b"[]",
        b'{"header":5}',
        b'{"header":{"email":[]}}',
        b"[" * 9_999,
    ):
        assert find_person(document, "Ada") is None
    assert find_person(json.dumps({"header": {}}), "Ada") is None
