"""The lines of an account's export."""

import io
import json

import pytest

from resumes.store.account_file import COLUMNS, Kind, Row
from resumes.store.account_file_reader import Reader
from tests.resumes.store.exports import HEADER, NOW, a_row, an_export


def test_what_was_written_is_read_byte_for_byte() -> None:
    resume_id, claim_id = "0" * 23 + "1", "c" * 24
    item = {"claim_id": claim_id, "item": 3, "outcome": "done", "resume_id": resume_id}
    digest = {"digest": b"\x00\xff" * 16, "resume_id": resume_id}
    rows = [a_row(), Row(Kind.ITEM, item), Row(Kind.DIGEST, digest)]

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
