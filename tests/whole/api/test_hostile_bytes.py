"""Bytes that are no request, or could be read as two: one answer, and the connection ends."""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.support.api.hostile_bytes import (
    BODY,
    CHUNKED,
    CHUNKS,
    FIELDS,
    HOST,
    LENGTH,
    LINES,
    PATH,
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


@pytest.mark.parametrize("name", FIELDS)
def test_fields_and_chunks_that_could_be_read_in_two_ways_are_400(
    served: Served, name: str
) -> None:
    fields, body = FIELDS[name]

    refused_without_a_second(served, a_post(served, fields, body), 400)


@pytest.mark.parametrize("name", LINES)
def test_request_lines_that_are_not_served_are_400(served: Served, name: str) -> None:
    refused_without_a_second(served, a_post(served, line=LINES[name]), 400)


@pytest.mark.parametrize(
    "host", [b"", HOST + HOST, b"Host: a b\r\n", b"Host: a@b\r\n", b"Host: a/b\r\n"]
)
def test_a_request_without_one_host_is_400(served: Served, host: bytes) -> None:
    refused_without_a_second(served, a_post(served, host=host), 400)


def test_line_feeds_for_line_ends_are_400(served: Served) -> None:
    refused_without_a_second(served, a_post(served).replace(b"\r\n", b"\n"), 400)


def test_chunks_in_http_1_0_are_400(served: Served) -> None:
    line = b"POST " + PATH + b" HTTP/1.0"

    refused_without_a_second(served, a_post(served, CHUNKED, CHUNKS, line=line), 400)


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip", b"xchunked"])
def test_other_transfer_codings_are_501(served: Served, coding: bytes) -> None:
    fields = b"Transfer-Encoding: %b\r\n" % coding

    refused_without_a_second(served, a_post(served, fields, CHUNKS), 501)


@pytest.mark.parametrize(
    ("fields", "line", "status"),
    [
        (b"X-A: " + b"x" * 66_000 + b"\r\n", b"", 431),
        (b"X-A: " + b"x" * 10_000_000 + b"\r\n", b"", 431),
        (b"X-A: b\r\n" * 101, b"", 431),
        (b"X-A: b\r\n" * 100_000, b"", 431),
        (b"", PATH + b"?" + b"x" * 8_200, 414),
        (b"", PATH + b"?" + b"x" * 1_000_000, 414),
    ],
)
def test_what_is_too_large_before_the_body_is_414_or_431(
    served: Served, fields: bytes, line: bytes, status: int
) -> None:
    line = b"POST " + (line or PATH) + b" HTTP/1.1"

    refused_without_a_second(served, a_post(served, LENGTH + fields, line=line), status)


def refused_without_a_second(served: Served, request: bytes, status: int) -> None:
    """The request has this one answer, in the one shape, and what follows it is not run."""
    before = created(served)

    answers = send(served, request + a_post(served))

    assert statuses(answers) == [status]
    head, _, body = answers.partition(b"\r\n\r\n")
    error = json.loads(body)
    assert error["status"] == status
    assert f"x-request-id: {error['requestId']}".encode() in head
    assert b"connection: close" in head
    assert created(served) == before


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (LENGTH + b"X-A: " + b"x" * 63_000 + b"\r\n", PATH),
        (LENGTH + b"X-A: b\r\n" * 96, PATH),
        (LENGTH, PATH + b"?" + b"x" * 8_100),
    ],
)
def test_a_head_just_below_the_limits_is_served(served: Served, fields: bytes, line: bytes) -> None:
    request = a_post(served, fields, line=b"POST " + line + b" HTTP/1.1")

    answers = send(served, request + a_post(served, LENGTH + b"Connection: close\r\n"))

    assert statuses(answers) == [201, 201]


def test_a_client_may_send_its_body_in_chunks_of_one_byte(served: Served) -> None:
    body = BODY + b" " * 50_000
    chunks = b"".join([b"0001\r\n%c\r\n" % byte for byte in body]) + b"0\r\n\r\n"

    answers = send(served, a_post(served, CHUNKED + b"Connection: close\r\n", chunks))

    assert statuses(answers) == [201]


def test_a_header_behind_a_body_in_chunks_says_nothing(served: Served) -> None:
    key = b"Authorization: Bearer %b\r\n" % served.key.encode()
    trailer = CHUNKS[:-2] + key + b"\r\n"
    get = b"GET " + PATH + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    without_key = a_post(served, CHUNKED, trailer).replace(key, b"", 1)

    assert statuses(send(served, without_key + get)) == [401, 401]


def test_a_broken_body_behind_a_request_is_not_taken_for_its_answer(served: Served) -> None:
    answers = send(served, a_post(served) + a_post(served, CHUNKED, b"zz\r\n"))

    assert statuses(answers) == [201]


def test_a_refusal_has_the_id_that_the_request_came_with(served: Served) -> None:
    request = a_post(served, b"X-Request-Id: mine-7\r\n" + LENGTH, host=b"")

    _, _, body = send(served, request).partition(b"\r\n\r\n")

    assert json.loads(body)["requestId"] == "mine-7"


def test_every_offer_of_another_protocol_is_declined(served: Served) -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    close = LENGTH + b"Connection: close\r\n"

    answers = send(served, a_post(served, LENGTH + offer) * 300 + a_post(served, close))

    assert statuses(answers) == [201] * 301


@pytest.mark.slow
def test_thousands_of_requests_sent_at_once_are_all_answered(served: Served) -> None:
    get = b"GET / HTTP/1.1\r\n" + HOST
    last = get + b"Connection: close\r\n\r\n"

    assert statuses(send(served, (get + b"\r\n") * 5_000 + last)) == [200] * 5_001


def test_a_client_that_sends_no_more_still_has_its_answers(served: Served) -> None:
    with a_connection(served.url) as connection:
        connection.sendall(a_post(served) * 200)
        connection.shutdown(socket.SHUT_WR)

        assert statuses(read_all(connection)) == [201] * 200


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
