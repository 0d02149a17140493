"""How long a client may take (docs/api.md, Limits), by a clock of the test's own."""

import asyncio
import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resumes.listener import listen
from resumes.store import creation, stored_resumes
from server.connection import LATE
from server.deadlines import (
    BODY_BYTES_PER_S,
    KEEP_ALIVE_S,
    LINGER_S,
    READ_BYTES_PER_S,
    STOP_S,
    Deadlines,
    Reading,
)
from tests.support.api.builders import RESUMES, a_body, with_section
from tests.support.api.refused import JSON, a_create, a_request, kept, keyed, statuses
from tests.support.api.serving import (
    LoopClock,
    Place,
    a_connection,
    count_connections,
    read_all,
    read_answer,
    send,
)
from tests.support.waiting import wait_until

BEGAN_S = 1_000.0
CLIENT_S = 10.0
BEFORE_S = 0.002
"""So long before a deadline nothing is over yet."""


@pytest.fixture
def deadlines() -> Deadlines:
    return Deadlines(BEGAN_S, CLIENT_S)


def ends_after(
    deadlines: Deadlines, since_s: float, limit_s: float, reading: Reading, body_bytes: int = 0
) -> bool:
    """Whether the time is up after so long, and not shortly before."""
    early = deadlines.is_over(since_s + limit_s - BEFORE_S, reading, body_bytes)
    return not early and deadlines.is_over(since_s + limit_s, reading, body_bytes)


def test_the_first_head_and_a_refusal_at_once_have_their_time_from_the_beginning_of_the_connection(
    deadlines: Deadlines,
) -> None:
    assert ends_after(Deadlines(BEGAN_S, CLIENT_S), BEGAN_S, LINGER_S, Reading.DRAINING)
    assert ends_after(deadlines, BEGAN_S, CLIENT_S, Reading.BETWEEN)
    deadlines.begin(BEGAN_S + 7, is_head=True)
    assert ends_after(deadlines, BEGAN_S, CLIENT_S, Reading.HEAD)


@pytest.mark.parametrize(
    ("reading", "pause_s"), [(Reading.BODY, CLIENT_S), (Reading.DRAINING, LINGER_S)]
)
def test_a_body_may_pause_and_must_not_be_slower_than_its_rate(
    deadlines: Deadlines, reading: Reading, pause_s: float
) -> None:
    deadlines.begin(BEGAN_S)
    assert ends_after(deadlines, BEGAN_S, pause_s, reading)

    deadlines.begin(BEGAN_S)
    # Each part comes just before the end of a pause, and all are worth three seconds.
    at_s, parts = BEGAN_S, 0
    while at_s + pause_s - BEFORE_S < BEGAN_S + pause_s + 3:
        at_s, parts = at_s + pause_s - BEFORE_S, parts + 1
        assert not deadlines.is_over(at_s, reading, 3 * BODY_BYTES_PER_S + parts)
    left_s = BEGAN_S + pause_s + 3 - at_s
    assert ends_after(deadlines, at_s, left_s + 0.001, reading, 3 * BODY_BYTES_PER_S + parts + 1)

    deadlines.begin(BEGAN_S)
    much = 1_000 * BODY_BYTES_PER_S
    assert not deadlines.is_over(BEGAN_S + 1, reading, much)
    assert ends_after(deadlines, BEGAN_S + 1, pause_s, reading, much)


def test_what_another_body_had_received_counts_no_longer(deadlines: Deadlines) -> None:
    deadlines.begin(BEGAN_S)
    assert not deadlines.is_over(BEGAN_S + 1, Reading.BODY, 5)
    deadlines.begin(BEGAN_S + 2)
    assert not deadlines.is_over(BEGAN_S + 3, Reading.BODY, 5)
    assert ends_after(deadlines, BEGAN_S + 3, CLIENT_S - 1 + 5 / BODY_BYTES_PER_S, Reading.BODY, 5)


def test_a_stop_leaves_an_incomplete_request_a_little_time_and_other_data_none(
    deadlines: Deadlines,
) -> None:
    deadlines.begin(BEGAN_S)
    assert not deadlines.has_stopped(BEGAN_S + 5)
    assert not deadlines.is_over(BEGAN_S, Reading.DRAINING, 0)
    deadlines.stop_s = BEGAN_S + 1
    for reading in (Reading.HEAD, Reading.BODY):
        assert ends_after(deadlines, BEGAN_S + 1, STOP_S, reading)
    assert not deadlines.is_over(BEGAN_S + 1 + STOP_S, Reading.BETWEEN, 0)
    assert deadlines.is_over(BEGAN_S + 1, Reading.DRAINING, 0)
    assert not deadlines.has_stopped(BEGAN_S + 1 + STOP_S - BEFORE_S)


def test_a_client_must_read_a_pending_answer_at_its_rate(deadlines: Deadlines) -> None:
    enough = int(READ_BYTES_PER_S * CLIENT_S)
    assert not deadlines.is_stuck(BEGAN_S + 5, 0, 1)
    assert not deadlines.is_stuck(BEGAN_S + CLIENT_S - BEFORE_S, enough - 1, 1)
    assert deadlines.is_stuck(BEGAN_S + CLIENT_S, enough - 1, 1)

    assert not deadlines.is_stuck(BEGAN_S + CLIENT_S, enough, 1)  # the time begins again
    assert not deadlines.is_stuck(BEGAN_S + 2 * CLIENT_S - BEFORE_S, 2 * enough - 1, 1)
    assert deadlines.is_stuck(BEGAN_S + 2 * CLIENT_S, 2 * enough - 1, 1)

    assert not deadlines.is_stuck(BEGAN_S + 3 * CLIENT_S, 0, 0)  # all is sent
    assert not deadlines.is_stuck(BEGAN_S + 4 * CLIENT_S - BEFORE_S, 0, 1)
    assert deadlines.is_stuck(BEGAN_S + 4 * CLIENT_S, 0, 1)


# At a connection

SHORT_S = 0.02
"""The limit of clients here: a server checks its connections ten times as often."""

CREATE, GET = kept(a_create(a_body())), kept(a_request("GET"))
LARGE = kept(a_request("POST", RESUMES, JSON, b"Content-Length: 2000000"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    return LoopClock(monkeypatch)


def test_a_connection_ends_when_its_client_takes_too_long(
    clock: LoopClock, a_place: Callable[..., Place]
) -> None:
    place = a_place(client_timeout_s=SHORT_S)
    client = place.client()
    unknown = CREATE.replace(b"ADA", b"unknown")
    half_s = SHORT_S / 2  # passes before each part
    cases: list[tuple[list[bytes], list[int], float, list[int]]] = [
        # The first head has its time from the beginning.
        ([b""], [], half_s, []),
        ([b"\r\n\r\n"], [], half_s, []),
        ([b"G"], [], half_s, [408]),
        ([CREATE[:100]], [], half_s, [408]),
        ([CREATE[:-1]], [], SHORT_S, [408]),
        ([LARGE + b" " * 100_000], [], SHORT_S, [408]),  # however quickly it came before
        ([LARGE + b" " * 9_000, *[b" " * 9_000] * 2], [], SHORT_S, [408]),
        ([unknown[:-1]], [401], SHORT_S, []),
        ([unknown[:-1], unknown[-1:]], [401], KEEP_ALIVE_S, []),
        ([GET], [200], KEEP_ALIVE_S, []),
        ([GET, b"G"], [200], SHORT_S, [408]),
        ([GET + CREATE[:-1]], [200], SHORT_S, [408]),
        ([kept(a_create(b"[" * 100)) + CREATE[:-1]], [400], SHORT_S, [408]),
    ]
    for parts, answered, limit_s, ending in cases:
        with a_connection(place.url) as connection:
            send(place.url, connection, b"")
            for part in parts:
                clock.move(half_s)
                send(place.url, connection, keyed(client, part))
                clock.move(0)
            assert [statuses(read_answer(connection))[0] for _ in answered] == answered
            clock.move(limit_s - BEFORE_S)
            assert not select.select([connection], [], [], 0)[0], parts
            clock.move(2 * BEFORE_S)

            told = read_all(connection)

            assert statuses(told) == ending, parts
            assert told.count(LATE.encode()) == len(ending)
        wait_until(lambda: count_connections(place.url) == 0)
    assert client.ids() == []


def test_a_client_that_was_refused_may_go_on_sending_for_a_while(
    clock: LoopClock, a_place: Callable[..., Place]
) -> None:
    place = a_place(client_timeout_s=SHORT_S, max_body_bytes=1_000)
    client = place.client()
    with a_connection(place.url) as connection:
        send(place.url, connection, keyed(client, LARGE))
        assert statuses(read_all(connection)) == [413]
        for _ in range(3):
            clock.move(LINGER_S - BEFORE_S)
            send(place.url, connection, b" " * 2 * BODY_BYTES_PER_S)
            clock.move(0)
        clock.move(LINGER_S - BEFORE_S)
        assert count_connections(place.url) == 1
        clock.move(2 * BEFORE_S)
        wait_until(lambda: count_connections(place.url) == 0)


def test_a_connection_beyond_the_limit_ends_when_its_client_does_not_end_it(
    clock: LoopClock, a_place: Callable[..., Place]
) -> None:
    place = a_place(client_timeout_s=SHORT_S, max_connections=1)
    with a_connection(place.url), a_connection(place.url) as connection:
        assert statuses(read_all(connection)) == [503]
        clock.move(LINGER_S)

        def has_ended() -> bool:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"x")
                return False
            return True

        wait_until(has_ended)


@pytest.fixture
def large_answer(
    clock: LoopClock, a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Place, socket.socket, bytes]]:
    """A server, a connection on which a GET was sent, and the body of its answer, of 1.9 MB.

    The system takes less than 200 kB of it for a client that does not read.
    """

    def listen_with_small_buffers(host: str, port: int) -> socket.socket:
        listener = listen(host, port)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        return listener

    monkeypatch.setattr("server.service.listen", listen_with_small_buffers)
    place = a_place(client_timeout_s=SHORT_S)
    client = place.client()
    items = [{"text": "x" * 19_000}] * 100
    created = client.create(with_section(items=items)).json()["id"]
    get = keyed(client, kept(a_request("GET", f"{RESUMES}/{created}")))
    body = client.get(created).content
    client.close()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        connection.connect(("127.0.0.1", int(place.url.rpartition(":")[2])))
        connection.sendall(get)
        yield place, connection, body


@pytest.mark.parametrize("ends_sending", [False, True])
def test_a_client_that_reads_fast_enough_has_its_answer_to_the_end(
    clock: LoopClock,
    large_answer: tuple[Place, socket.socket, bytes],
    monkeypatch: pytest.MonkeyPatch,
    ends_sending: bool,
) -> None:
    for limit in ("KEEP_ALIVE_S", "LINGER_S"):
        monkeypatch.setattr(f"server.deadlines.{limit}", SHORT_S)
    _, connection, body = large_answer
    if ends_sending:
        connection.shutdown(socket.SHUT_WR)
    received = b""
    for size in range(200_000, 1_800_000, 200_000):
        while len(received) < size:
            received += connection.recv(65_536)
        clock.move(SHORT_S - BEFORE_S)
    while not received.endswith(body):
        received += (chunk := connection.recv(65_536))
        assert chunk


def test_a_client_that_does_not_read_its_answer_is_cut_off(
    clock: LoopClock, large_answer: tuple[Place, socket.socket, bytes]
) -> None:
    place, connection, body = large_answer
    assert select.select([connection], [], [], 60)[0]
    clock.move(SHORT_S - BEFORE_S)
    assert count_connections(place.url) == 1

    def is_cut_off() -> bool:
        clock.move(SHORT_S)  # twice, if the system took more of it meanwhile
        return count_connections(place.url) == 0

    wait_until(is_cut_off)
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            received += chunk
    assert len(received) < len(body)


def test_after_a_stall_of_the_server_what_has_arrived_is_read_before_time_is_up(
    clock: LoopClock, a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    list_page, has_stalled, may_go_on = (
        stored_resumes.list_page, threading.Event(), threading.Event(),
    )  # fmt: skip

    def list_late(*given: Any, **more: Any) -> Any:
        has_stalled.set()
        assert may_go_on.wait(60)
        return list_page(*given, **more)

    monkeypatch.setattr(stored_resumes, "list_page", list_late)
    place = a_place(client_timeout_s=SHORT_S)
    client = place.client()
    get = keyed(client, GET)
    with a_connection(place.url) as connection, a_connection(place.url) as other:
        send(place.url, connection, get[:-1])
        other.sendall(get)
        assert has_stalled.wait(60)
        connection.sendall(get[-1:])
        clock.now_s += 10 * SHORT_S
        is_due_s = time.monotonic() + SHORT_S / 5  # the check that the stall delays
        wait_until(lambda: time.monotonic() > is_due_s)
        may_go_on.set()
        assert [statuses(read_answer(each)) for each in (connection, other)] == [[200], [200]]


def test_while_an_earlier_answer_is_made_the_next_body_has_all_its_time(
    clock: LoopClock, a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_async, may_create = creation.create_async, threading.Event()

    async def create_late(*given: Any, **more: Any) -> Any:
        await asyncio.to_thread(may_create.wait, 60)
        return await create_async(*given, **more)

    monkeypatch.setattr(creation, "create_async", create_late)
    place = a_place(client_timeout_s=SHORT_S)
    client = place.client()
    create = keyed(client, CREATE)
    for ending, expected in ((create[-1:], [201]), (b"", [408])):
        with a_connection(place.url) as connection:
            send(place.url, connection, create + create[:-1])
            clock.move(10 * SHORT_S)
            may_create.set()
            assert statuses(read_answer(connection)) == [201]
            clock.move(0)  # what has come of the next body is noted
            clock.move(SHORT_S - BEFORE_S)
            connection.sendall(ending)
            clock.move(0 if ending else 2 * BEFORE_S)
            assert statuses(read_answer(connection)) == expected
        may_create.clear()
    may_create.set()
