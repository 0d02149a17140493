import os

import pytest

from importer.names import MAX_STEM_BYTES, escaped, name_hex, safe_stem
from resumes.text import is_harmless


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"ana/cv.json", "ana/cv.json"),
        ("zoë-履歴書.json".encode(), "zoë-履歴書.json"),
        (b"a\nb.json", "a\\x0ab.json"),
        (b"bad\xff.json", "bad\\xff.json"),
        (b"a\\b.json", "a\\\\b.json"),
        (b"a\\b\n.json", "a\\\\b\\x0a.json"),
        ("می\u200cروم\u00a01.json".encode(), "می\u200cروم\u00a01.json"),
        ("\u202egpj.json".encode(), "\\u202egpj.json"),
        (b"\x1b[31mred.json", "\\x1b[31mred.json"),
    ],
)
def test_escaped_names_print_and_keep_every_byte(name: bytes, expected: str) -> None:
    shown = escaped(os.fsdecode(name))
    assert shown == expected
    assert is_harmless(shown)
    shown.encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ana/sub/cv.json", "cv"),
        ("cv.JSON", "cv"),
        ("履歴書 1.json", "履歴書 1"),
        ("-rf.json", "rf"),
        ("..json", "file"),
        ("a;$(x)`.json", "a__(x)_"),
        ("bad\\xff.json", "bad_xff"),
    ],
)
def test_a_safe_stem_is_kept_as_far_as_it_is_harmless(name: str, expected: str) -> None:
    assert safe_stem(name) == expected


def test_a_safe_stem_is_cut_between_characters() -> None:
    stem = safe_stem("é" * 200 + ".json")
    assert stem == "é" * (MAX_STEM_BYTES // 2)


def test_the_exact_bytes_are_kept_in_hexadecimal() -> None:
    assert bytes.fromhex(name_hex(os.fsdecode(b"bad\xff.json"))) == b"bad\xff.json"
