"""Lists, single resumes, and the keys that they are asked with (docs/api.md, List)."""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resumes.settings import Settings
from resumes.store import Store, accounts, api_keys, open_store, stored_resumes
from resumes.store.api_keys import NewKey
from resumes.store.search import SearchResult
from server.routes import SEARCH_THREADS
from tests.support.api.builders import RESUMES, Client, a_resume, error_of
from tests.support.api.load import a_request
from tests.support.api.serving import Place, a_connection, serving
from tests.support.clocks import SteppingClock
from tests.support.stores import make_store_file
from tests.support.waiting import wait_until

INVALID = {"error": "Invalid API key", "status": 401}


def create(client: Client, count: int) -> list[str]:
    return [client.create(a_resume()).json()["id"] for _ in range(count)]


# The page


def test_success_is_resumes_and_pagination(client: Client) -> None:
    resume_id = client.create(a_resume(title="Engineer")).json()["id"]

    answer = client.page()

    assert re.fullmatch("[0-9a-f]{24}", resume_id)
    assert answer.status_code == 200
    assert answer.json() == {
        "resumes": [
            {
                "id": resume_id,
                "title": "Engineer",
                "filename": "AdaExampleResume.pdf",
                "createdAt": "2027-01-15T08:00:00.000Z",
                "updatedAt": "2027-01-15T08:00:00.000Z",
            }
        ],
        "pagination": {"cursor": None, "limit": 20},
    }


def test_a_page_has_20_resumes_or_as_many_as_asked_for_up_to_100_and_a_cursor_if_there_are_more(
    client: Client,
) -> None:
    created = create(client, 101)

    for query in ("", "cursor=", "cursor", "&&", "cursor=&limit=20", "%63ursor="):
        assert client.ids(query) == created[:20]
    assert client.ids("limit=1000") == created[:100]
    assert client.page("limit=1000").json()["pagination"] == {"cursor": created[99], "limit": 100}
    last = client.page(f"limit=1&cursor={created[99]}").json()
    assert [one["id"] for one in last["resumes"]] == created[100:]
    assert last["pagination"] == {"cursor": None, "limit": 1}  # though it is full
    for limit, used in (
        ("0", 1), ("-1", 1), ("-0", 1), ("1", 1), ("007", 7), ("99", 99), ("100", 100), ("101", 100),
        ("9" * 6_000, 100), ("-" + "9" * 6_000, 1), ("0" * 6_000 + "5", 5), ("%35", 5),
    ):  # fmt: skip
        page = client.page(f"limit={limit}&cursor={created[100]}").json()
        assert page == {"resumes": [], "pagination": {"cursor": None, "limit": used}}


def test_operations_without_parameters_ignore_a_query(client: Client) -> None:
    (created,) = create(client, 1)

    assert client.request("GET", f"{RESUMES}/{created}?page=2&page=3").status_code == 200
    assert client.request("DELETE", f"{RESUMES}/{created}?_=1").status_code == 200
    assert client.request("GET", "/healthz?_=1", headers={}).status_code == 200


# Search


def test_a_search_says_how_many_of_the_newest_it_left_out(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.service.Indexer", lambda *_, **__: nullcontext())
    client = a_place().client()
    create(client, 3)

    assert client.page("q=ada").json()["unsearched"] == 3
    assert "unsearched" not in client.page().json()


def test_a_slow_search_holds_up_no_other_request_and_too_many_are_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, begun = threading.Event(), threading.Semaphore(0)

    def search(*_: Any, **__: Any) -> SearchResult:
        begun.release()
        assert goes_on.wait(60)
        return SearchResult(stored_resumes.Page([], None), 0)

    monkeypatch.setattr("server.routes.find_page", search)
    slow = [Client(client.url, client.key) for _ in range(SEARCH_THREADS)]
    with ThreadPoolExecutor(SEARCH_THREADS) as threads:
        waiting = [threads.submit(each.page, "q=ada") for each in slow]
        for _ in slow:
            begun.acquire()
        assert client.page().status_code == 200
        monkeypatch.setattr("server.routes.SEARCH_TIMEOUT_S", 0.05)
        refused = client.page("q=ada")
        goes_on.set()
        assert [each.result().status_code for each in waiting] == [200] * SEARCH_THREADS
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert error_of(refused)["error"] == "Too many searches are running; try again later"


# One resume


def test_get_answers_exactly_what_create_takes(client: Client) -> None:
    def a_sent(*items: dict[str, Any]) -> dict[str, Any]:
        skills = {"column": 0, "order": 2, "items": []}
        sections = {"skills": skills, "awards": {"column": 0, "order": 1, "items": [*items]}}
        return a_resume(sections=sections, title="Engineer", style={"layout": "double"})

    # What says nothing is left out, and the item that is hidden then is not.
    item = {"title": "Prize", "description": "For engines"}
    sent = a_sent(item | {"icon": "", "record": "x"}, {"title": ""})
    resume_id = client.create(sent).json()["id"]

    answer = client.get(resume_id)

    assert (answer.status_code, answer.json()) == (200, a_sent(item, {}))
    assert list(answer.json()["sections"]) == ["skills", "awards"]
    again = client.create(answer.json())
    assert list(again.json()) == ["id"]
    assert client.get(again.json()["id"]).json() == answer.json()


# The key


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_counts_in_any_case(client: Client, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {client.key}"}

    assert client.request("GET", headers=headers).status_code == 200


def use(place: Place, client: Client) -> str:
    """Use the client's key until the server has it in memory; return its id."""

    def key() -> api_keys.KeyInfo:
        return api_keys.list_keys(place.store, account=client.account)[0]

    assert client.page().status_code == 200
    wait_until(lambda: key().last_used_at)
    assert client.page().status_code == 200
    return key().id


def test_what_cannot_be_a_key_any_more_is_401_on_the_same_connection_at_once(place: Place) -> None:
    ends: list[Callable[[Client, str], object]] = [
        lambda _, key: api_keys.revoke_key(place.store, key),
        lambda client, _: accounts.delete_account(place.store, client.account),
        lambda _, key: api_keys.rotate_key(place.store, key, grace=timedelta(0)),
    ]
    for end in ends:
        client = place.client()
        key_id = use(place, client)

        end(client, key_id)

        for answer in (client.page(), client.create(a_resume()), client.delete("x")):
            assert error_of(answer) == INVALID


def test_a_key_expires_and_its_use_is_noted_once_a_minute(a_place: Callable[..., Place]) -> None:
    place = a_place()
    accounts.create_account(place.store, "ada", plan="business")
    secret = api_keys.create_key(place.store, "ada", lifetime=timedelta(hours=1)).secret
    client = Client(place.url, secret)

    def last_use() -> str | None:
        return api_keys.list_keys(place.store)[0].last_used_at

    assert client.page().status_code == 200
    wait_until(lambda: last_use() == "2027-01-15T08:00:00.000Z")
    place.clock.advance(61)
    # Another use is not noted while the first is still being written, so it is used again.
    wait_until(
        lambda: client.page().status_code == 200 and last_use() == "2027-01-15T08:01:01.000Z"
    )
    place.clock.advance(3_539)
    assert error_of(client.page()) == INVALID


@contextmanager
def one_key(home: Path) -> Iterator[tuple[str, Store, NewKey, "Barrier"]]:
    """A server with one key and the clock that it can be stopped with, and another process's store."""
    url = make_store_file(home / "resumes.db")
    clock = Barrier()
    store = open_store(url, clock=clock)
    accounts.create_account(store, "ada", plan="business")
    key = api_keys.create_key(store, "ada")
    settings = Settings(home=home, port=0, database=url, max_connections=4_000)
    with serving(settings, store) as address, closing(open_store(url)) as other:
        client = Client(address, key.secret)
        assert client.page().status_code == 200
        wait_until(lambda: api_keys.list_keys(other)[0].last_used_at)
        assert client.page().status_code == 200  # and nobody writes from here on
        yield address, other, key, clock


class Barrier(SteppingClock):
    """A clock that the server stops at, when it is told to, until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0
        """How often the server asks for the time before it stops; it does not at 0."""
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    def __call__(self) -> int:
        if self.passes and threading.current_thread().name == "server":
            self.passes -= 1
            if not self.passes:
                self.is_reached.set()
                assert self.may_go_on.wait(60)
                self.may_go_on.clear()
        return super().__call__()

    def wait(self) -> None:
        """Return when the server stands still."""
        assert self.is_reached.wait(60)
        self.is_reached.clear()


def test_a_revoked_key_is_401_beside_a_request_that_waited_behind_another(tmp_path: Path) -> None:
    with (
        one_key(tmp_path) as (address, other, key, clock),
        a_connection(address) as pipelined,
        a_connection(address) as last,
    ):
        get = a_request(key.secret)
        clock.passes = 1
        pipelined.sendall(b"GET /docs HTTP/1.1\r\nHost: a\r\n\r\n" + get)
        clock.wait()  # in the second request, which began when the first was answered
        api_keys.revoke_key(other, key.id)
        last.sendall(get)
        clock.may_go_on.set()

        assert last.recv(65_536).startswith(b"HTTP/1.1 401 ")


def test_among_more_connections_than_the_loop_sees_at_once_a_revoked_key_is_401(
    tmp_path: Path,
) -> None:
    with one_key(tmp_path) as (address, other, key, clock), ExitStack() as stack:
        get = a_request(key.secret)
        first, last, *crowd = [stack.enter_context(a_connection(address)) for _ in range(1_100)]
        for one in (first, last, *crowd):
            one.sendall(get)
            assert one.recv(65_536).startswith(b"HTTP/1.1 200 ")
        clock.passes = 1
        first.sendall(get)
        clock.wait()  # until all the others have asked, too
        for one in crowd:
            one.sendall(get)
        clock.passes = 10
        clock.may_go_on.set()
        clock.wait()  # in the turn of their answers
        api_keys.revoke_key(other, key.id)
        last.sendall(get)
        clock.may_go_on.set()

        assert last.recv(65_536).startswith(b"HTTP/1.1 401 ")


def test_a_use_that_cannot_be_written_fails_nobody_and_is_not_tried_with_each_request(
    a_place: Callable[..., Place], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place()
    client, later = place.client(), place.client()
    for thread in place.store.write_queue.threads:
        place.store.threads.remove(thread)  # without it the service would end
    place.store.write_queue.close()

    answers = [client.page(), client.get("x"), client.create(a_resume())]

    assert [answer.status_code for answer in answers] == [200, 404, 503]
    assert error_of(answers[2])["error"] == "Service unavailable: nothing was done; try again later"
    wait_until(lambda: "Could not record the last use of" in caplog.text)
    assert [client.page().status_code for _ in range(5)] == [200] * 5
    assert caplog.text.count("Could not record the last use of") == 1
    monkeypatch.setattr("server.auth.USED_EVERY", timedelta(0))
    wait_until(
        lambda: (
            later.page().is_success and caplog.text.count("Could not record the last use of") > 2
        )
    )


def test_head_has_the_status_and_headers_of_get_and_no_body(client: Client) -> None:
    [resume_id] = create(client, 1)
    for path in (RESUMES, f"{RESUMES}/{resume_id}", f"{RESUMES}/{resume_id}/pdf", f"{RESUMES}/x"):
        got, head = client.request("GET", path), client.request("HEAD", path)
        assert head.status_code == got.status_code
        assert head.headers["Content-Length"] == got.headers["Content-Length"]
        assert head.content == b""
