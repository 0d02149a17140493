"""The lines of an account's export."""

import io
import json
from typing import Any

import pytest

from resumes.store.account_file import COLUMNS, Header, Kind, Row, Writer
from resumes.store.account_file_reader import Reader

HEADER = Header("ana", "pro", "2027-01-15T08:00:00.000Z", "2027-01-15T09:00:00.000Z", 16, 1)
NOW = "2027-01-15T08:00:00.000Z"


def a_row(resume_id: str = "0" * 23 + "1", **values: Any) -> Row:
    """A resume whose title looks like the place where documents begin."""
    row = {
        "id": resume_id, "title": 'a","document":{"b', "name": None, "filename": "a.pdf",
        "created_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    return Row(Kind.RESUME, row | values, b'{ "z": 1e2,"document":{"a":"\xc3\xa9"} }')


def an_export(*rows: Row) -> list[bytes]:
    writer = Writer()
    return [writer.header(HEADER), *map(writer.row, rows), writer.end()]


def test_what_was_written_is_read_byte_for_byte() -> None:
    item = Row(Kind.ITEM, {"claim_id": "c", "item": 3, "outcome": "done", "resume_id": "r"})
    digest = Row(Kind.DIGEST, {"digest": b"\x00\xff", "resume_id": "r"})
    rows = [a_row(), item, digest]

    reader = Reader(io.BytesIO(b"".join(an_export(*rows))))

    assert reader.header == HEADER
    assert list(reader) == rows
    assert reader.counts == {"resume": 1, "file": 0, "item": 1, "digest": 1, "key": 0}


def test_each_line_is_json_with_the_names_of_the_api() -> None:
    header, resume, end = map(json.loads, an_export(a_row()))
    assert header["format"] == "resumes-account"
    assert header["createdAt"] == HEADER.created_at
    assert (resume["createdAt"], resume["document"]["z"]) == (NOW, 100.0)
    assert end["counts"]["resume"] == 1


@pytest.mark.parametrize("kind", Kind)
def test_every_column_has_a_type_that_lines_can_hold(kind: Kind) -> None:
    assert {column.type for column in COLUMNS[kind]} <= {str, int, bytes}
