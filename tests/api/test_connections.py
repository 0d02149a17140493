"""What a client meets on its connection, byte by byte; refusals are in test_refusals.py."""

import asyncio
import contextlib
import fcntl
import functools
import json
import select
import signal
import socket
import termios
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from resumes.errors import StoreUnavailable
from resumes.log_writer import LogWriter
from resumes.store import creation
from server.deadlines import Deadlines, Reading
from server.openapi import ASSETS, SWAGGER_UI
from tests.support.api.builders import RESUMES, Client, a_body, error_of
from tests.support.api.refused import JSON, MAX_BYTES, a_create, a_request, statuses
from tests.support.api.serving import Place, a_connection, exchange, fill_disk, read_all, serve_here
from tests.support.waiting import wait_until

MIB = 1024 * 1024


def keyed(client: Client, sent: bytes) -> bytes:
    """The request with the client's key."""
    return sent.replace(b"Bearer ADA", b"Bearer " + client.key.encode())


def kept(sent: bytes) -> bytes:
    """The request of a client that keeps its connection."""
    return sent.replace(b"Connection: close\r\n", b"")


def as_in_1990(sent: bytes) -> bytes:
    """The request in HTTP/1.0, of a client that asks to keep its connection."""
    kept_then = kept(sent).replace(b"Host: resumes.test\r\n", b"Connection: keep-alive\r\n")
    return kept_then.replace(b"HTTP/1.1", b"HTTP/1.0")


CREATE, GET, HEAD = kept(a_create(a_body())), kept(a_request("GET")), kept(a_request("HEAD"))
GARBAGE = b"GARBAGE\r\n\r\n"


def metrics_of(client: Client) -> str:
    """What the server tells of itself."""
    return client.request("GET", "/metrics", headers={}).text


def read_answer(connection: socket.socket) -> bytes:
    """One answer with its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += (chunk := connection.recv(65536))
        assert chunk, received
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < int(length.split()[1]):
        body += (chunk := connection.recv(65536))
        assert chunk, received
    return head + b"\r\n\r\n" + body


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


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 64])
def test_a_request_may_bring_its_id(client: Client, given: str) -> None:
    for headers in ({"X-Request-Id": given}, {"X-Request-Id": given, "Authorization": "x"}):
        answer = client.request("GET", "/api/v1/resumes/x", headers=headers)
        assert answer.headers["X-Request-Id"] == answer.json()["requestId"] == given


def test_another_id_is_replaced_by_one_of_its_own(client: Client) -> None:
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
        (GARBAGE + CREATE, [400]),
        (CREATE.replace(b"Host:", b"X:") + CREATE, [400]),
        (CREATE[:4] + b" \r\n\r\n" + CREATE, [400]),
    ],
    ids=range(8),
)
def test_requests_sent_together_are_answered_in_order_and_nothing_behind_the_last(
    client: Client, sent: bytes, expected: list[int]
) -> None:
    answers = exchange(client.url, keyed(client, sent))

    assert statuses(answers) == expected
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


def test_a_client_that_sends_no_more_still_has_its_answers(client: Client) -> None:
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


def test_a_client_that_leaves_before_its_body_is_whole_creates_nothing(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    request = a_create(a_body())
    chunked = a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked")
    chunk = b"%x\r\n%b\r\n" % (len(a_body()), a_body())
    for sent in (request[:-1], request[:-10], request[: -len(a_body())], chunked + chunk):
        with a_connection(client.url) as connection:
            connection.sendall(keyed(client, sent))
    wait_until(lambda: "resumes_requests_in_flight 1.0" in metrics_of(client))

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
        each.close()


def test_a_refusal_whose_body_has_come_all_the_same_keeps_its_connection(client: Client) -> None:
    refused = kept(a_request("POST", RESUMES, b"Expect: 100-continue", body=a_body()))
    nothing = kept(a_request("POST", RESUMES, b"Expect: 100-continue", body=b""))

    answers = exchange(client.url, keyed(client, refused + nothing + a_request("GET")))

    assert statuses(answers) == [415, 415, 200]
    assert answers.count(b"connection: close") == 1


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"http://resumes.test{RESUMES}", 200),
        (f"http://elsewhere.test{RESUMES}?limit=5", 200),
        (f"https://resumes.test:8443{RESUMES}?limit=x", 400),
        (f"HTTP://RESUMES.test:80{RESUMES}/x", 404),
        (f"http://[::1]:8000{RESUMES}", 200),
        (f"http://127.0.0.1{RESUMES}?next=http://a/?b", 400),
        (f"http://a/{RESUMES}", 404),
        ("http://resumes.test", 200),
        ("http://resumes.test?", 200),
        ("https://resumes.test/", 200),
        ("http://resumes.test:/healthz", 200),
    ],
)
def test_a_target_as_for_a_proxy_is_served_by_its_path(
    client: Client, target: str, status: int
) -> None:
    sent = kept(a_request("GET", target)) + a_request("HEAD", target)

    assert statuses(exchange(client.url, keyed(client, sent))) == [status, status]


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
    "place_of_it", ["receiver.check_head", "receiver.count_bytes", "request.Request.receive"]
)
def test_an_error_of_ours_while_a_request_is_read_is_500_and_logged(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place_of_it: str,
) -> None:
    def fail(*_: object) -> None:
        raise AttributeError("a slip")

    monkeypatch.setattr(f"server.{place_of_it}", fail)
    request = keyed(client, kept(a_create(a_body(), b"X-Long: " + b"x" * 20_000)))

    answer = exchange(client.url, request * 2)

    head, _, body = answer.partition(b"\r\n\r\n")
    told = json.loads(body)
    assert (statuses(answer), told["status"], told["requestId"]) == ([500], 500, "mine")
    assert b"connection: close" in head
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


def test_a_trailer_may_end_the_connection_and_says_nothing_else(client: Client) -> None:
    chunked = b"Transfer-Encoding: chunked"
    whole = b"%x\r\n%b\r\n0\r\n" % (len(a_body()), a_body())
    create, last = (a_request("POST", RESUMES, JSON, chunked, key=key) for key in (b"ADA", None))

    late = b"Connection: close\r\n\r\n"
    answer = exchange(client.url, keyed(client, kept(create) + whole + late + GET))
    assert statuses(answer) == [201]
    assert b"connection: close" in answer
    late = keyed(client, b"Authorization: Bearer ADA\r\n\r\n")
    answers = exchange(client.url, kept(last) + whole + late + last + whole + late)
    assert statuses(answers) == [401, 401]


@pytest.mark.parametrize(
    ("head_bytes", "fields", "target", "status"),
    [
        (65_500, 5, 20, 200), (65_600, 5, 20, 431),
        (2_000, 100, 20, 200), (2_000, 101, 20, 431),
        (10_000, 5, 8 * 1024 - 16, 200), (10_000, 5, 8 * 1024 - 15, 414),
    ],
)  # fmt: skip
@pytest.mark.parametrize("part_bytes", [100_000, 1_000])
def test_a_head_is_served_up_to_its_limits_whole_and_in_parts(
    client: Client, head_bytes: int, fields: int, target: int, status: int, part_bytes: int
) -> None:
    line = b"GET %b HTTP/1.1\r\n" % b"/healthz?".ljust(target, b"x")
    lines = [b"host: a\r\n", b"connection: close\r\n", *[b"x: y\r\n"] * (fields - 3)]
    # Counted as if each field were written with ": " and a line break.
    spent = len(line) + sum(map(len, lines)) + len(b"pad: \r\n")
    lines.append(b"pad: " + b"x" * (head_bytes - spent) + b"\r\n")
    assert len(lines) == fields
    sent = line + b"".join(lines) + b"\r\n"

    parts = [sent[at : at + part_bytes] for at in range(0, len(sent), part_bytes)]
    assert statuses(exchange(client.url, *parts)) == [status]


def test_an_idle_connection_has_75_s_and_a_body_10_s_and_one_more_for_each_40_kib() -> None:
    for reading, size, lasts_s in ((Reading.BETWEEN, 0, 75), (Reading.BODY, 2 * MIB, 61.2)):
        deadlines = Deadlines(0, 10)
        deadlines.begin(5)
        assert not deadlines.is_over(5 + lasts_s - 0.1, reading, size)
        assert deadlines.is_over(5 + lasts_s + 0.1, reading, size)


def test_who_was_refused_has_2_s_from_what_it_sent_last_and_one_more_for_each_40_kib() -> None:
    def find_end(bytes_per_s: int) -> int:
        """After how many seconds a client is cut off that sends so much."""
        deadlines = Deadlines(0, 10)
        deadlines.begin(5)
        is_over = (
            deadlines.is_over(5 + s, Reading.DRAINING, s * bytes_per_s) for s in range(1_000)
        )
        return next((after_s for after_s, is_one in enumerate(is_over) if is_one), 1_000)

    assert find_end(0) == 2
    assert find_end(1) == 3
    assert find_end(20 * 1024) == 4
    assert find_end(50 * 1024) == 1_000  # or 16 MiB


def test_who_reads_less_than_4_kib_a_second_while_there_is_more_has_10_s() -> None:
    for bytes_per_s, unsent_bytes, end_s in (
        (0, 1, 10),
        (4_000, 1, 10),
        (4_096, 1, -1),
        (0, 0, -1),
    ):
        deadlines = Deadlines(0, 10)
        stuck = (s for s in range(100) if deadlines.is_stuck(s, s * bytes_per_s, unsent_bytes))
        assert next(stuck, -1) == end_s


# What all connections share


def test_bodies_beyond_the_memory_for_them_are_503_and_the_memory_comes_back(
    a_place: Callable[..., Place], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.connections.BODY_MEMORY_BYTES", MIB)
    place = a_place(max_body_bytes=2 * MIB)  # so 3 MiB: a largest one fits
    client = place.client()
    half = keyed(client, a_request("POST", RESUMES, JSON, b"Content-Length: 2000000"))
    with a_connection(place.url) as first:
        first.sendall(half + b" " * 1_900_000)
        refused: list[bytes] = []

        def is_one_too_many() -> bool:
            """Whether either was told; which one is, is for the order of their bytes to say."""
            second = client.create(b" " * 2_000_000)
            if second.status_code == 503:
                assert (second.headers["Retry-After"], error_of(second)["status"]) == ("1", 503)
            elif select.select([first], [], [], 0)[0]:
                refused.append(read_answer(first))
            return second.status_code == 503 or bool(refused)

        wait_until(is_one_too_many)
        assert all(b"retry-after: 1" in answer for answer in refused)
        assert client.create(a_body()).status_code == 201  # one that has room

    wait_until(lambda: client.create(b" " * 2_000_000).status_code == 400)
    # Nor is anything kept of what came before on a connection that goes on.
    assert [client.create(b" " * 2_000_000).status_code for _ in range(4)] == [400] * 4
    assert caplog.records == []
    client.close()


def test_a_body_that_is_thrown_away_takes_no_memory_from_others(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.connections.BODY_MEMORY_BYTES", MIB)
    place = a_place(max_body_bytes=MIB)  # so 2 MiB
    client = place.client()
    with a_connection(place.url) as greedy:
        head = a_request("POST", RESUMES, JSON, b"Content-Length: %d" % (64 * MIB))
        greedy.sendall(keyed(client, head))
        assert statuses(read_answer(greedy)) == [413]
        greedy.sendall(b" " * (MIB + MIB // 2))

        assert client.create(a_body().ljust(MIB)).status_code == 201
    client.close()


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
    client.close()


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
            assert (statuses(told), error["status"]) == ([503], 503)
            assert b"retry-after: 1" in told
        assert caplog.records == []
        first.close()

        def is_served() -> bool:
            try:
                return httpx.get(f"{place.url}/healthz").status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(is_served)


def test_who_keeps_a_connection_waiting_is_let_go(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.deadlines.KEEP_ALIVE_S", 0.5)
    place = a_place(client_timeout_s=0.5, max_body_bytes=32 * MIB)
    client = place.client()
    create, get = keyed(client, CREATE), keyed(client, GET)
    large = keyed(client, a_request("POST", RESUMES, JSON, b"Content-Length: 32000000"))

    slow_head = keyed(client, a_create(a_body(), b"X-A: " + b"x" * 2_000))
    slow_body = keyed(client, a_create(b" " * 2_000))
    cases: list[tuple[bytes, list[int]] | tuple[bytes, list[int], bytes]] = [
        (b"", []),
        (b"\r\n\r\n", []),
        (b"G", [408]),
        (create[:100], [408]),
        (create[:-1], [408]),
        (large + b" " * 8_000_000, [408]),  # however quickly it came before
        (get, [200]),  # and idle for too long
        (get + b"G", [200, 408]),
        (get + create[:-1], [200, 408]),
        (keyed(client, kept(a_create(b"[" * 100))) + create[:-1], [400, 408]),
        (create[:-1].replace(client.key.encode(), b"unknown"), [401]),
        (slow_head[:-1_900], [408], slow_head[-1_900:-1]),
        (slow_body[:-1_900], [408], slow_body[-1_900:-1]),
    ]
    # A client that is itself held up may be let go before it has sent anything.
    with ThreadPoolExecutor(len(cases)) as threads:
        told = [threads.submit(wait_until, functools.partial(is_told, client, *c)) for c in cases]
        for one in told:
            one.result()
    assert client.ids() == []
    client.close()


def is_told(client: Client, sent: bytes, expected: list[int], slowly: bytes = b"") -> bool:
    """Whether a client that sends this and then nothing is told that until it is let go.

    What it sends slowly comes byte by byte. If it is told nothing, it was let go before anything of
    it had come.
    """
    with a_connection(client.url) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(sent)
        for byte in slowly:
            if select.select([connection], [], [], 0.02)[0]:
                break
            connection.send(bytes([byte]))
        told = statuses(read_all(connection))
        assert told in (expected, [])
        return told == expected
    return False


def test_who_does_not_read_its_answers_is_cut_off(a_place: Callable[..., Place]) -> None:
    client = a_place(client_timeout_s=0.5).client()
    created = client.create(a_body(title="x" * 15_000)).json()["id"]
    with a_connection(client.url) as connection:
        connection.sendall(keyed(client, kept(a_request("GET", f"{RESUMES}/{created}")) * 600))
        wait_until(lambda: "\nresumes_connections 1.0\n" in metrics_of(client))

        assert select.select([connection], [], [], 60)[0]  # what it had of them
    client.close()


def test_while_an_earlier_answer_is_made_the_next_body_has_all_its_time(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_async, may_create = creation.create_async, threading.Event()

    async def create_late(*given: Any, **more: Any) -> Any:
        await asyncio.to_thread(may_create.wait, 60)
        return await create_async(*given, **more)

    monkeypatch.setattr(creation, "create_async", create_late)
    client = a_place(client_timeout_s=0.5).client()
    create = keyed(client, CREATE)
    with a_connection(client.url) as connection, a_connection(client.url) as other:
        connection.sendall(create + create[:-1])
        other.sendall(create[:-1])
        assert statuses(read_all(other)) == [408]  # so as much time has passed for the first
        may_create.set()
        connection.sendall(create[-1:])
        assert [statuses(read_answer(connection)) for _ in range(2)] == [[201], [201]]
    client.close()
