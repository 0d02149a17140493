from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.store import Store, accounts, api_keys, open_store
from resumes.store.accounts import AccountInfo
from tests.support import tenants
from tests.support.clocks import SteppingClock as SteppingClock
from tests.support.store.builders import MakeAccount, fill_store, import_resumes, index_all
from tests.support.stores import make_store_file


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def store(url: str, clock: SteppingClock) -> Iterator[Store]:
    with open_store(url, clock=clock) as store:
        yield store


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Store]:
    """A store in a file, with rows in every table."""
    with open_store(make_store_file(tmp_path / "source.db")) as store:
        fill_store(store)
        yield store


@pytest.fixture
def an_account(store: Store) -> MakeAccount:
    """Makes accounts: `an_account("ana", plan="business")`."""

    def make(name: str = "ana", *, plan: str = "business") -> AccountInfo:
        return accounts.create_account(store, name, plan=plan)

    return make


@pytest.fixture
def ana(an_account: MakeAccount) -> AccountInfo:
    """An account that holds nothing and may hold a thousand resumes."""
    return an_account("ana")


@pytest.fixture
def used(store: Store, an_account: MakeAccount) -> AccountInfo:
    """The account `ana` with all that accounts have, beside another one."""
    bo, ana = an_account("bo"), an_account("ana")
    for account in (bo, ana):
        import_resumes(store, account, 4)
        api_keys.create_key(store, account.name)
    revoked = api_keys.create_key(store, "ana")
    api_keys.revoke_key(store, revoked.id)
    index_all(store)
    return ana


@pytest.fixture(autouse=True)
def _statements_keep_to_their_account() -> Iterator[None]:
    """No statement of the store reaches into other accounts, but where tests/support/tenants.py says why."""
    with tenants.WATCH.block():
        yield
