"""Stores with something in every table, and what they hold."""

from pathlib import Path

from resumes.store import Store, accounts, asking, importers, keys, listing, plans
from resumes.store.creating import Created, create
from resumes.store.ledger import FileOutcome
from resumes.store.moving.proving import TableDigest, digest_tables
from resumes.store.moving.tables import READERS
from resumes.store.plans import PlanChange
from resumes.store.requests import Action
from resumes.store.search_filler import fill
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import a_file, an_importer

NAMES = ("Zoë Ünal", "李娜", "Ada \N{GRINNING FACE}", "o'Neil \\N \t x", 'quo"te')


def fill_store(store: Store, *, resumes: int = 10, names: tuple[str, ...] = NAMES) -> None:
    """Two accounts with so many resumes each, and every other table has rows, too."""
    plans.set_plan_limits(store, PlanChange("business", None))
    accounts.create_account(store, "gone")
    accounts.delete_account(store, "gone")
    for account_name in ("ana", "bob"):
        account = accounts.create_account(store, account_name, plan="business")
        keys.create_key(store, account_name)
        batch = [
            a_resume(
                f"{names[number % len(names)]} {number}",
                item=number,
                with_digest=True,
                idempotency=f"key-{number}",
            )
            for number in range(resumes)
        ]
        first, *_ = create(store, account.id, batch, claim=a_claim(account.id[:12].ljust(24, "a")))
        assert isinstance(first, Created)
        listing.delete_resume(store, account.id, first.id)
        failed = a_file(store, account, account.id[:12].ljust(24, "b"), FileOutcome.FAILED)
        asking.ask(store, [failed], Action.RETRY)
    importers.announce(store, an_importer())
    fill(store)


def held_by(store: Store) -> list[TableDigest]:
    """What each table of the store holds."""
    with store.read() as connection:
        return digest_tables(connection, lambda table, rows: None)


def ids_of(store: Store, account_name: str) -> list[str]:
    """The ids of the account's resumes, in order."""
    account = accounts.get_account(store, account_name)
    entries = listing.list_page(store, account.id, limit=100).entries
    return [entry.id for entry in entries]


def count_rows(store: Store, table: str) -> int:
    """How many rows the table has."""
    with store.read() as connection:
        return READERS[table].count(connection)


def names_in(folder: Path) -> list[str]:
    """What the folder holds, by name."""
    return sorted(path.name for path in folder.iterdir())
