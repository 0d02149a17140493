"""Files and standard input."""

import os
from pathlib import Path

import pytest

from cli.sources import Document, Source, iter_documents, limits_of
from importer.unpacking import Limits
from resumes.errors import InvalidArgument, TooLarge
from resumes.settings import load_settings
from tests.importer.packing import gzipped, zipped

LIMITS = Limits(max_bytes=100, max_file_bytes=1_000)


def documents(path: Path, content: bytes) -> list[Document]:
    """What a file of this content holds."""
    path.write_bytes(content)
    return list(iter_documents([Source(str(path))], LIMITS))


def test_a_file_of_one_resume_is_one_document_as_it_is(tmp_path: Path) -> None:
    (document,) = documents(tmp_path / "a.json", b' {"a":1}\n')

    assert document.body == b' {"a":1}\n'
    assert (document.origin.item, document.origin.place) == (None, None)
    assert document.origin.name == str(tmp_path / "a.json")


def test_each_resume_of_a_file_is_a_document_named_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    long = b'{"a":"' + b"x" * 100 + b'"}'
    archive = zipped({"b.ndjson": b"{}\n\n" + long + b"\n", "c.json": b"[1]", "../d.json": b"{}"})

    found = documents(path, archive)

    assert [document.body for document in found] == [b"{}", b"", b"1", b""]
    assert [document.code for document in found] == [None, "too_large", None, "invalid_archive"]
    assert [document.origin.item for document in found] == [1, 2, 3, 4]
    assert found[1].origin.name == f"{path}, member b.ndjson, line 3"
    assert found[1].message == "Resume too large: the limit is 100 bytes"


def test_a_compressed_resume_has_no_place(tmp_path: Path) -> None:
    (document,) = documents(tmp_path / "a.json.gz", gzipped(b"{}"))

    assert document.body == b"{}"
    assert (document.origin.item, document.origin.place) == (1, None)


def test_any_other_name_leaves_it_to_the_content(tmp_path: Path) -> None:
    for content in (b"[1,2]", b'{"a":1}\n{"a":2}', gzipped(b"[1,2]"), zipped({"a.json": b"[1,2]"})):
        assert len(documents(tmp_path / "export.txt", content)) == 2


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.json", b"[1", "invalid_json"),
        ("a.zip", b"{}", "invalid_archive"),
        ("a.json", b" " * 1_001, "too_large"),
        ("a.ndjson.gz", gzipped(b" " * 1_001), "too_large"),
    ],
)
def test_a_file_of_which_nothing_can_be_had_is_one_document_that_says_why(
    tmp_path: Path, name: str, content: bytes, code: str
) -> None:
    (document,) = documents(tmp_path / name, content)

    assert document.code == code
    assert document.message
    assert document.origin.item is None


def test_what_cannot_be_read_is_a_document_that_says_why(tmp_path: Path) -> None:
    (document,) = iter_documents([Source(str(tmp_path))], LIMITS)

    assert document.code == "unreadable"
    assert "Not a regular file" in document.message


def test_limits_come_from_the_settings(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, max_body_bytes=2_000, max_file_bytes=3_000)

    limits = limits_of(settings)

    assert (limits.max_bytes, limits.max_file_bytes) == (2_000, 3_000)


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"12345")

    assert Source(str(file)).read(max_bytes=5) == b"12345"
    with pytest.raises(TooLarge):
        Source(str(file)).read(max_bytes=4)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(InvalidArgument, match="Not a regular file"):
        Source(str(tmp_path / "pipe.json")).read(max_bytes=5)


def test_standard_input_has_a_name() -> None:
    assert Source("-").name == "standard input"
    assert Source("x.json").name == "x.json"
