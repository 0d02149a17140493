import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer.naming import filename, is_filename, list_title


@pytest.mark.parametrize(
    ("title", "name", "shown"),
    [
        ("Engineer", "Ada", "Engineer"),
        (None, "Ada Lovelace", "Ada Lovelace Resume"),
        ("", "Ada", "Ada Resume"),
        (" \t", "Ada", "Ada Resume"),
        (None, None, "New Resume"),
        (None, "  ", "New Resume"),
    ],
)
def test_title_absent_or_blank_lists_as_the_name_or_new_resume(
    title: str | None, name: str | None, shown: str
) -> None:
    assert list_title(title, name) == shown


@pytest.mark.parametrize(
    ("title", "name", "expected"),
    [
        ("Engineer", "Mira Hoffmann", "MiraHoffmannResume.pdf"),
        ("Senior  Engineer", None, "Senior Engineer.pdf"),
        (None, None, "Resume.pdf"),
        ("a/b", " / ", "ab.pdf"),
        ("...", "\u202e", "Resume.pdf"),
        (None, "..Ada", "AdaResume.pdf"),
        (None, "../../etc/passwd", "etcpasswdResume.pdf"),
        (None, "Ada\u202e\u2066\u200b\x00\x1b\n\x7f", "AdaResume.pdf"),
        (None, 'A<d>a:"/\\|?*', "AdaResume.pdf"),
        (None, "Zoe\u0308", "Zo\u00ebResume.pdf"),
        (None, "e\u200b\u0301", "\u00e9Resume.pdf"),
        (None, "李 小龍", "李小龍Resume.pdf"),
    ],
)
def test_filename_is_made_of_the_name_else_the_title(
    title: str | None, name: str | None, expected: str
) -> None:
    assert filename(title, name) == expected


def test_filename_is_cut_to_120_bytes_between_characters() -> None:
    cut = filename(None, "é" * 200)
    assert cut == "é" * 55 + "Resume.pdf"
    assert len(cut.encode()) == 120


@settings(max_examples=150, derandomize=True, deadline=None)
@given(title=st.none() | st.text(), name=st.none() | st.text())
def test_filename_is_safe_whatever_the_name_and_title(title: str | None, name: str | None) -> None:
    made = filename(title, name)
    assert is_filename(made)
    assert made.endswith(".pdf")
    assert not made.startswith((".", " "))
    assert len(made.encode()) <= 120
    assert unicodedata.is_normalized("NFC", made)
    assert not set(made) & set('<>:"/\\|?*')
    assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp"} for char in made)
    assert not any(
        unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "PDI"}
        for char in made
    )


def test_letters_at_the_ends_of_a_name_and_where_it_is_cut_stay() -> None:
    assert filename(None, "Xavier X") == "XavierXResume.pdf"
    assert filename("Xerox X", None) == "Xerox X.pdf"
    assert filename("X" * 200, None) == "X" * 116 + ".pdf"
    assert filename("x" * 115 + " yyyy", None) == "x" * 115 + ".pdf"


def test_a_name_is_not_cut_within_a_letter() -> None:
    assert filename(None, "a" + "é" * 100) == "a" + "é" * 54 + "Resume.pdf"


@pytest.mark.parametrize(
    "text",
    [
        "", ".pdf", "..pdf", "Ada", "Ada.PDF", "../Ada.pdf", "/Ada.pdf", "a\\b.pdf", " Ada.pdf",
        "a\0.pdf", "a\n.pdf", "a\u202e.pdf", "x" * 117 + ".pdf", "\u00e9" * 59 + ".pdf",
    ],
)  # fmt: skip
def test_what_is_not_safe_everywhere_is_no_filename(text: str) -> None:
    assert not is_filename(text)
