from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resumes.settings import Settings
from resumes.store import Store, accounts, keys, open_store
from server.app import create_app
from tests.server.builders import Client, SteppingClock


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a server; their database is that of the test, if it asks for a store."""
    if "url" not in request.fixturenames:
        return Settings(home=tmp_path, port=0)
    return Settings(home=tmp_path, port=0, database=request.getfixturevalue("url"))


@pytest.fixture
def store(url: str, clock: SteppingClock) -> Iterator[Store]:
    with open_store(url, clock=clock) as store:
        yield store


@pytest.fixture
def a_key(store: Store) -> Callable[..., str]:
    """Makes accounts with a key: `a_key("ana", plan="free")` is the key."""

    def make(account: str = "ana", *, plan: str = "business") -> str:
        accounts.create_account(store, account, plan=plan)
        return keys.create_key(store, account).secret

    return make


@pytest.fixture
def a_client(settings: Settings, store: Store) -> Iterator[Callable[..., Client]]:
    """Makes clients of one application: `a_client(key)`."""
    made: list[Client] = []

    def make(key: str, **changes: object) -> Client:
        changed = settings.model_copy(update=changes)
        made.append(Client(create_app(changed, store), key))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(a_key: Callable[..., str], a_client: Callable[..., Client]) -> Client:
    """A client whose account is on the business plan."""
    return a_client(a_key("ada"))


@pytest.fixture
def free_client(a_key: Callable[..., str], a_client: Callable[..., Client]) -> Client:
    """A client whose account is on the free plan: 5 resumes, no listing."""
    return a_client(a_key("fred", plan="free"))
