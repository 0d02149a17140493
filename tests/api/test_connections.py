"""What a client meets on its connection, byte by byte; refusals are in test_refusals.py."""

import contextlib
import fcntl
import json
import resource
import select
import signal
import socket
import termios
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from resumes.errors import StoreUnavailable
from resumes.log_writer import LogWriter
from server.connections import REFUSED_AT_ONCE, RESERVED_FILES, find_room
from server.openapi import ASSETS, SWAGGER_UI
from server.request import UNAVAILABLE
from tests.support.api.builders import RESUMES, Client, a_body
from tests.support.api.refused import (
    JSON,
    MAX_BYTES,
    a_create,
    a_request,
    as_in_1990,
    kept,
    keyed,
    statuses,
)
from tests.support.api.serving import (
    Place,
    a_connection,
    count_connections,
    exchange,
    fill_disk,
    read_all,
    read_answer,
    send,
    serve_here,
)
from tests.support.waiting import wait_until

MIB = 1024 * 1024


CREATE, GET, HEAD = kept(a_create(a_body())), kept(a_request("GET")), kept(a_request("HEAD"))
GARBAGE = b"GARBAGE\r\n\r\n"


@contextlib.contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """How much more memory this process, with its server, had at most than in the beginning."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Answers


def test_answers_are_json_that_no_cache_keeps_with_a_date_and_no_server(client: Client) -> None:
    asked = {"Authorization": f"Bearer {client.key}", "Origin": "https://elsewhere.test"}
    for answer in (
        client.page(),
        client.create({}),
        client.get("x"),
        client.request("GET", "/nothing"),
        client.request("GET", headers=asked),
        client.request("OPTIONS", headers=asked | {"Access-Control-Request-Method": "GET"}),
    ):
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Date"].endswith(" GMT")
        assert "Server" not in answer.headers
        assert "access-control-" not in str(answer.headers).lower()


def test_a_request_may_bring_its_id_and_an_odd_one_is_replaced(client: Client) -> None:
    for given in ("a", "A.b_c-9", "x" * 64):
        for headers in ({"X-Request-Id": given}, {"X-Request-Id": given, "Authorization": "x"}):
            answer = client.request("GET", "/api/v1/resumes/x", headers=headers)
            assert answer.headers["X-Request-Id"] == answer.json()["requestId"] == given
    odd = [given.encode("latin-1") for given in ("", "x" * 65, "a b", "a,b", "\u00e4", "a/b")]
    answers = [client.request("GET", headers={"X-Request-Id": given}) for given in odd]

    made = {answer.headers["X-Request-Id"] for answer in answers}
    assert [len(one) for one in made] == [16] * len(odd)


def test_every_answer_of_health_and_description_bears_the_id_too(client: Client) -> None:
    for path in ("/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/nothing"):
        answer = client.request("GET", path, headers={"X-Request-Id": "mine"})
        assert answer.headers["X-Request-Id"] == "mine"
        head = client.request("HEAD", path, headers={"X-Request-Id": "mine"})
        assert (head.status_code, [*head.headers]) == (answer.status_code, [*answer.headers])
        assert head.content == b""


# Several requests on one connection


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (
            (CREATE + GET + kept(a_create(b"{"))) * 20 + a_request("GET", f"{RESUMES}/x"),
            [201, 200, 400] * 20 + [404],
        ),
        (HEAD + a_request("GET"), [200, 200]),
        (HEAD + GARBAGE, [200, 400]),
        (CREATE + GARBAGE, [201]),  # what is said of the rest would be taken for its answer
        (as_in_1990(GET) + GARBAGE, [200]),
        (a_request("GET") + GARBAGE, [200]),
        (GARBAGE + CREATE, [400]),
        (CREATE.replace(b"Host:", b"X:") + CREATE, [400]),
        (CREATE[:4] + b" \r\n\r\n" + CREATE, [400]),
    ],
    ids=range(9),
)
def test_requests_sent_together_are_answered_in_order_and_nothing_behind_the_last(
    client: Client, sent: bytes, expected: list[int]
) -> None:
    answers = exchange(client.url, keyed(client, sent))

    assert statuses(answers) == expected
    assert answers.count(b"connection: close\r\n") == 1
    assert len(client.ids()) == expected.count(201)
    if sent.startswith(HEAD):  # which has no body
        assert answers.partition(b"\r\n\r\n")[2].startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"HEAD / HTTP/1.1\r\n\r\n",
        b"HEAD /%2e HTTP/1.1\r\nHost: x\r\n\r\n",
        b"HEAD /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"HEAD / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_a_head_that_is_refused_has_no_body_either(client: Client, sent: bytes) -> None:
    assert exchange(client.url, sent).endswith(b"\r\n\r\n")
    assert exchange(client.url, sent.replace(b"HEAD", b"GET", 1)).endswith(b"}")


@pytest.mark.parametrize("behind", [b"zz\r\n", b"0\r\nConnection: close\r\n\r\n"])
def test_a_body_that_breaks_or_ends_its_connection_behind_its_answer_has_no_other(
    client: Client, behind: bytes
) -> None:
    head = kept(a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked", key=None))
    with a_connection(client.url) as connection:
        connection.sendall(head + b"5\r\n")
        assert statuses(read_answer(connection)) == [401]
        connection.sendall(b"12345\r\n" + behind)

        assert read_all(connection) == b""  # to the end, which is the server's to bring


def test_a_client_that_sends_no_more_still_has_its_answers(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.deadlines.LINGER_S", 600)  # which nothing here waits for
    created = client.create(a_body()).json()["id"]
    for sent, expected in (
        (kept(a_create(a_body())) * 50, [201] * 50),
        *[(kept(a_request("GET", f"{RESUMES}/{created}")), [200])] * 20,
        *[(kept(a_request("GET", key=None)), [401])] * 20,
        (a_request("POST", RESUMES, JSON, b"Content-Length: 3000000"), [413]),
        (b"GARBAGE\r\n\r\n", [400]),
        (a_create(a_body())[:-1], []),
        (kept(a_create(a_body())) * 5 + a_create(a_body())[:40], [201] * 5),
        (kept(a_create(a_body())) * 5 + a_create(a_body())[:-1], [201] * 5),
        (kept(a_create(a_body())) * 5 + b"GARBAGE\r\n\r\n", [201] * 5),
        (b"", []),
    ):
        with a_connection(client.url) as connection:
            connection.sendall(keyed(client, sent))
            connection.shutdown(socket.SHUT_WR)

            assert statuses(read_all(connection)) == expected
            wait_until(lambda: count_connections(client.url) == 1)  # the client's own
    assert caplog.records == []


def test_a_client_that_leaves_before_its_body_is_whole_creates_nothing(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    request = a_create(a_body())
    chunked = a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked")
    chunk = b"%x\r\n%b\r\n" % (len(a_body()), a_body())
    for sent in (request[:-1], request[:-10], request[: -len(a_body())], chunked + chunk):
        with a_connection(client.url) as connection:
            connection.sendall(keyed(client, sent))
    only_this = "resumes_requests_in_flight 1.0"
    wait_until(lambda: only_this in client.request("GET", "/metrics").text)

    assert client.ids() == []
    assert caplog.records == []


# Bodies


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(client: Client) -> None:
    request = keyed(client, kept(a_create(a_body(), b"Expect: \t100-continue \t")))
    # Blanks around a value are no part of it.
    request = request.replace(b"Host: resumes.test", b"Host: resumes.test ")
    request = request.replace(b"Id: mine", b"Id: mine \t")
    with a_connection(client.url) as connection:
        connection.sendall(request[: -len(a_body())])
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(a_body())
        answer = read_answer(connection)

    assert statuses(answer) == [201]
    assert b"x-request-id: mine\r\n" in answer


HUNDRED = b"Content-Length: 100"


@pytest.mark.parametrize(
    ("line", "fields", "status"),
    [
        (f"POST {RESUMES}", [b"Content-Length: 3000000", JSON], 413),
        (f"POST {RESUMES}", [HUNDRED, b"Content-Type: text/plain"], 415),
        (f"POST {RESUMES}", [HUNDRED, JSON, b"Authorization: Bearer x"], 401),
        (f"PUT {RESUMES}", [HUNDRED, JSON], 405),
        (f"GET {RESUMES}", [HUNDRED], 200),
        ("GET /healthz", [HUNDRED], 200),
        ("GET /docs/docs.js", [HUNDRED], 200),
    ],
)
def test_an_answer_before_the_body_is_asked_for_is_the_last_of_its_connection(
    client: Client, line: str, fields: list[bytes], status: int
) -> None:
    method, _, path = line.partition(" ")
    request = keyed(client, kept(a_request(method, path, b"Expect: 100-continue", *fields)))
    with a_connection(client.url) as connection:
        connection.sendall(request)
        answer = read_answer(connection)
        # It may send its body now or not, so nothing that it sends is a request.
        with contextlib.suppress(ConnectionError):
            connection.sendall(keyed(client, a_create(a_body())))

        assert statuses(answer) == [status]
        assert b"connection: close" in answer
        assert read_all(connection) == b""
    assert client.ids() == []


def test_nor_is_another_read_behind_an_unanswered_429_or_503(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill_disk(monkeypatch, tmp_path)
    place = a_place(rate_limit=True, rate_per_minute=1)
    client = place.client()
    expecting = a_request("POST", RESUMES, JSON, HUNDRED, b"Expect: 100-continue")
    full = place.client()
    wait_until(lambda: b" 503 " in exchange(place.url, keyed(place.client(), expecting)))
    assert client.page().status_code == 200
    for each, status in ((client, 429), (full, 503)):
        with a_connection(place.url) as connection:
            connection.sendall(keyed(each, kept(expecting)))
            answer = read_all(connection)
        assert statuses(answer) == [status]
        assert b"connection: close" in answer


def test_a_refusal_whose_body_has_come_all_the_same_keeps_its_connection(client: Client) -> None:
    refused = kept(a_request("POST", RESUMES, b"Expect: 100-continue", body=a_body()))
    nothing = kept(a_request("POST", RESUMES, b"Expect: 100-continue", body=b""))

    answers = exchange(client.url, keyed(client, refused + nothing + a_request("GET")))

    assert statuses(answers) == [415, 415, 200]
    assert answers.count(b"connection: close") == 1


@pytest.mark.parametrize(
    ("line", "status"),
    [
        *((blanks + b"GET /healthz HTTP/1.1\r\n", 200) for blanks in (b"\r\n", b"\n", b"\n\r\n\n")),
        *((b"GET%b/healthz HTTP/1.1\r\n" % blanks, 200) for blanks in (b"  ", b"    ")),
        (b"GET /healthz   HTTP/1.1\r\n", 200),
        (b" GET /healthz HTTP/1.1\r\n", 400),
        (b"GET\t/healthz HTTP/1.1\r\n", 400),
        (b"GET /healthz HTTP/1.1 \r\n", 400),
        (b"GET /healthz HTTP/1.1\n", 400),
    ],
)
def test_only_what_rfc_9112_lets_a_server_skip_is_skipped(
    client: Client, line: bytes, status: int
) -> None:
    sent = line + b"Host: a\r\n\r\n"

    assert statuses(exchange(client.url, sent)) == [status]
    assert statuses(exchange(client.url, *(sent[at : at + 1] for at in range(len(sent))))) == [
        status
    ]


def test_a_resume_is_created_over_a_target_as_for_a_proxy(client: Client) -> None:
    target = f"http://elsewhere.test:1{RESUMES}"
    # An offer of another protocol is declined, and the body kept.
    offer = [b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAA"]
    for fields in ([], [b"Expect: 100-continue"], offer):
        create = keyed(client, kept(a_create(a_body(), *fields)))
        create = create.replace(RESUMES.encode(), target.encode(), 1)
        answers = exchange(client.url, create[:-20], create[-20:] + keyed(client, a_request("GET")))
        assert statuses(answers)[-2:] == [201, 200]
    assert len(client.ids()) == 3


# What fails in the middle


@pytest.mark.parametrize(
    ("place_of_it", "error"),
    [
        ("receiver.check_head", AttributeError("a slip")),
        ("receiver.count_bytes", AttributeError("a slip")),
        ("request.Request.receive", AttributeError("a slip")),
        ("receiver.check_head", MemoryError()),
    ],
)
def test_an_error_of_ours_while_a_request_is_read_is_500_and_logged_and_want_of_memory_503(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place_of_it: str,
    error: Exception,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"server.{place_of_it}", fail)
    request = keyed(client, kept(a_create(a_body(), b"X-Long: " + b"x" * 20_000)))

    answer = exchange(client.url, request * 2)

    head, _, body = answer.partition(b"\r\n\r\n")
    told = json.loads(body)
    status = 503 if isinstance(error, MemoryError) else 500
    assert (statuses(answer), told["status"], told["requestId"]) == ([status], status, "mine")
    assert b"connection: close" in head
    if status == 503:
        assert told["error"] == UNAVAILABLE
        assert b"retry-after: 1\r\n" in head
    else:
        assert f"{told['error']} of request mine" in caplog.text
        assert "AttributeError: a slip" in caplog.text
    monkeypatch.undo()
    assert client.ids() == []


BUNDLE = f"/docs/{SWAGGER_UI}/swagger-ui-bundle.js"


def test_an_answer_that_is_cut_off_is_followed_by_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = (ASSETS / SWAGGER_UI / "swagger-ui-bundle.js").read_bytes()
    sent = kept(a_request("GET", BUNDLE, key=None))
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context((tmp_path / "log").open("wb"))
        options = {"log": LogWriter(lines.fileno())}
        with serve_here(tmp_path, access_log=True, options=options) as place:
            connection = stack.enter_context(a_connection(place.url))
            # More than the system keeps for a client that does not read.
            connection.sendall(sent * 20)
            client = place.client()
            unread: list[bytes] = []

            def is_stuck() -> bool:
                has_begun = "in_flight 2.0" in client.request("GET", "/metrics").text
                unread.append(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))
                return has_begun and len(unread) > 9 and len({*unread[-10:]}) == 1

            wait_until(is_stuck)
            client.close()
            place.signals += [signal.SIGINT, signal.SIGINT]
        received = read_until_cut_off(connection)
        lines_logged = (tmp_path / "log").read_bytes().splitlines()
    logged = [line for line in lines_logged if b"request mine:" in line]
    first, *answers = received.split(b"HTTP/1.1 ")
    assert first == b""
    for number, answer in enumerate(answers, 1):
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"200 OK")
        assert body == whole if number < len(answers) else whole.startswith(body)
    assert len(answers) < 20
    assert "Cut off the response to request mine: The server is shutting down" in caplog.text
    assert len(answers) <= len(logged) < 20
    assert {line.partition(b"status ")[2][:3] for line in logged} == {b"200"}


def read_until_cut_off(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection, in whichever way."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    return received


@pytest.mark.parametrize("error", [MemoryError, AttributeError, OSError, StoreUnavailable("away")])
def test_nor_is_an_error_told_within_an_answer(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception] | Exception,
) -> None:
    async def fail(_: object) -> None:
        raise error

    def failures() -> list[str]:
        text = client.request("GET", "/metrics").text
        return [line for line in text.splitlines() if 'operation="other",status="5' in line]

    before = failures()
    monkeypatch.setattr("server.connection.Connection.drain", fail)
    with a_connection(client.url) as connection:
        connection.sendall(kept(a_request("GET", BUNDLE, key=None)))

        head, _, body = read_until_cut_off(connection).partition(b"\r\n\r\n")

    assert statuses(head) == [200]
    assert (ASSETS / SWAGGER_UI / "swagger-ui-bundle.js").read_bytes().startswith(body)
    assert "Cut off the response to request mine: " in caplog.text
    assert failures() == before


@pytest.mark.parametrize(
    ("size", "fields", "status"),
    [
        (15 * MIB, [JSON], 413),
        (MAX_BYTES, [JSON, b"Content-Encoding: gzip"], 415),
        (MAX_BYTES, [JSON, b"Authorization: Bearer unknown"], 401),
    ],
)
def test_a_client_that_sends_all_before_it_reads_sees_its_refusal(
    client: Client, size: int, fields: list[bytes], status: int
) -> None:
    request = keyed(client, a_request("POST", RESUMES, *fields, body=b" " * size))
    with a_connection(client.url) as connection:
        connection.sendall(request)

        head, _, body = read_all(connection).partition(b"\r\n\r\n")

    assert statuses(head) == [status]
    assert b"connection: close" in head.lower()
    assert json.loads(body)["status"] == status


def test_a_chunked_body_is_created_or_413_by_its_size(client: Client) -> None:
    head = keyed(client, kept(a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked")))
    chunks = b"".join(b"1;x=y\r\n%c\r\n" % byte for byte in a_body()) + b"0\r\nX-Late: a\r\n\r\n"
    with a_connection(client.url) as connection:
        connection.sendall(head + chunks)
        assert statuses(read_answer(connection)) == [201]
        connection.sendall(head + b"%x\r\n" % (3 * MIB) + b" " * (3 * MIB) + b"\r\n0\r\n\r\n")

        assert statuses(read_all(connection)) == [413]


# What all connections share


def test_bodies_beyond_the_memory_for_them_are_503_and_all_of_it_comes_back(
    a_place: Callable[..., Place], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.connections.BODY_MEMORY_BYTES", MIB)
    place = a_place(max_body_bytes=MIB, client_timeout_s=60)  # so 2 MiB: a largest one fits
    client = place.client()
    large = keyed(client, kept(a_request("POST", RESUMES, JSON, b"Content-Length: %d" % MIB)))
    refused = keyed(client, kept(a_create(b"[" * 100)))
    last = keyed(client, as_in_1990(a_request("GET")))
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            ended, first, second, third = (
                stack.enter_context(a_connection(place.url)) for _ in range(4)
            )
            # Nothing is kept of what is thrown away.
            send(place.url, ended, last + refused + large)
            assert statuses(read_all(ended)) == [200]
            send(place.url, ended, b" " * MIB)
            # One body is released, the one behind it is not.
            send(place.url, first, refused + large + b" " * (MIB - 1))
            assert statuses(read_answer(first)) == [400]
            assert client.create(a_body()).status_code == 201
            send(place.url, second, large + b" " * (MIB - 1))
            send(place.url, third, large + b"  ")
            assert not select.select([first, second, third], [], [], 0)[0]
            send(place.url, third, b" ")
            answer = read_answer(third)
            assert statuses(answer) == [503]
            assert b"retry-after: 1\r\n" in answer
            assert UNAVAILABLE.encode() in answer
        wait_until(lambda: count_connections(place.url) == 1)  # the client's
    assert caplog.records == []


@pytest.mark.parametrize(("key", "status"), [(b"ADA", 413), (b"unknown", 401)])
def test_a_refused_body_is_read_up_to_a_limit(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch, key: bytes, status: int
) -> None:
    monkeypatch.setattr("server.connection.DRAIN_BYTES", 400_000)
    place = a_place(client_timeout_s=60)
    client = place.client()
    create = kept(a_request("POST", RESUMES, JSON, b"Content-Length: 3000000", key=key))
    with a_connection(place.url) as connection:
        send(place.url, connection, keyed(client, create))
        assert statuses(read_answer(connection)) == [status]
        for _ in range(4):
            send(place.url, connection, b" " * 100_000)
        assert count_connections(place.url) == 1
        connection.sendall(b" ")
        wait_until(lambda: count_connections(place.url) == 0)


def test_a_body_is_in_memory_until_its_answer_also_if_others_wait_behind_it(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.connections.BODY_MEMORY_BYTES", MIB)
    place = a_place(max_body_bytes=100_000)  # so 1.1 MiB
    client = place.client()
    create = keyed(client, kept(a_create(b"[" * 20_000)))
    count = 400  # 8 MB
    with a_connection(place.url) as connection, ThreadPoolExecutor() as threads:
        told = threads.submit(read_all, connection)
        with contextlib.suppress(ConnectionError):
            connection.sendall(create * count)
            connection.shutdown(socket.SHUT_WR)

        assert statuses(told.result()) == [400] * count


def test_headers_behind_a_body_in_chunks_take_no_memory(client: Client) -> None:
    head = kept(a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked", key=None))
    trailers = b"a:b\r\n" * 200_000
    with a_connection(client.url) as connection, traced() as find_peak_bytes:
        connection.sendall(head + b"%x\r\n%b\r\n0\r\n" % (MIB, b" " * MIB) + trailers + b"\r\n")
        assert statuses(read_answer(connection)) == [401]
        connection.sendall(a_request("GET", key=None))
        assert statuses(read_all(connection)) == [401]

        assert find_peak_bytes() < 16 * MIB  # 60 MiB, were they kept


@pytest.mark.parametrize(
    ("begun", "endless"),
    [
        (b"", CREATE * 200),  # which wait at the client, who reads no answer
        (CREATE.partition(b"Content-Length")[0] + b"X-A: ", b"x" * 65_536),
        (kept(a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked")) + b"1b;a=",
         b"x" * 65_536),
    ],
    ids=["requests", "a header", "an extension of a chunk"],
)  # fmt: skip
def test_what_has_no_end_takes_no_memory(client: Client, begun: bytes, endless: bytes) -> None:
    with a_connection(client.url) as connection, traced() as find_peak_bytes:
        connection.sendall(keyed(client, begun))
        connection.settimeout(0.5)
        with contextlib.suppress(OSError):  # no more is taken, or the connection has ended
            for _ in range(400):
                connection.sendall(keyed(client, endless))

        assert find_peak_bytes() < 8 * MIB


def test_who_reads_no_answers_has_few_of_them_made(client: Client) -> None:
    for _ in range(100):
        client.create(a_body("Ada " + "x" * 100))
    list_all = keyed(client, kept(a_request("GET", f"{RESUMES}?limit=100")))
    with a_connection(client.url) as connection, traced() as find_peak_bytes:
        connection.sendall(list_all * 1_000)
        assert select.select([connection], [], [], 60)[0]
        assert client.page().status_code == 200  # others have theirs

        assert find_peak_bytes() < 8 * MIB  # of 25 MiB in all


def test_a_key_is_kept_once_however_it_is_sent(client: Client) -> None:
    assert client.page().status_code == 200  # whose use is written now
    get = keyed(client, kept(a_request("GET", f"{RESUMES}?limit=1")))
    with a_connection(client.url) as connection, traced() as find_peak_bytes:
        for count in range(400):
            blanks = b" " * (20_000 + count)
            connection.sendall(get.replace(b"Bearer ", b"Bearer " + blanks))
            assert statuses(read_answer(connection)) == [200]

        assert find_peak_bytes() < 2 * MIB  # of 8 MiB in all


def test_a_process_may_open_a_file_for_each_connection_or_accepts_fewer() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most, others = before[1], RESERVED_FILES + REFUSED_AT_ONCE
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (others + 500, most))
        for wanted, room, limit in (
            (0, 1, others + 500),
            (500, 500, others + 500),
            (501, 501, others + 501),
            (most, most - others, most),
        ):
            assert find_room(wanted) == room
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limit, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_connections_beyond_the_limit_are_503_until_another_is_gone(
    a_place: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = a_place(max_connections=2)
    with a_connection(place.url) as first, a_connection(place.url) as second:
        for one in (first, second):
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert statuses(read_answer(one)) == [200]
        with a_connection(place.url) as third:
            told = read_all(third)
            error = json.loads(told.partition(b"\r\n\r\n")[2])
            assert (statuses(told), error["error"]) == ([503], UNAVAILABLE)
            assert b"retry-after: 1" in told
            third.sendall(b" " * 8 * MIB)  # is read and thrown away
            second.sendall(kept(a_request("GET", "/metrics", key=None)))
            assert b"\nresumes_connections 2.0\n" in read_answer(second)
        assert caplog.records == []
        first.close()

        def is_served() -> bool:
            try:
                return httpx.get(f"{place.url}/healthz").status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(is_served)
