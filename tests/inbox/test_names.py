import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.files import (
    MAX_NAME_CHARS,
    MAX_STEM_BYTES,
    escaped,
    escaped_before,
    safe_stem,
)
from resumes.text import is_harmless
from resumes.watched_names import find_extension

ANY_NAME = st.binary(min_size=1, max_size=300).map(os.fsdecode)


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


@given(name=ANY_NAME)
def test_a_name_that_was_escaped_once_stays_as_it_is(name: str) -> None:
    assert escaped_before(escaped(name)) == escaped(name)


def test_a_name_that_somebody_wrote_is_harmless_and_no_longer_than_paths_are() -> None:
    assert escaped_before("a\x1b\ud800\udcff\U000e0001") == "a\\x1b\\ud800\\xff\\U000e0001"
    assert len(escaped_before("\n" * 10_000)) == 4 * MAX_NAME_CHARS


def test_a_name_as_long_as_a_path_can_be_is_read_back_whole_and_a_longer_one_keeps_its_end() -> (
    None
):
    longest = escaped(os.fsdecode(b"\xff" * 4_080 + b"/cv.ndjson"))
    assert escaped_before(longest) == longest
    assert escaped_before("a" * 20_000 + "/cv.ndjson").endswith("a/cv.ndjson")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cv.json", ".json"),
        ("cv.JSON", ".json"),
        ("cv.json.gz", ".json.gz"),
        ("cv.ndjson.GZ", ".ndjson.gz"),
        ("cv.jsonl.gz", ".jsonl.gz"),
        ("cv.tar.gz", ".gz"),
        ("cv.Zip", ".zip"),
        ("cv.jsonl", ".jsonl"),
        (".ndjson", ".ndjson"),
        ("cv.json.bak", None),
        ("cvjson", None),
        ("cv.json/", None),
        ("", None),
    ],
)
def test_the_longest_ending_counts_in_any_case(name: str, expected: str | None) -> None:
    assert find_extension(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ana/sub/cv.json", "cv"),
        ("cv.JSON", "cv"),
        ("cv.ndjson.gz", "cv"),
        ("cv.v2.zip", "cv.v2"),
        ("1" * 24, "1" * 24),
        ("履歴書 1.json", "履歴書 1"),
        ("-rf.json", "rf"),
        ("..json", "file"),
        (".json", "file"),
        ("ana/", "file"),
        ("a;$(x)`.json", "a__(x)_"),
        ("bad\\xff.json", "bad_xff"),
    ],
)
def test_a_safe_stem_is_kept_as_far_as_it_is_harmless(name: str, expected: str) -> None:
    assert safe_stem(name) == expected


def test_a_safe_stem_is_cut_between_characters() -> None:
    stem = safe_stem("é" * 200 + ".json")
    assert stem == "é" * (MAX_STEM_BYTES // 2)


@given(name=ANY_NAME)
def test_a_safe_stem_is_the_name_of_a_file_whatever_the_name_was(name: str) -> None:
    stem = safe_stem(escaped(name))
    assert 0 < len(stem.encode()) <= MAX_STEM_BYTES
    assert "/" not in stem
    assert stem[0] not in "-._ "
    assert is_harmless(stem)
