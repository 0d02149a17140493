import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import text

from resumes.errors import StoreError, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.probing import probe_reading, probe_writing_soon
from tests.importer.builders import a_full_disk
from tests.resumes.store.builders import hold_lane, sqlite_of

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def probe_writing(store: Store, *, deadline_s: float = 2.0) -> None:
    asyncio.run(probe_writing_soon(store, deadline_s=deadline_s))


def written_bytes(store: Store) -> int:
    """How far the log has come in which everything is written first."""
    if store.path is not None:
        return store.path.with_name(f"{store.path.name}-wal").stat().st_size
    with store.read() as connection:
        end = connection.execute(text("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))
        return int(end.scalar_one())


def test_a_store_that_works_passes_and_holds_what_it_held(
    store: Store, an_account: MakeAccount, url: str
) -> None:
    an_account("ana")
    before_bytes = written_bytes(store)

    probe_reading(store)
    probe_writing(store)

    assert written_bytes(store) > before_bytes  # the disk took part
    assert [account.name for account in accounts.list_accounts(store)] == ["ana"]
    with open_store(url, upgrade=False) as another:
        assert [account.name for account in accounts.list_accounts(another)] == ["ana"]


def test_a_store_that_is_closed_fails(url: str) -> None:
    store = open_store(url)
    store.close()

    with pytest.raises(StoreUnavailable):
        probe_writing(store)


def test_a_lane_that_is_held_fails_at_the_deadline(store: Store) -> None:
    go_on, holder = hold_lane(store)

    with pytest.raises(StoreUnavailable):
        probe_writing(store, deadline_s=0.05)
    probe_reading(store)

    go_on.set()
    holder.join()
    probe_writing(store)


@pytest.mark.sqlite("its disk")
def test_a_disk_that_takes_no_more_fails_writing_and_not_reading(store: Store) -> None:
    log = sqlite_of(store).path.with_name(sqlite_of(store).path.name + "-wal")

    with a_full_disk(log.stat().st_size), pytest.raises(StoreError):
        probe_writing(store)
    probe_reading(store)

    probe_writing(store)


@pytest.mark.sqlite("its file")
def test_a_file_that_was_removed_or_replaced_fails_both_for_good(store: Store) -> None:
    path = sqlite_of(store).path
    content = path.read_bytes()
    path.unlink()

    with pytest.raises(StoreUnavailable):
        probe_writing(store)
    path.write_bytes(content)

    with pytest.raises(StoreUnavailable):
        probe_reading(store)
    with pytest.raises(StoreUnavailable):
        probe_writing(store)
