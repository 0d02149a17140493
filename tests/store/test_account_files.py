"""Accounts as files: what an export holds, and what is refused as one."""

import random
from pathlib import Path
from typing import Any

import pytest

from resumes.errors import Conflict, InvalidArgument, StoreIncompatible
from resumes.output_files import OutputFile
from resumes.store import Store, accounts, api_keys, creation, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import MAX_ITEMS_CHARS, MAX_LEDGER_CHARS, MAX_SOURCE_BYTES
from resumes.store.row_bounds import iter_checked
from resumes.store.schema import metadata
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.transfer import backups
from resumes.store.transfer.account_files import export_account, is_account_file
from resumes.store.transfer.account_import import FILLED, MAX_VALUE_BYTES, import_account
from resumes.store.transfer.copies import CopyProgress
from resumes.text import is_harmless
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    a_file,
    damage,
    exported,
    ids_of,
    import_resumes,
    names_in,
    tamper,
)

NOW = "2027-01-15T08:00:00.000Z"


def rows_of(file: Path) -> dict[str, list[Any]]:
    """All rows of each table of the file that has some, without the store's facts."""
    with sqlite_engine(file, transactions=False, query_only=True).connect() as connection:
        rows = {
            table.name: list(connection.execute(table.select())) for table in metadata.sorted_tables
        }
    del rows["store_facts"]
    return {name: found for name, found in rows.items() if found}


# Exports


@pytest.mark.engines
def test_everything_of_the_account_is_in_its_export_and_nothing_of_others(
    store: Store, used: AccountInfo, tmp_path: Path
) -> None:
    a_file(store, used, "9" * 24)
    bo = accounts.get_account(store, "bo")
    kept = api_keys.create_key(store, "ana")
    accounts.set_options(store, "ana", {"on_newer": "replace"})
    for key in ("once", "again"):
        creation.create(store, used.id, [a_resume("Once", idempotency=key)])

    file = exported(store, tmp_path / "file")

    rows = rows_of(file)
    assert {name: len(found) for name, found in rows.items()} == {
        "plans": 1, "accounts": 1, "account_usage": 1, "resumes": 5, "documents": 5,
        "imported_digests": 4, "imported_files": 2, "imported_items": 4, "replaced_resumes": 1,
    }  # fmt: skip
    assert [row.id for row in rows["resumes"]] == ids_of(store, "ana")
    assert [row.source for row in rows["imported_files"]] == [None, b"{"]
    assert bo.id.encode() not in file.read_bytes()

    with_keys = rows_of(exported(store, file, with_keys=True))
    assert set(with_keys) == {table.name for table in FILLED} - {"store_facts"}
    hashes = [row.key_hash for row in with_keys["key_directory"]]
    assert len(with_keys["api_keys"]) == len(hashes) == 2  # of those that count
    assert api_keys.hash_key(kept.secret) in hashes
    assert kept.secret.encode() not in file.read_bytes()
    assert names_in(tmp_path).count("file") == 1


@pytest.mark.slow
@pytest.mark.engines
@pytest.mark.parametrize("table", ["resumes", "documents"])
def test_what_lost_a_part_is_left_out_with_its_digest(
    store: Store, table: str, ana: AccountInfo, tmp_path: Path
) -> None:
    lost, kept = import_resumes(store, ana, 2)
    damage(
        store, f"DELETE FROM {table} WHERE account_id = :id AND id = :lost", id=ana.id, lost=lost
    )
    file = exported(store, tmp_path / "file")
    rows = rows_of(file)
    for name, column in (("resumes", "id"), ("documents", "id"), ("imported_digests", "resume_id")):
        assert [getattr(row, column) for row in rows[name]] == [kept]
    back, counts = import_account(store, file, name="again")
    assert (back.resume_count, counts["resumes"]) == (1, 1)


@pytest.mark.sqlite("PostgreSQL looks at what it takes")
@pytest.mark.parametrize(("table", "column"), [("documents", "document"), ("resumes", "title")])
def test_bytes_in_place_of_text_are_not_exported(
    store: Store, ana: AccountInfo, table: str, column: str, tmp_path: Path
) -> None:
    import_resumes(store, ana, 2)
    damage(
        store,
        f"UPDATE {table} SET {column} = CAST('Ada' AS BLOB) WHERE account_id = :id",
        id=ana.id,
    )
    before = names_in(tmp_path)
    with pytest.raises(StoreIncompatible, match="`resumes db check`"):
        exported(store, tmp_path / "file")
    assert names_in(tmp_path) == before


@pytest.mark.engines
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_export_is_of_one_moment(
    store: Store, ana: AccountInfo, tmp_path: Path, is_deleted: bool
) -> None:
    first = import_resumes(store, ana, 2)
    before = rows_of(exported(store, tmp_path / "before"))
    acts = [1]

    def act(progress: CopyProgress) -> None:
        if acts and acts.pop():
            more = [a_resume("Later", with_digest=True)]
            creation.create(store, ana.id, more, claim=a_claim("5" * 24))
            if is_deleted:
                accounts.delete_account(store, "ana", with_resumes=True)

    output = OutputFile(tmp_path / "file", remedy="")
    export_account(store, "ana", output, on_progress=act)

    assert rows_of(tmp_path / "file") == before
    import_account(store, tmp_path / "file", name="again")
    assert ids_of(store, "again") == first


def test_an_account_file_is_neither_a_store_nor_a_backup(
    store: Store, ana: AccountInfo, tmp_path: Path
) -> None:
    file = exported(store, tmp_path / "file")
    backup = backups.back_up(store, tmp_path / "backup.db").path
    for path, is_one in ((file, True), (backup, False)):
        with path.open("rb") as opened:
            assert is_account_file(opened) == is_one
    with pytest.raises(StoreIncompatible, match="belongs to another program"):
        open_store(f"sqlite:///{file}")
    with pytest.raises(StoreIncompatible, match="is not a store of this program"):
        backups.restore(file, f"sqlite:///{tmp_path / 'restored.db'}")
    with pytest.raises(StoreIncompatible, match=r"is not an account file.*`resumes db restore`"):
        import_account(store, backup)


# Files that somebody made


@pytest.fixture
def file(store: Store, used: AccountInfo, tmp_path: Path) -> Path:
    """An account file with rows in every table that has some; its last resume was deleted."""
    a_file(store, used, "9" * 24)
    return exported(store, tmp_path / "file", with_keys=True)


def refusal(store: Store, file: Path) -> str:
    """Why the file is refused; nothing of it is stored, and nothing of it stays on the disk."""
    before = names_in(file.parent), rows_in(store)
    with pytest.raises(StoreIncompatible) as error:
        import_account(store, file, name="again")
    assert (names_in(file.parent), rows_in(store)) == before
    assert is_harmless(error.value.message)
    assert len(error.value.message) < 800
    assert str(file) in error.value.message
    return error.value.message


def rows_in(store: Store) -> list[str]:
    return [account.name for account in accounts.list_accounts(store, include_closed=True)]


def test_what_is_no_account_file_is_refused_by_what_it_is(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(InvalidArgument, match="Account file not found"):
        import_account(store, file)
    for content in (b"", b"x" * 100, b"SQLite format 3\0"):
        file.write_bytes(content)
        assert "is not an account file. Create one with" in refusal(store, file)
    file.write_bytes(b'{"format":"resumes-account","version":1,"account":"ana"}\n')
    said = refusal(store, file)
    assert "was written by version 1.0, as NDJSON. Export the account again" in said


def test_a_file_that_was_cut_off_is_refused(store: Store, file: Path) -> None:
    whole = file.read_bytes()
    for size_bytes in (72, 100, 4_096, len(whole) // 2, len(whole) - 4_096, len(whole) - 1):
        file.write_bytes(whole[:size_bytes])
        assert "damaged" in refusal(store, file)


@pytest.mark.slow
def test_a_bit_that_has_changed_is_noticed_wherever_it_matters(store: Store, file: Path) -> None:
    whole = file.read_bytes()
    original = rows_of(file)
    chosen = random.Random(7)
    refused = 0
    for at in sorted(chosen.sample([at for at, byte in enumerate(whole) if byte], 8)):
        file.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << chosen.randrange(8)]) + whole[at + 1 :]
        )
        try:
            import_account(store, file, name="again")
        except StoreIncompatible:
            refused += 1
            continue
        except Conflict:  # its keys are in this store
            pass
        assert rows_of(file) == original
    assert refused > 0


SCHEMAS = (
    "CREATE TABLE more (id TEXT)",
    "CREATE VIEW more AS SELECT * FROM resumes",
    "CREATE TRIGGER more AFTER INSERT ON resumes BEGIN SELECT 1; END",
    "CREATE INDEX more ON resumes (title)",
    "CREATE INDEX more ON resumes (hex(zeroblob(1000000000)))",
    "ALTER TABLE resumes ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(title)) VIRTUAL",
    "ALTER TABLE plans ADD COLUMN more TEXT",
    "ALTER TABLE imported_files DROP COLUMN root",
)


def test_tables_that_are_not_ours_are_refused_unread(store: Store, file: Path) -> None:
    whole = file.read_bytes()
    for statement in SCHEMAS:
        file.write_bytes(whole)
        tamper(file, "DELETE FROM resumes", statement, seals=False)
        assert "its tables are not those of this version" in refusal(store, file), statement


def test_a_schema_of_another_version_is_refused(store: Store, file: Path) -> None:
    tamper(file, "UPDATE alembic_version SET version_num = '9999'")
    assert "created by a newer version (schema 9999" in refusal(store, file)


OTHER = "INSERT INTO accounts (id, name, plan, created_at) SELECT 'ffffffffffffffff', 'other', plan, created_at FROM accounts"
TO_OTHER = "SET account_id = 'ffffffffffffffff'"
LATER = "f" * 24


ROWS = (
    ((OTHER,), "it contains several accounts"),
    (("DELETE FROM account_usage",), "its account is closed, or has no counter"),
    ((f"UPDATE accounts SET closed_at = '{NOW}'",), "its account is closed, or has no counter"),
    (("UPDATE accounts SET plan = 'other'",), "rows refer to rows that do not exist"),
    (("UPDATE account_usage SET resume_count = 2",), "the counter says 2"),
    (("UPDATE account_usage SET last_id_us = 1",), "a resume later than the last ID"),
    ((f"UPDATE resumes {TO_OTHER}",), "rows refer to rows that do not exist"),
    ((f"UPDATE key_directory {TO_OTHER}",), "belong to an account that does not exist"),
    (("UPDATE imported_items SET outcome = 'failed'",), "have an unknown outcome"),
    (("DELETE FROM documents",), "have no document"),
    (("DELETE FROM resumes", "UPDATE account_usage SET resume_count = 0"), "belong to no resume"),
    ((f"UPDATE imported_digests SET resume_id = '{'0' * 24}'",), "its resume was deleted"),
    ((f"UPDATE imported_files SET resume_id = '{LATER}'",), f"in imported_files, {LATER}"),
    ((f"UPDATE imported_items SET resume_id = '{LATER}'",), f"in imported_items, {LATER}"),
    (
        (
            "UPDATE accounts SET on_newer = 'replace'",
            "UPDATE resumes SET is_person_indexed = NULL",
        ),
        "a resume that no newer version would replace",
    ),
    ((f"UPDATE api_keys SET revoked_at = '{NOW}'",), "a revoked key, key_"),
    (("DELETE FROM key_directory",), "some keys are listed as active, but are not"),
    (
        ("INSERT INTO key_directory SELECT randomblob(32), account_id, key_id FROM key_directory",),
        "several hashes of a key",
    ),
    ((f"INSERT INTO deleted_accounts VALUES ('{'a' * 16}')",), "it has rows in deleted_accounts"),
    (("UPDATE resumes SET title = 'Other'",), "does not match its title, name or CRC-32"),
    (("UPDATE documents SET crc32 = 1",), "does not match its title, name or CRC-32"),
    (("UPDATE documents SET document = '{}'",), "cannot be stored"),
    (("UPDATE documents SET document = '[1]'",), "cannot be stored"),
    (("UPDATE documents SET document = '{\"a\"\\:NaN}'",), "cannot be stored"),
    (("UPDATE documents SET document = replace(hex(zeroblob(5000)), '00', '[')",), "cannot be"),
    (("UPDATE resumes SET title = CAST(x'ff41' AS TEXT)",), "not UTF-8"),
    (
        (f"UPDATE imported_files SET name = zeroblob({MAX_VALUE_BYTES + 1})",),
        f'"name" in imported_files has {MAX_VALUE_BYTES + 1:,} bytes',
    ),
)  # fmt: skip


@pytest.mark.slow
def test_rows_that_no_export_has_are_refused(store: Store, file: Path) -> None:
    whole = file.read_bytes()
    other = []
    for statements, why in ROWS:
        file.write_bytes(whole)
        seals = "UTF-8" not in why and "bytes" not in why  # which is found before
        if why not in (said := refusal(store, tamper(file, *statements, seals=seals))):
            other.append((statements, said))
    assert other == []


ITEMS = '{"total":1,"done":0,"duplicate":0,"held":1,"failed":0,"problems":[%s]}'
PROBLEM = '{"item":0,"place":"line 1","outcome":"held"}'

WRONG: dict[str, list[Any]] = {
    "plans.name": ["../x"],
    "accounts.name": ["Ana", "a\x1b[2J"],
    "accounts.created_at": ["\x1b]0;x\x07"],
    "account_usage.last_id_us": [-1, 2**63 - 1, "x"],
    "account_usage.resume_count": [-1, "x", b"x"],
    "resumes.id": ["../../x", "A" * 24],
    "resumes.title": ["a\0b", b"a", "x" * 200_001],
    "resumes.filename": [
        "../escaped-to/x.pdf", "/etc/x.pdf", ".pdf", "x.sh", "a\0b.pdf", "a\u202eb.pdf",
        "x" * 200 + ".pdf",
    ],
    "resumes.is_person_indexed": [2, "x"],
    "resumes.created_at": ["2027"],
    "resumes.updated_at": [""],
    "documents.document": [b"{}", "a\0b"],
    "imported_files.claim_id": ["\x1b[2J../.."],
    **{
        f"imported_files.{name}": ["x" * (MAX_LEDGER_CHARS + 1), "a\0b"]
        for name in ("name", "message", "path", "root")
    },
    "imported_files.outcome": ["zz"],
    "imported_files.reason": ["\x1b[31m"],
    "imported_files.byte_offset": [-1, 1.5],
    "imported_files.size_bytes": [-1, 1.5],
    "imported_files.claimed_at": ["2027-02-30T08:00:00.000Z"],
    "imported_files.finished_at": ["2027-01-15T08:00:00.000+00:00"],
    "imported_files.resume_id": ["x"],
    "imported_files.source": [b"x" * (MAX_SOURCE_BYTES + 1), "zz"],
    "imported_files.items": [
        "not json", "[1,2]", "[" * 5_000, ITEMS % "{}", "x" * (MAX_ITEMS_CHARS + 1),
        (ITEMS % PROBLEM).replace('"held"}', '"done"}'),
        (ITEMS % PROBLEM).replace('"held":1', '"held":-1'), (ITEMS % PROBLEM).replace("0,", '"0",', 1),
        (ITEMS % PROBLEM).replace("line 1", "\\u0000"),
        ITEMS % ",".join([PROBLEM] * 51),
    ],
    "imported_items.item": [2**31],
    "imported_items.outcome": ["zz"],
    "imported_items.resume_id": ["x"],
    "imported_digests.digest": [b"short"],
    "accounts.former_names": ["Ana", "ana  bo", " ana", "a " * 100 + "a", "x" * 64],
    "api_keys.id": ["\x1b[2J"],
    "api_keys.name": ["x" * 101],
    "api_keys.masked": ["enh_live_x"],
    "api_keys.created_at": [""],
    "api_keys.expires_at": ["zzz"],
    "api_keys.replaced_by": ["key_1"],
    "key_directory.key_hash": [b""],
}  # fmt: skip


def test_what_no_store_writes_is_refused_by_table_column_and_value(file: Path) -> None:
    rows = rows_of(file)
    for where, values in WRONG.items():
        name, _, column = where.partition(".")
        table = metadata.tables[name]
        for value in values:
            row = {**rows[name][-1]._mapping, column: value}
            with pytest.raises(StoreIncompatible) as error:
                list(iter_checked(table, [[row[one.name] for one in table.columns]], "file"))
            assert f'"{column}" in {name} (' in error.value.message
            assert is_harmless(error.value.message)
            assert len(error.value.message) < 400


@pytest.mark.parametrize(
    "where", ["accounts.name", "resumes.filename", "imported_files.path", "key_directory.key_hash"]
)
def test_a_file_with_such_a_value_is_refused(store: Store, file: Path, where: str) -> None:
    name, _, column = where.partition(".")
    key = list(metadata.tables[name].primary_key)[-1].name
    change = f"UPDATE {name} SET {column} = :value WHERE {key} = (SELECT min({key}) FROM {name})"
    said = refusal(store, tamper(file, change, value=WRONG[where][0]))
    assert f'"{column}" in {name}' in said
