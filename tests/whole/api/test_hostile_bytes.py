"""Bytes that are no request, or could be read as two: one answer, and the connection ends."""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.support.api.hostile_bytes import (
    CHUNKED,
    HOST,
    LENGTH,
    REFUSED,
    a_post,
    created,
    peak_kib,
    send,
    statuses,
)
from tests.support.api.serving import Served, a_connection, read_all, serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server in a process of its own, for all tests of this module."""
    with serve(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_the_post_that_is_varied_below_is_served(served: Served) -> None:
    before = created(served)

    answers = send(served, a_post(served) + a_post(served, LENGTH + b"Connection: close\r\n"))

    assert statuses(answers) == [201, 201]
    assert created(served) == before + 2


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_one_answer_and_nothing_behind_it_is_run(
    served: Served, name: str
) -> None:
    status, parts = REFUSED[name]
    before = created(served)

    answers = send(served, a_post(served, **parts) + a_post(served))

    assert statuses(answers) == [status]
    head, _, body = answers.partition(b"\r\n\r\n")
    error = json.loads(body)
    assert error["status"] == status
    assert f"x-request-id: {error['requestId']}".encode() in head
    assert b"connection: close" in head
    assert created(served) == before


def test_line_feeds_for_line_ends_are_400(served: Served) -> None:
    before = created(served)

    answers = send(served, a_post(served).replace(b"\r\n", b"\n") + a_post(served))

    assert statuses(answers) == [400]
    assert created(served) == before


@pytest.mark.slow
def test_thousands_of_requests_sent_at_once_are_all_answered(served: Served) -> None:
    get = b"GET / HTTP/1.1\r\n" + HOST
    last = get + b"Connection: close\r\n\r\n"

    assert statuses(send(served, (get + b"\r\n") * 5_000 + last)) == [200] * 5_001


@pytest.mark.slow
def test_requests_without_end_wait_at_the_client(served: Served) -> None:
    before = peak_kib(served)
    requests = a_post(served) * 1_000
    with a_connection(served.url) as connection:
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            for _ in range(500):  # of some 250 KB; no answer is read
                connection.sendall(requests)

    assert peak_kib(served) - before < 32 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("in_chunks", [False, True])
def test_a_header_without_end_costs_no_memory(served: Served, in_chunks: bool) -> None:
    before = peak_kib(served)
    start = a_post(served, CHUNKED, b"1b;a=") if in_chunks else a_post(served, b"X-A: ", b"")[:-2]
    with a_connection(served.url) as connection:
        connection.sendall(start)
        refused = send_without_end(connection, b"x" * 65_536, 200)

    assert refused
    assert peak_kib(served) - before < 8 * 1024


def send_without_end(connection: socket.socket, block: bytes, times: int) -> bool:
    """Whether the server ended the connection before so many blocks were sent, and read."""
    try:
        for _ in range(times):
            connection.sendall(block)
        return read_all(connection) != b""
    except OSError:
        return True
