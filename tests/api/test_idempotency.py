"""Creates that are sent again, with an Idempotency-Key (docs/api.md, Retrying a create)."""

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from resumes.store import Store, accounts, api_keys, open_store, schema
from resumes.store.creation import create
from server import routes
from server.request import HttpError
from server.routes import prune_forever, turn
from tests.support.api.builders import Client, a_body, a_resume, error_of, with_section
from tests.support.api.refused import a_create
from tests.support.api.serving import Place, a_connection, serve_here
from tests.support.clocks import SteppingClock
from tests.support.resumes import a_resume as a_new_resume
from tests.support.store.builders import hold_writer
from tests.support.waiting import wait_until


def is_replay(answer: httpx.Response, first: httpx.Response) -> bool:
    """Whether it is the first answer again, and says so."""
    return (
        answer.headers.get("Idempotent-Replayed") == "true"
        and "Idempotent-Replayed" not in first.headers
        and (answer.status_code, answer.content) == (201, first.content)
    )


@pytest.mark.parametrize(
    "body",
    [a_body(), a_body(mood="calm"), json.dumps(with_section(items=[{"text": "x" * 15_000}] * 30))],
    ids=["plain", "warnings", "large"],
)
def test_a_repeat_with_the_same_key_and_body_is_the_same_201(client: Client, body: Any) -> None:
    first = client.post(body, Idempotency_Key="once")

    assert is_replay(client.post(body, Idempotency_Key="once"), first)
    assert ("warnings" in first.json()) == (b"mood" in first.request.content)
    assert len(client.ids()) == 1


def test_a_refusal_for_a_busy_key_keeps_nothing_of_its_request() -> None:
    class Body:
        pass

    async def wait(lock: asyncio.Lock, bodies: list[weakref.ref[Body]]) -> None:
        body = Body()
        bodies.append(weakref.ref(body))
        async with turn(lock, 0.0, partial(HttpError, 409)):
            raise AssertionError(body)

    async def main() -> None:
        await (lock := asyncio.Lock()).acquire()
        with pytest.raises(HttpError):
            await wait(lock, bodies)

    bodies: list[weakref.ref[Body]] = []
    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
        assert bodies[0]() is None
    finally:
        gc.enable()


def test_without_a_key_or_with_another_one_a_repeat_makes_another_resume(client: Client) -> None:
    longest = "".join(map(chr, range(33, 127))) + "k" * 161
    answers = [client.post(a_body(), Idempotency_Key=key) for key in ("", "", "!", longest)]

    assert len({answer.json()["id"] for answer in answers}) == 4
    assert not any("Idempotent-Replayed" in answer.headers for answer in answers)
    assert is_replay(client.post(a_body(), Idempotency_Key=longest), answers[-1])


def test_s6_a_full_account_repeats_its_201_and_remembers_no_refusal(
    free_client: Client, place: Place
) -> None:
    assert free_client.post(b"[]", Idempotency_Key="fixed").status_code == 400
    first = free_client.post(a_body("0"), Idempotency_Key="fixed")
    for number in range(4):
        free_client.post(a_body(str(number)))
    assert is_replay(free_client.post(a_body("0"), Idempotency_Key="fixed"), first)
    assert free_client.post(a_body("Bo"), Idempotency_Key="fixed").status_code == 422
    assert free_client.post(a_body("late"), Idempotency_Key="late").status_code == 403

    accounts.set_plan(place.store, free_client.account, "pro")

    answer = free_client.post(a_body("another"), Idempotency_Key="late")
    assert (answer.status_code, "Idempotent-Replayed" in answer.headers) == (201, False)


class Commits:
    """The store's commits, each of which can be made to wait or to fail."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        owner: Any = store if store.path else store.write_queue
        engine = owner._write_connection.engine if store.path else owner._engine
        self._dialect: Any = engine.dialect
        self._really = self._dialect.do_commit
        self._monkeypatch = monkeypatch
        self.has_come = threading.Event()
        self.go_on = threading.Event()

    def hold_up(self) -> None:
        """The next commit waits for `go_on`."""

        def wait(connection: Any) -> None:
            self.has_come.set()
            self.go_on.wait(60)
            self._really(connection)

        self._monkeypatch.setattr(self._dialect, "do_commit", wait)

    def fail(self, times: int, *, after: bool) -> None:
        """The next commits fail, before or after they have taken effect, and nothing tells which."""
        left = iter(range(times))

        def fail(connection: Any) -> None:
            has_to_fail = next(left, None) is not None
            if after or not has_to_fail:
                self._really(connection)
            if has_to_fail:
                raise OSError("input/output error")

        self._monkeypatch.setattr(self._dialect, "do_commit", fail)


def a_settled_client(place: Place) -> Client:
    """A client for whom nothing else is written: the use of its key was noted."""
    client = place.client()
    client.page()
    wait_until(lambda: api_keys.list_keys(place.store)[0].last_used_at)
    return client


@pytest.fixture
def broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Client, Commits, Place]]:
    """A client of a server whose commits can be held up, or fail."""
    with serve_here(tmp_path) as place:
        client = a_settled_client(place)
        commits = Commits(place.store, monkeypatch)
        yield client, commits, place
        commits.go_on.set()


def test_a_repeat_waits_for_the_first_however_many_give_up(
    broken: tuple[Client, Commits, Place],
) -> None:
    client, commits, _ = broken
    commits.hold_up()
    create = a_create(a_body(), b"Idempotency-Key: once", key=client.key.encode())
    with ThreadPoolExecutor() as threads:
        first = threads.submit(client.post, a_body(), Idempotency_Key="once")
        assert commits.has_come.wait(60)
        with a_connection(client.url) as impatient:
            impatient.sendall(create)
        repeat = threads.submit(client.post, a_body(), Idempotency_Key="once")
        commits.go_on.set()

        assert is_replay(repeat.result(), first.result())
    assert len(client.ids()) == 1


def test_a_repeat_is_409_or_503_elsewhere_when_the_first_takes_too_long(
    broken: tuple[Client, Commits, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, commits, place = broken
    monkeypatch.setattr(routes, "KEY_DEADLINE_S", 0.3)
    commits.hold_up()
    with serve_here(tmp_path, place.settings.database) as other, ThreadPoolExecutor() as threads:
        there = Client(other.url, client.key)
        first = threads.submit(client.post, a_body(), Idempotency_Key="once")
        assert commits.has_come.wait(60)
        early = client.post(a_body(), Idempotency_Key="once")
        # What waits for the store is told that, here with another key and there with any.
        waited = [client.post(a_body(), Idempotency_Key="other")]
        waited.append(there.post(a_body(), Idempotency_Key="once"))
        commits.go_on.set()

        assert (early.status_code, early.headers["Retry-After"]) == (409, "1")
        assert "still being processed" in error_of(early)["error"]
        for answer in waited:
            assert answer.status_code == 503
            assert "nothing was done" in error_of(answer)["error"]
        monkeypatch.undo()
        for each in (client, there):
            assert is_replay(each.post(a_body(), Idempotency_Key="once"), first.result())
        assert len(client.ids()) == 1


def test_a_create_with_a_key_has_one_deadline_for_its_turn_and_its_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "KEY_DEADLINE_S", 0.3)
    with serve_here(tmp_path) as place, ThreadPoolExecutor() as threads:
        client = a_settled_client(place)
        go_on, holder = hold_writer(place.store)
        waiting = threads.submit(client.create, a_resume())
        wait_until(lambda: place.store.write_queue.waiting == 1)

        repeats = [threads.submit(client.post, a_body(), Idempotency_Key="once") for _ in range(2)]
        answers = [repeat.result() for repeat in repeats]
        was_first = not waiting.done()  # which waits as long as any write
        go_on.set()
        holder.join()

        assert was_first
        for answer in answers:
            busy = "is still being processed" in error_of(answer)["error"]
            assert answer.status_code == (409 if busy else 503)
            assert answer.headers["Retry-After"] == "1"
        created = waiting.result()
        assert client.ids() == [created.json()["id"]]


@pytest.mark.parametrize("after", [False, True])
def test_an_unknown_outcome_is_503_and_the_same_key_then_makes_exactly_one_resume(
    broken: tuple[Client, Commits, Place], after: bool
) -> None:
    client, commits, _ = broken
    unknown = "Outcome unknown: it may have succeeded. "
    for key, remedy in (
        ("once", "Send it again with the same Idempotency-Key"),
        ("", "Check before you try again"),
    ):
        # The writer thread itself tries once more.
        commits.fail(2, after=after and bool(key))
        answer = client.post(a_body(), Idempotency_Key=key)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert error_of(answer)["error"] == unknown + remedy

    again = client.post(a_body(), Idempotency_Key="once")

    assert again.status_code == 201
    assert ("Idempotent-Replayed" in again.headers) is after
    assert client.ids() == [again.json()["id"]]


def test_want_of_memory_is_an_unknown_outcome_and_the_server_goes_on(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    large = with_section(items=[{"text": "x" * 15_000}] * 30)
    full = ThreadPoolExecutor()
    full.shutdown()  # refuses as one does that the system gives no thread
    with monkeypatch.context() as patched:
        patched.setattr(routes, "ASIDE", full)
        answer = client.create(large)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert error_of(answer)["error"].startswith("Outcome unknown: ")
    assert [line.partition(" request ")[0] for line in caplog.messages] == ["Out of memory for"]
    assert client.create(large).status_code == 201


def kept_keys(store: Store) -> list[str]:
    """The keys that lie in the store."""
    with store.read() as connection:
        return list(connection.execute(select(schema.idempotency.c.key)).scalars())


def test_keys_that_count_no_more_are_removed_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SteppingClock()
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}", clock=clock) as store:
        account = accounts.create_account(store, "ada")

        async def scenario() -> None:
            async with asyncio.timeout(60):
                pruning = asyncio.create_task(prune_forever(store, every_s=0.001))
                for name in ("first", "second"):
                    create(store, account.id, [a_new_resume(idempotency=name)])
                    clock.advance(24 * 3_600)
                    while kept_keys(store):
                        await asyncio.sleep(0.001)
                create(store, account.id, [a_new_resume(idempotency="third")])
                store.write_queue.close()
                clock.advance(24 * 3_600)
                while len(caplog.messages) < 3:
                    await asyncio.sleep(0.001)
                pruning.cancel()

        asyncio.run(scenario())

    assert set(caplog.messages) == {"Old Idempotency-Keys were not removed: The store is closed"}
