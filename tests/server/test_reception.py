"""What every request of the API goes through, on a store that is near and on one that is far."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Scope

from resumes.errors import InvalidKey, StoreUnavailable
from resumes.settings import Settings
from resumes.store import Store, keys, listing
from server.auth import Authenticator
from server.exchange import Exchange
from server.list_route import ListRoute
from server.operations import RESUMES, Operation, Operations
from server.rate_limits import RateLimits
from server.readers import Readers
from server.reception import Reception, RemoteReception

T = TypeVar("T")

LIMITED = {"rate_per_minute": 1, "rate_per_hour": 0, "rate_per_day": 0}


class CountingReaders(Readers):
    """Readers that count how often somebody waited for them."""

    visits = 0

    async def run(self, visit: Callable[[float], T]) -> T:
        """As ever."""
        self.visits += 1
        return await super().run(visit)


@pytest.fixture
def readers() -> Iterator[CountingReaders]:
    readers = CountingReaders(deadline_s=5)
    yield readers
    readers.close()


Make = Callable[..., RemoteReception]


@pytest.fixture
def remote(store: Store, settings: Settings, readers: CountingReaders) -> Make:
    """Makes receptions that read the store in threads, whatever engine it is on."""

    def make(**limits: Any) -> RemoteReception:
        limited = settings.model_copy(update=limits)
        return RemoteReception(
            Authenticator(store),
            operations_of(store),
            RateLimits(limited) if limits else None,
            readers=readers,
        )

    return make


def operations_of(store: Store) -> Operations:
    route = ListRoute(store)
    return Operations({"GET": Operation("list", route, route.read)}, {})


class Asked:
    """A request, and what was sent in answer to it."""

    def __init__(self, key: str, *, path: str = RESUMES, method: str = "GET") -> None:
        header = (b"authorization", b"Bearer " + key.encode())
        scope: Scope = {
            "type": "http", "path": path, "method": method, "query_string": b"", "headers": [header],
        }  # fmt: skip
        self.sent: list[Message] = []
        self.exchange = Exchange(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        raise AssertionError("nobody reads the body of a GET")

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    async def at(self, reception: Reception) -> "Asked":
        """It was received there, and what that led to is done."""
        await reception.receive(self.exchange)
        return self


def test_a_store_that_is_far_is_visited_once_for_a_page(
    remote: Make, readers: CountingReaders, store: Store, a_key: Callable[..., str]
) -> None:
    key = a_key()
    near = Reception(Authenticator(store), operations_of(store), None)

    async def ask() -> tuple[Asked, Asked]:
        return await Asked(key).at(remote()), await Asked(key).at(near)

    far, here = asyncio.run(ask())

    assert readers.visits == 1
    assert far.exchange.status == here.exchange.status == 200
    assert far.sent[1] == here.sent[1]
    assert far.exchange.operation == here.exchange.operation == "list"
    assert far.exchange.holder == here.exchange.holder


def test_the_loop_goes_on_while_a_thread_reads(
    remote: Make, a_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = a_key()
    loop_went_on = threading.Event()
    real = listing.list_page

    def read_slowly(*given: Any, **named: Any) -> listing.Page:
        assert loop_went_on.wait(60), "the loop stood still"
        return real(*given, **named)

    monkeypatch.setattr(listing, "list_page", read_slowly)

    async def ask() -> Asked:
        request = asyncio.create_task(Asked(key).at(remote()))
        await asyncio.sleep(0)
        loop_went_on.set()
        return await request

    assert asyncio.run(ask()).exchange.status == 200


@pytest.mark.parametrize(
    ("path", "method", "status"), [(RESUMES, "PUT", 405), ("/api/v1/nothing", "GET", 404)]
)
def test_paths_and_methods_are_told_to_those_who_have_a_key_alone(
    remote: Make, a_key: Callable[..., str], path: str, method: str, status: int
) -> None:
    reception, key = remote(), a_key()

    with pytest.raises(InvalidKey):
        asyncio.run(Asked("enh_live_x", path=path, method=method).at(reception))
    known = Asked(key, path=path, method=method)
    with pytest.raises(HTTPException) as refusal:
        asyncio.run(known.at(reception))

    assert refusal.value.status_code == status
    assert known.exchange.holder is not None


def test_a_key_that_asks_too_often_costs_no_page(
    remote: Make, a_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reception, key = remote(**LIMITED), a_key()
    pages: list[str] = []
    real = listing.list_page

    def count(*given: Any, **named: Any) -> listing.Page:
        pages.append("page")
        return real(*given, **named)

    monkeypatch.setattr(listing, "list_page", count)

    async def ask() -> list[Asked]:
        return [await Asked(key).at(reception) for _ in range(2)]

    asked = asyncio.run(ask())

    assert [one.exchange.status for one in asked] == [200, 429]
    assert len(pages) == 1
    assert all((b"x-ratelimit-limit", b"1") in one.exchange.headers for one in asked)


def test_threads_count_every_request(
    remote: Make, a_key: Callable[..., str], readers: CountingReaders
) -> None:
    reception, key = remote(**LIMITED | {"rate_per_minute": 20}), a_key()

    async def ask() -> list[Asked]:
        return await asyncio.gather(*(Asked(key).at(reception) for _ in range(60)))

    statuses = [one.exchange.status for one in asyncio.run(ask())]

    # A token comes every 3 s, so a slow machine may let one or two more in.
    assert 20 <= statuses.count(200) <= 25
    assert statuses.count(200) + statuses.count(429) == 60
    assert readers.visits == 60


def test_a_read_that_loses_its_connection_is_made_again_and_counted_once(
    remote: Make, a_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reception, key = remote(**LIMITED), a_key()
    losses = [StoreUnavailable("lost")]
    real = listing.list_page

    def lose_one(*given: Any, **named: Any) -> listing.Page:
        if losses:
            raise losses.pop()
        return real(*given, **named)

    monkeypatch.setattr(listing, "list_page", lose_one)

    assert asyncio.run(Asked(key).at(reception)).exchange.status == 200


def test_what_takes_too_long_is_told_at_the_deadline_with_what_is_known_by_then(
    store: Store, a_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(listing, "list_page", lambda *_, **__: release.wait(30))
    readers = Readers(deadline_s=1)
    asked = Asked(a_key())
    reception = RemoteReception(Authenticator(store), operations_of(store), None, readers=readers)

    with pytest.raises(StoreUnavailable):
        asyncio.run(asked.at(reception))
    release.set()
    reception.close()

    assert asked.exchange.operation == "list"
    assert asked.exchange.holder is not None


def test_the_use_of_a_key_is_noted(
    store: Store, a_key: Callable[..., str], readers: CountingReaders
) -> None:
    authenticator = Authenticator(store)
    reception = RemoteReception(authenticator, operations_of(store), None, readers=readers)
    key = a_key()

    async def ask() -> None:
        await Asked(key).at(reception)
        await authenticator.finish()

    asyncio.run(ask())

    assert keys.list_keys(store)[0].last_used_at is not None
