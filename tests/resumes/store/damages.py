"""Damage that is done to a store below it, and what is found of it."""

from typing import Any

import pytest
from sqlalchemy import text

from resumes.store import (
    Store,
    account_checking,
    checking,
    keys,
    search_filler,
)
from resumes.store.accounts import AccountInfo
from resumes.store.addresses import SqliteAddress, parse_address
from resumes.store.checking import Defect, Flaw
from resumes.store.postgresql.driver import postgres_engine
from resumes.store.sqlite.database import sqlite_engine
from tests.resumes.store.builders import MakeAccount
from tests.resumes.store.exports import fill


def damage(store: Store, *statements: str, **values: Any) -> None:
    """The statements are run by the engine itself, which is told to let foreign keys pass."""
    address = parse_address(store.url)
    if isinstance(address, SqliteAddress):
        engine = sqlite_engine(address.path, transactions=False)
        freely = "PRAGMA foreign_keys=OFF"
    else:
        engine = postgres_engine(address, patience_s=10)
        freely = "SET session_replication_role = replica"
    with engine.connect() as connection:
        connection.exec_driver_sql(freely)
        for statement in statements:
            assert connection.execute(text(statement), values).rowcount > 0, statement
    engine.dispose()


def found(store: Store) -> list[Flaw]:
    """All that is wrong with the store and its accounts."""
    return [
        *checking.iter_damage(store),
        *(one for checked in account_checking.iter_accounts(store) for one in checked.flaws),
    ]


def the_one(store: Store) -> tuple[Defect, str | None, int]:
    """What the one flaw is, whose, and how often; there is no other."""
    (flaw,) = found(store)
    return flaw.defect, flaw.account, flaw.count


@pytest.fixture
def ana(store: Store, an_account: MakeAccount) -> AccountInfo:
    """An account with all that accounts have, beside another one."""
    bo, ana = an_account("bo"), an_account("ana")
    for account in (bo, ana):
        fill(store, account, 4)
        keys.create_key(store, account.name)
    revoked = keys.create_key(store, "ana")
    keys.revoke_key(store, revoked.id)
    search_filler.fill(store)
    return ana
