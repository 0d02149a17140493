"""Accounts as files: what an export holds, and what is refused as one."""

import hashlib
import io
import json
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from resumes.analyzer import parse
from resumes.errors import Conflict, InvalidJson, StoreIncompatible
from resumes.store import Store, accounts, api_keys, creation, identifiers, stored_resumes
from resumes.store.account_archive.archive import iter_lines
from resumes.store.account_archive.file_format import (
    COLUMNS,
    ArchiveReader,
    ArchiveRow,
    Header,
    RowKind,
)
from resumes.store.accounts import AccountInfo
from resumes.store.schema import api_keys as api_keys_table
from resumes.store.schema import imported_digests, imported_files, imported_items, resumes
from tests.support.resumes import a_claim, a_document, a_resume
from tests.support.store.builders import (
    HEADER,
    NOW,
    MakeAccount,
    a_file,
    a_row,
    an_export,
    damage,
    exported,
    import_resumes,
)

ID = "0" * 23 + "1"
DOCUMENT = parse(a_document("Ada")).document
ITEMS = '{"total":1,"done":0,"duplicate":0,"held":1,"failed":0,"problems":[%s]}'
PROBLEM = '{"item":0,"place":"line 1","outcome":"held"}'

TABLES = {
    RowKind.RESUME: resumes, RowKind.FILE: imported_files, RowKind.ITEM: imported_items,
    RowKind.DIGEST: imported_digests, RowKind.KEY: api_keys_table,
}  # fmt: skip
WHOLE: dict[RowKind, dict[str, Any]] = {
    RowKind.RESUME: {
        "id": ID, "title": None, "name": "Ada", "filename": "AdaResume.pdf",
        "created_at": NOW, "updated_at": NOW,
    },
    RowKind.FILE: {
        "claim_id": ID, "name": "ana/a.json", "outcome": "failed", "reason": "invalid_json",
        "message": "why", "path": None, "byte_offset": 5, "size_bytes": 4, "claimed_at": NOW,
        "finished_at": NOW, "resume_id": ID, "source": b"{", "root": "/srv/inbox", "items": ITEMS % PROBLEM,
    },
    RowKind.ITEM: {"claim_id": ID, "item": 1, "outcome": "done", "resume_id": ID},
    RowKind.DIGEST: {"digest": b"\x00\xff" * 16, "resume_id": ID},
    RowKind.KEY: {
        "id": "key_0123456789ab", "name": "one", "masked": api_keys.mask(api_keys.new_secret()),
        "created_at": NOW, "shown_at": None, "last_used_at": NOW, "expires_at": NOW,
        "revoked_at": None, "replaced_by": None, "key_hash": b"h" * 32,
    },
}  # fmt: skip


def read(export: bytes, *, are_documents_known: bool = False) -> list[ArchiveRow]:
    return list(ArchiveReader(io.BytesIO(export), are_documents_known=are_documents_known))


def read_back(kind: RowKind, **values: Any) -> ArchiveRow:
    """The row with these values, after it went through a file."""
    document = DOCUMENT if kind is RowKind.RESUME else b""
    (back,) = read(an_export(ArchiveRow(kind, WHOLE[kind] | values, document)))
    return back


# Lines


def test_what_was_written_is_read_byte_for_byte() -> None:
    rows = [a_row(), *(ArchiveRow(kind, WHOLE[kind]) for kind in (RowKind.ITEM, RowKind.DIGEST))]
    reader = ArchiveReader(io.BytesIO(an_export(*rows)))
    assert reader.header == HEADER
    assert list(reader) == rows
    assert reader.counts == {"resume": 1, "file": 0, "item": 1, "digest": 1, "key": 0}


def test_each_line_is_json_with_the_names_of_the_api_and_the_last_one_proves_the_others() -> None:
    *before, last = an_export(a_row()).splitlines(keepends=True)
    header, resume, end = map(json.loads, (*before, last))
    assert (header["format"], header["createdAt"]) == ("resumes-account", HEADER.created_at)
    assert (resume["createdAt"], resume["document"]["z"]) == (NOW, 100.0)
    assert end["counts"]["resume"] == 1
    assert end["sha256"] == hashlib.sha256(b"".join(before)).hexdigest()


def test_an_export_that_was_cut_off_or_changed_anywhere_is_refused() -> None:
    whole = an_export(a_row())
    for at in range(len(whole)):
        with pytest.raises(InvalidJson, match="Not a complete account export"):
            read(whole[:at])
    for at in range(len(whole) - 1):
        with pytest.raises(InvalidJson):
            read(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([a_row("0" * 23 + "2"), a_row()], "out of order or repeated"),
        ([a_row(), a_row()], "out of order or repeated"),
        ([a_row(title=7)], r'"title" is 7: Input should be a valid string'),
        ([a_row(title=[{}])], r'"title" is a list: Input should be a valid string'),
        ([a_row(title="Other")], r'"title" is \'Other\', but its document says otherwise'),
        ([a_row(name="Ada")], r'"name" is \'Ada\', but its document says otherwise'),
        ([a_row(filename=None)], '"filename" is null'),
        ([a_row("0" * 14 + "99" + "0" * 8)], r'newer than "lastIdUs"'),
        ([a_row(document=b"[1]")], "must be a JSON object"),
        ([a_row(document=b'{"a":NaN}')], "not a JSON number"),
        ([a_row(document=b'"\xff"')], "not UTF-8"),
        ([a_row(document=b"")], "each resume's line must end with a document"),
        ([a_row(document=b'{"a":1},"b":{}')], "trailing"),
        (
            [a_row(), a_row("0" * 23 + "2", created_at="\x1b[31mred")],
            r"\"createdAt\" is '\\x1b\[31mred'.*\(line 3, at byte",
        ),
    ],
)
def test_rows_that_no_store_wrote_are_refused(rows: list[ArchiveRow], why: str) -> None:
    with pytest.raises(InvalidJson, match=why):
        read(an_export(*rows))


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":[]}', b'{"kind":{}}', b'{"kind":null}', b'{"kind":"plan"}', b"7", b"[" * 5_000,
        b'{"kind":"item","item":' + b"9" * 5_000 + b"}", b'{"kind":"\xff"}',
        b'{"kind":"item","claimId":"\\ud800"}', b'{"kind":"item","\\u001b":1}',
        b"{" + b",".join(b'"%d":1' % number for number in range(1_000)) + b"}",
    ],
)  # fmt: skip
def test_whatever_a_line_holds_it_is_refused_by_its_number(line: bytes) -> None:
    header, end = an_export().splitlines(keepends=True)
    with pytest.raises(InvalidJson, match=r"Not a complete account export.*line 2, at byte"):
        read(header + line + b"\n" + end)


def test_other_files_newer_versions_and_what_follows_the_last_line_are_refused() -> None:
    header, end = an_export().splitlines(keepends=True)
    for export, why in (
        (b'{"header":{}}\n' + end, '"format" is missing'),
        (header.replace(b'"version":1', b'"version":2') + end, '"version" is 2: Input should be 1'),
        (header + end + b"\n", "after its last line"),
    ):
        with pytest.raises(InvalidJson, match=why):
            read(export)


def test_a_field_that_no_line_has_is_refused() -> None:
    export = an_export(a_row())
    for of, after in ((b'{"kind"', 2), (b'{"format"', 1)):
        with pytest.raises(InvalidJson, match=rf'"more" is 1: Extra inputs .*line {after}'):
            read(export.replace(of, b'{"more":1,' + of[1:]))


def test_a_value_that_is_long_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidJson) as refusal:
        read(an_export(a_row(filename="x" * 5_000)))
    assert len(refusal.value.message) < 400


def test_what_a_document_says_is_looked_into_unless_it_is_known() -> None:
    empty = an_export(a_row(document=b"{}"))
    assert [row.document for row in read(empty, are_documents_known=True)] == [b"{}"]
    with pytest.raises(InvalidJson, match="header"):
        read(empty)
    with pytest.raises(InvalidJson, match='"document"'):
        read(an_export(a_row(document=b'{"a":"\xff"}')), are_documents_known=True)


# Fields


def test_every_column_is_in_a_line_and_what_a_store_writes_is_read() -> None:
    for kind, table in TABLES.items():
        columns = [column.name for column in table.columns if column.name != "account_id"]
        assert list(COLUMNS[kind]) == columns + ["key_hash"] * (kind is RowKind.KEY)
        assert read_back(kind).values == WHOLE[kind]
    reason = "too_beautiful"  # of a newer version
    assert read_back(RowKind.FILE, reason=reason).values["reason"] == reason


@pytest.mark.parametrize("kind", RowKind)
def test_what_may_be_unknown_may_be_null_and_nothing_else(kind: RowKind) -> None:
    for column, name in COLUMNS[kind].items():
        is_nullable = column in TABLES[kind].c and TABLES[kind].c[column].nullable
        if is_nullable and column not in ("title", "name"):
            assert read_back(kind, **{column: None}).values[column] is None
        elif WHOLE[kind][column] is not None:
            with pytest.raises(InvalidJson, match=f'"{name}" is null'):
                read_back(kind, **{column: None})


WRONG: dict[RowKind, dict[str, list[Any]]] = {
    RowKind.RESUME: {
        "id": ["../../x", "A" * 24],
        "filename": [
            "../escaped-to/x.pdf", "/etc/x.pdf", ".pdf", "x.sh", "a\0b.pdf", "a\u202eb.pdf",
            "x" * 200 + ".pdf",
        ],
        "created_at": ["2027"],
        "updated_at": [""],
    },
    RowKind.FILE: {
        "claim_id": ["\x1b[2J../.."],
        "name": ["a\0b"],
        "outcome": ["zz"],
        "reason": ["\x1b[31m"],
        "byte_offset": [-1, True],
        "size_bytes": [2**63, 1.5],
        "claimed_at": ["2027-02-30T08:00:00.000Z"],
        "finished_at": ["2027-01-15T08:00:00.000+00:00"],
        "resume_id": ["x"],
        "source": [b"x" * 65_537, "zz"],
        "items": [
            "not json", "[1,2]", "[" * 5_000, ITEMS % "{}",
            (ITEMS % PROBLEM).replace('"held"}', '"done"}'),
            (ITEMS % PROBLEM).replace("line 1", "\\u0000"),
        ],
    },
    RowKind.ITEM: {"item": [2**31], "outcome": ["failed"], "resume_id": ["x"]},
    RowKind.DIGEST: {"digest": [b"short"]},
    RowKind.KEY: {
        "id": ["\x1b[2J"],
        "name": ["x" * 101],
        "masked": ["enh_live_x"],
        "created_at": [""],
        "expires_at": ["zzz"],
        "revoked_at": [NOW],
        "replaced_by": ["key_1"],
        "key_hash": [b""],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "column", "values"),
    [(kind, *one) for kind, columns in WRONG.items() for one in columns.items()],
)
def test_what_no_store_writes_is_refused(kind: RowKind, column: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidJson, match=f'"{COLUMNS[kind][column]}" is .*line 2'):
            read_back(kind, **{column: value})


def header_back(**values: Any) -> Header:
    return ArchiveReader(io.BytesIO(an_export(header=HEADER.model_copy(update=values)))).header


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("account", "Ana~import"),
        ("plan", "../x"),
        ("created_at", "\x1b]0;x\x07"),
        ("exported_at", ""),
        ("last_id_us", 2**63 - 1),
        ("last_id_us", -1),
        ("resumes", -1),
    ],
)
def test_a_first_line_that_no_store_writes_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidJson, match=f'"{to_camel(field)}" is .*line 1'):
        header_back(**{field: value})


def test_after_the_latest_id_there_are_others() -> None:
    latest_us = identifiers.LATEST_US
    assert header_back(last_id_us=latest_us).last_id_us == latest_us
    assert identifiers.RESUME_ID.fullmatch(identifiers.resume_id(latest_us + 2**40))
    assert latest_us + 2**40 < 2**63


# Exports


def rows_of(export: bytes) -> dict[RowKind, list[ArchiveRow]]:
    rows: dict[RowKind, list[ArchiveRow]] = {kind: [] for kind in RowKind}
    for row in read(export):
        rows[row.kind].append(row)
    return rows


@pytest.mark.engines
def test_everything_of_the_account_is_in_its_export_and_nothing_of_others(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    count = 1_030  # more than are read at once, of every kind
    accounts.set_plan(store, "ana", "business")
    damage(store, "UPDATE plans SET max_resumes = NULL WHERE name = 'business'")
    ids = import_resumes(store, ana, count)
    import_resumes(store, bo, 2)
    a_file(store, ana, "9" * 24)
    kept, revoked = api_keys.create_key(store, "ana"), api_keys.create_key(store, "ana")
    api_keys.revoke_key(store, revoked.id)
    counted: list[int] = []

    account = accounts.get_account(store, "ana")
    rows = rows_of(b"".join(iter_lines(store, account, on_progress=counted.append)))

    assert [row.values["id"] for row in rows[RowKind.RESUME]] == ids
    for row in rows[RowKind.RESUME][:: count // 20]:
        stored = stored_resumes.get_resume(store, ana.id, row.values["id"])
        assert row.document == stored.document.encode()
    assert [row.values["item"] for row in rows[RowKind.ITEM]] == list(range(1, count + 1))
    assert {row.values["resume_id"] for row in rows[RowKind.DIGEST]} == set(ids)
    assert [row.values["claim_id"] for row in rows[RowKind.FILE]] == ["0" * 24, "9" * 24]
    assert rows[RowKind.FILE][1].values["source"] == b"{"
    assert rows[RowKind.KEY] == []
    assert counted == list(range(1, count + 1))

    with_keys = exported(store, with_keys=True)
    (row,) = rows_of(with_keys)[RowKind.KEY]  # of those that count
    assert (row.values["id"], row.values["key_hash"]) == (kept.id, api_keys.hash_key(kept.secret))
    assert kept.secret.encode() not in with_keys


@pytest.mark.engines
@pytest.mark.parametrize("table", ["resumes", "documents"])
def test_a_digest_whose_resume_was_lost_is_left_out(
    store: Store, table: str, ana: AccountInfo
) -> None:
    lost, kept = import_resumes(store, ana, 2)
    damage(
        store, f"DELETE FROM {table} WHERE account_id = :id AND id = :lost", id=ana.id, lost=lost
    )
    digests = rows_of(exported(store))[RowKind.DIGEST]
    assert [row.values["resume_id"] for row in digests] == [kept]


@pytest.mark.sqlite("PostgreSQL looks at what it takes")
@pytest.mark.parametrize(("table", "column"), [("documents", "document"), ("resumes", "title")])
def test_bytes_in_place_of_text_are_not_exported(
    store: Store, ana: AccountInfo, table: str, column: str
) -> None:
    import_resumes(store, ana, 2)
    damage(
        store,
        f"UPDATE {table} SET {column} = CAST('Ada' AS BLOB) WHERE account_id = :id",
        id=ana.id,
    )
    with pytest.raises(StoreIncompatible, match="`resumes db check`"):
        exported(store)


@pytest.mark.engines
def test_what_comes_in_meanwhile_is_left_out_whole(store: Store, ana: AccountInfo) -> None:
    first = import_resumes(store, ana, 2)
    lines = iter_lines(store, accounts.get_account(store, "ana"))
    header = next(lines)
    more = [a_resume("Later", with_digest=True)]
    creation.create(store, ana.id, more, claim=a_claim("5" * 24))

    rows = rows_of(header + b"".join(lines))

    assert [row.values["id"] for row in rows[RowKind.RESUME]] == first
    for kind in (RowKind.DIGEST, RowKind.ITEM):
        assert {row.values["resume_id"] for row in rows[kind]} == set(first)
    assert [row.values["claim_id"] for row in rows[RowKind.FILE]] == ["0" * 24]


@pytest.mark.engines
def test_an_account_that_is_deleted_meanwhile_does_not_look_whole(
    store: Store, ana: AccountInfo
) -> None:
    import_resumes(store, ana, 3)
    lines = iter_lines(store, ana)
    next(lines)
    accounts.delete_account(store, "ana", with_resumes=True)
    with pytest.raises(Conflict, match="was deleted while it was being exported"):
        list(lines)
