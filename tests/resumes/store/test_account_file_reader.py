"""What is refused as an account's file."""

import io

import pytest

from resumes.errors import InvalidJson
from resumes.store.account_file import Row
from resumes.store.account_file_reader import Reader
from tests.resumes.store.exports import a_row, an_export


def read(lines: list[bytes]) -> list[Row]:
    return list(Reader(io.BytesIO(b"".join(lines))))


def test_an_export_that_was_cut_off_anywhere_is_refused() -> None:
    whole = b"".join(an_export(a_row()))
    for length in range(len(whole)):
        with pytest.raises(InvalidJson, match="no whole export"):
            list(Reader(io.BytesIO(whole[:length])))


def test_an_export_in_which_one_byte_differs_is_refused() -> None:
    whole = b"".join(an_export(a_row()))
    for at in range(len(whole) - 1):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(InvalidJson):
            list(Reader(io.BytesIO(changed)))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([a_row("2" * 24), a_row("1" * 24)], "not in order"),
        ([a_row("1" * 24), a_row("1" * 24)], "comes twice"),
        ([a_row(title=7)], '"title" is missing'),
        ([a_row(filename=None)], '"filename" is missing'),
        ([a_row(filename="a\0b")], '"filename" is missing'),
        ([a_row()._replace(document=b"[1]")], "no JSON object"),
        ([a_row()._replace(document=b'{"a":NaN}')], "no JSON object"),
        ([a_row()._replace(document=b"")], "no JSON object"),
        ([a_row()._replace(document=b'{"a":1},"b":{}')], "no JSON object"),
    ],
)
def test_rows_that_no_store_wrote_are_refused(rows: list[Row], why: str) -> None:
    with pytest.raises(InvalidJson, match=why):
        read(an_export(*rows))


def test_other_files_and_newer_versions_are_refused() -> None:
    header, *rest = an_export()
    with pytest.raises(InvalidJson, match="first line"):
        read([b'{"header":{}}\n', *rest])
    with pytest.raises(InvalidJson, match="version 2, this program reads 1"):
        read([header.replace(b'"version":1', b'"version":2'), *rest])


def test_what_follows_the_last_line_is_refused() -> None:
    with pytest.raises(InvalidJson, match="follows its last line"):
        read([*an_export(), b"\n"])
