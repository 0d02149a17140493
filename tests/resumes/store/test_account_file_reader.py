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
        ([a_row("0" * 23 + "2"), a_row()], "not in order"),
        ([a_row(), a_row()], "comes twice"),
        ([a_row(title=7)], r'"title" is 7, and has to be'),
        ([a_row(title=[{}])], r'"title" is a list, and has to be'),
        ([a_row(title="Other")], r'"title" is \'Other\', its document says otherwise'),
        ([a_row(name="Ada")], r'"name" is \'Ada\', its document says otherwise'),
        ([a_row(filename=None)], '"filename" is missing'),
        ([a_row("0" * 14 + "99" + "0" * 8)], r'newer than "lastIdUs"'),
        ([a_row()._replace(document=b"[1]")], "must be a JSON object"),
        ([a_row()._replace(document=b'{"a":NaN}')], "not a JSON number"),
        ([a_row()._replace(document=b'"\xff"')], "not UTF-8"),
        ([a_row()._replace(document=b"")], "the end of each resume's line"),
        ([a_row()._replace(document=b'{"a":1},"b":{}')], "trailing"),
    ],
)
def test_rows_that_no_store_wrote_are_refused(rows: list[Row], why: str) -> None:
    with pytest.raises(InvalidJson, match=why):
        read(an_export(*rows))


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":[]}',
        b'{"kind":{}}',
        b'{"kind":null}',
        b'{"kind":"plan"}',
        b"7",
        b"[" * 5_000,
        b'{"kind":"item","item":' + b"9" * 5_000 + b"}",
        b'{"kind":"\xff"}',
        b'{"kind":"item","claimId":"\\ud800"}',
    ],
)
def test_whatever_a_line_holds_it_is_refused_by_its_number(line: bytes) -> None:
    header, end = an_export()
    with pytest.raises(InvalidJson, match=r"no whole export.*line 2, at byte"):
        read([header, line + b"\n", end])


def test_the_message_names_line_field_and_value() -> None:
    with pytest.raises(InvalidJson) as refusal:
        read(an_export(a_row(), a_row("0" * 23 + "2", created_at="\x1b[31mred")))
    assert "\"createdAt\" is '\\x1b[31mred'" in refusal.value.message
    assert "(line 3, at byte" in refusal.value.message


def test_a_value_that_is_long_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidJson) as refusal:
        read(an_export(a_row(filename="x" * 5_000)))
    assert len(refusal.value.message) < 400


def test_what_a_document_says_is_looked_into_unless_it_is_known() -> None:
    lines = b"".join(an_export(a_row()._replace(document=b"{}")))
    assert [row.document for row in Reader(io.BytesIO(lines), are_documents_known=True)] == [b"{}"]
    with pytest.raises(InvalidJson, match="header"):
        list(Reader(io.BytesIO(lines)))
    binary = b"".join(an_export(a_row()._replace(document=b'{"a":"\xff"}')))
    with pytest.raises(InvalidJson, match='"document"'):
        list(Reader(io.BytesIO(binary), are_documents_known=True))


def test_other_files_and_newer_versions_are_refused() -> None:
    header, *rest = an_export()
    with pytest.raises(InvalidJson, match="first line"):
        read([b'{"header":{}}\n', *rest])
    with pytest.raises(InvalidJson, match="version 2, this program reads 1"):
        read([header.replace(b'"version":1', b'"version":2'), *rest])


def test_what_follows_the_last_line_is_refused() -> None:
    with pytest.raises(InvalidJson, match="follows its last line"):
        read([*an_export(), b"\n"])
