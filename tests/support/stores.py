"""Stores for tests to begin with, copied from one that was made once, since that is faster; empty and newer ones."""

import contextlib
import functools
import tempfile
from pathlib import Path
from typing import Final

import psycopg

from resumes.store import Store, accounts, api_keys, open_store, plans
from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.plans import PlanChange
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.place import APPLICATION_ID


def make_store_file(path: Path) -> str:
    """Make an empty store in a new file, and the folders above it; return its address."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(_empty_store())
    return f"sqlite:///{path}"


@functools.cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resumes.db"
        open_store(f"sqlite:///{path}").close()
        return path.read_bytes()


DATA: Final = Path(__file__).parents[1] / "data"


def make_first_store(url: str) -> None:
    """Fill an empty place with a store of version 1.0.0: two accounts, ana and bob, with rows in every table."""
    address = parse_address(url)
    if isinstance(address, PostgresAddress):
        with psycopg.connect(url) as database:
            database.execute((DATA / "store-0001-postgresql.sql").read_bytes())
        return
    with contextlib.closing(dbapi.connect(address.path)) as connection:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.executescript((DATA / "store-0001.sql").read_text())


def open_home(home: Path) -> Store:
    """Open the store file of a home, which is made if it is not there."""
    path = home / "resumes.db"
    url = f"sqlite:///{path}" if path.exists() else make_store_file(path)
    return open_store(url)


def make_account(
    at: Path | str,
    name: str = "ana",
    *,
    plan: str = "business",
    max_resumes: int | None = None,
    key_name: str = "",
) -> str:
    """Make an account in the store of a home, or at an address; return a key of it.

    `max_resumes` becomes the limit of the plan.
    """
    with open_home(at) if isinstance(at, Path) else open_store(at) as store:
        if max_resumes is not None:
            plans.set_plan_limits(store, PlanChange(plan, max_resumes=max_resumes))
        accounts.create_account(store, name, plan=plan)
        return api_keys.create_key(store, name, name=key_name).secret
