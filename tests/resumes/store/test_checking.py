"""What a store is checked for: each damage is really made, below the store, and found."""

from typing import Any

import pytest
from sqlalchemy import Connection

from resumes.store import (
    Store,
    account_checking,
    checking,
    listing,
    open_store,
)
from resumes.store.accounts import AccountInfo
from resumes.store.checking import Defect
from resumes.store.sqlite.database import sqlite_engine
from tests.resumes.store.builders import sqlite_of
from tests.resumes.store.damages import ana, damage, found, the_one

pytestmark = pytest.mark.engines

__all__ = ["ana"]  # a fixture


def test_a_store_that_was_used_is_well(store: Store, ana: AccountInfo) -> None:
    entry = listing.list_page(store, ana.id).entries[1]
    listing.delete_resume(store, ana.id, entry.id)
    assert found(store) == []
    looked_at = [(one.account, one.resumes) for one in account_checking.iter_accounts(store)]
    assert looked_at == [("ana", 3), ("bo", 4)]


def test_keys_and_their_directory(store: Store, ana: AccountInfo) -> None:
    damage(
        store,
        "UPDATE api_keys SET revoked_at = '2027' WHERE account_id = :id AND revoked_at IS NULL",
        id=ana.id,
    )
    assert the_one(store) == (Defect.STRAY_KEY_HASH, "ana", 1)
    damage(store, "UPDATE api_keys SET revoked_at = NULL WHERE account_id = :id", id=ana.id)
    (flaw,) = found(store)
    assert (flaw.defect, flaw.account, flaw.count) == (Defect.NO_KEY_HASH, "ana", 1)
    assert "`resumes keys create ana`" in flaw.remedy
    damage(store, "DELETE FROM api_keys WHERE account_id = :id", id=ana.id)
    assert the_one(store) == (Defect.STRAY_KEY_HASH, "ana", 1)


def test_an_account_without_a_counter(store: Store, ana: AccountInfo) -> None:
    damage(store, "DELETE FROM account_usage WHERE account_id = :id", id=ana.id)
    assert the_one(store) == (Defect.NO_COUNTER, "ana", 1)


def test_rows_of_an_account_that_is_not_there(store: Store, ana: AccountInfo) -> None:
    damage(store, "DELETE FROM accounts WHERE id = :id", id=ana.id)
    flaws = found(store)
    assert {(one.defect, one.account) for one in flaws} == {(Defect.ORPHANS, ana.id)}
    assert len(flaws) == 10
    for flaw in flaws:
        statement = flaw.remedy.partition("in SQL: ")[2]
        damage(store, statement)
    assert found(store) == []


@pytest.mark.sqlite("a file")
def test_a_damaged_file(store: Store, ana: AccountInfo, url: str) -> None:
    path = sqlite_of(store).path
    store.close()
    with sqlite_engine(path, transactions=False).connect() as connection:
        (page,) = root_page(connection)
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
        (size,) = connection.exec_driver_sql("PRAGMA page_size").one()
    with path.open("r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 64)
    with open_store(url) as again:
        defects = {one.defect for one in checking.iter_damage(again)}
    assert defects == {Defect.DAMAGED}


def root_page(connection: Connection) -> Any:
    return connection.exec_driver_sql(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'imported_items'"
    ).one()


@pytest.mark.sqlite("PostgreSQL looks at what it takes")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET document = CAST(x'22f622' AS TEXT) WHERE account_id = :id",
        "UPDATE resumes SET title = CAST(x'f6' AS TEXT) WHERE account_id = :id",
    ],
)
def test_text_that_is_no_text(store: Store, ana: AccountInfo, statement: str) -> None:
    damage(store, statement, id=ana.id)
    (flaw,) = [one for one in found(store) if one.defect is Defect.DAMAGED_TEXT]
    assert flaw.count == 4


@pytest.mark.sqlite("PostgreSQL checks its own")
def test_rows_that_name_what_is_not_there(store: Store, ana: AccountInfo) -> None:
    damage(store, "UPDATE accounts SET plan = 'gone' WHERE id = :id", id=ana.id)
    assert the_one(store) == (Defect.FOREIGN_KEY, None, 1)
