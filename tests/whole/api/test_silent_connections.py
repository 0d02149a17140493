"""Clients that keep connections waiting, or too many of them, and what others notice of it."""

import contextlib
import json
import select
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server.connections import REFUSED_AT_ONCE, RESERVED_FILES
from tests.support.api.builders import RESUMES
from tests.support.api.serving import (
    Served,
    a_connection,
    a_head,
    make_certificate,
    read_all,
    serve,
    wait_until,
)
from tests.support.programs import command
from tests.support.waiting import end

pytestmark = pytest.mark.slow

BODY = json.dumps({"header": {}, "sections": {}}).encode()
TIMEOUT_S = 1.0


def a_get(served: Served, path: str = RESUMES) -> bytes:
    """A list."""
    return f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {served.key}\r\n\r\n".encode()


def statuses(answers: bytes) -> list[int]:
    """Those of answers in a row."""
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with short timeouts, for most tests of this module."""
    with serve(tmp_path_factory.mktemp("served"), client_timeout_s=TIMEOUT_S) as served:
        yield served


# One client


@pytest.mark.timing
@pytest.mark.parametrize(
    ("sent", "statuses_told"),
    [
        (b"", []),
        (b"\r\n\r\n", []),
        (b"G", [408]),
        (b"POST /api/v1/resumes HTTP/1.1\r\nHost: a\r\n", [408]),
    ],
)
def test_who_sends_no_whole_head_is_let_go(
    served: Served, sent: bytes, statuses_told: list[int]
) -> None:
    with a_connection(served.url) as connection:
        began_s = time.monotonic()
        connection.sendall(sent)
        answer = read_all(connection)
        lasted_s = time.monotonic() - began_s

    assert statuses(answer) == statuses_told
    assert TIMEOUT_S * 0.9 < lasted_s < TIMEOUT_S * 5


@pytest.mark.timing
def test_a_head_that_comes_byte_by_byte_has_no_more_time(served: Served) -> None:
    with a_connection(served.url) as connection:
        answer = trickle(connection, a_head(served, len(BODY), "X-A: " + "x" * 1_000))

    assert statuses(answer) == [408]


@pytest.mark.timing
def test_a_second_head_has_its_time_from_its_beginning(served: Served) -> None:
    with a_connection(served.url) as connection:
        connection.sendall(a_get(served))
        wait_until(lambda: statuses(connection.recv(65536)) == [200])
        assert not select.select([connection], [], [], TIMEOUT_S * 2)[0]  # idle is no fault
        connection.sendall(b"GET /")
        answer = read_all(connection)

    assert statuses(answer) == [408]


@pytest.mark.timing
def test_half_a_body_is_408_and_nothing_is_stored(served: Served) -> None:
    before = listed(served)
    with a_connection(served.url) as connection:
        connection.sendall(a_head(served, len(BODY)) + BODY[:-1])
        head, _, body = read_all(connection).partition(b"\r\n\r\n")

    assert statuses(head) == [408]
    assert b"connection: close" in head
    error = json.loads(body)
    assert error["status"] == 408
    assert f"x-request-id: {error['requestId']}".encode() in head
    assert listed(served) == before


@pytest.mark.timing
def test_a_body_that_comes_byte_by_byte_is_408(served: Served) -> None:
    with a_connection(served.url) as connection:
        connection.sendall(a_head(served, 100_000))
        answer = trickle(connection, b" " * 100_000)

    assert statuses(answer) == [408]


@pytest.mark.timing
def test_a_body_that_nobody_wants_has_no_more_time(served: Served) -> None:
    head = a_head(served, 1_000).replace(served.key.encode(), b"unknown")
    with a_connection(served.url) as connection:
        connection.sendall(head + b"{")
        answer = read_all(connection)

    assert statuses(answer) == [401]


@pytest.mark.timing
def test_a_slow_body_that_comes_on_is_created(served: Served) -> None:
    body = BODY + b" " * 400_000
    with a_connection(served.url) as connection:
        connection.sendall(a_head(served, len(body), "Connection: close"))
        for start in range(0, len(body), 20_000):  # 200 KB a second, for 2 s
            assert not select.select([connection], [], [], 0.1)[0]
            connection.sendall(body[start : start + 20_000])
        answer = read_all(connection)

    assert statuses(answer) == [201]


def trickle(connection: socket.socket, data: bytes) -> bytes:
    """What the server says while the data is sent byte by byte."""
    for byte in data:
        if select.select([connection], [], [], 0.02)[0]:
            break
        with contextlib.suppress(OSError):
            connection.send(bytes([byte]))
    return read_all(connection)


@pytest.mark.timing
def test_a_client_that_does_not_read_its_answers_is_cut_off(served: Served) -> None:
    title = json.dumps({"title": "x" * 20_000, "header": {}, "sections": {}}).encode()
    before = listed(served)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        parts = httpx.URL(served.url)
        connection.connect((parts.host, parts.port))
        connection.sendall(a_head(served, len(title)) + title + a_get(served) * 600)
        assert is_kept(served, connection)
        began_s = time.monotonic()
        wait_until(lambda: not is_kept(served, connection), within_s=20)

    assert time.monotonic() - began_s > TIMEOUT_S * 0.9
    assert listed(served) == before + 1


def is_kept(served: Served, connection: socket.socket) -> bool:
    """Whether the server's side of a connection is open."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("the system does not tell its connections in /proc")
    port = httpx.URL(served.url).port
    ends = f":{port:04X} 0100007F:{connection.getsockname()[1]:04X} 01 "  # 01: established
    return ends in table.read_text()


def listed(served: Served) -> int:
    """How many resumes there are."""
    answer = httpx.get(served.url + RESUMES, headers={"Authorization": f"Bearer {served.key}"})
    return len(answer.json()["resumes"])


# Many


@pytest.mark.timing
def test_silent_clients_are_let_go_and_others_notice_nothing(served: Served) -> None:
    open_silent(served, 200, within_s=TIMEOUT_S * 1.5 + 5, slack_ms=25)


def open_silent(served: Served, count: int, *, within_s: float, slack_ms: float) -> None:
    """So many silent, half-head and half-body connections end in time, and cost others little."""
    half_a_head = a_head(served, 10)[:-2]
    half_a_body = a_head(served, 10) + b"{"
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(
            httpx.Client(headers={"Authorization": f"Bearer {served.key}"})
        )
        p99_ms(client, served, requests=300)  # warm
        before_ms = p99_ms(client, served, requests=300)
        began_s = time.monotonic()
        silent = [stack.enter_context(a_connection(served.url)) for _ in range(count)]
        for number, connection in enumerate(silent):
            connection.sendall([b"", half_a_head, half_a_body][number % 3])
        during_ms = p99_ms(client, served, requests=300)
        for connection in silent:
            connection.settimeout(max(0.01, began_s + within_s + 30 - time.monotonic()))
            read_all(connection)
        lasted_s = time.monotonic() - began_s

    figures = f"p99 {before_ms:.1f} -> {during_ms:.1f} ms, all gone in {lasted_s:.1f} s"
    assert lasted_s < within_s, figures
    assert during_ms < 2 * before_ms + slack_ms, figures


def p99_ms(client: httpx.Client, served: Served, *, requests: int) -> float:
    """The 99th percentile of lists, one after the other."""
    times = []
    for _ in range(requests):
        began_s = time.perf_counter()
        assert client.get(served.url + RESUMES).status_code == 200
        times.append((time.perf_counter() - began_s) * 1_000)
    return sorted(times)[requests * 99 // 100]


def test_a_storm_of_connections_leaves_the_others_alone(tmp_path: Path) -> None:
    with serve(tmp_path, max_connections=20) as served, contextlib.ExitStack() as stack:
        client = stack.enter_context(a_connection(served.url))
        client.sendall(a_get(served))
        assert statuses(client.recv(65536)) == [200]

        storm = [stack.enter_context(a_connection(served.url)) for _ in range(400)]
        client.sendall(a_get(served))

        assert statuses(client.recv(65536)) == [200]
        refused = [read_all(connection) for connection in storm[20:]]
        assert {status for answer in refused for status in statuses(answer)} == {503}


def test_a_body_that_is_thrown_away_takes_no_memory_from_others(tmp_path: Path) -> None:
    mib = 1024 * 1024
    with (
        serve(tmp_path, max_body_bytes=mib, body_memory_bytes=mib) as served,
        a_connection(served.url) as greedy,
    ):
        greedy.sendall(a_head(served, 64 * mib))
        assert statuses(greedy.recv(65536)) == [413]
        greedy.sendall(b" " * (mib + mib // 2))
        other = httpx.post(
            served.url + RESUMES,
            content=BODY + b" " * (mib - len(BODY)),
            headers={"Authorization": f"Bearer {served.key}", "Content-Type": "application/json"},
        )

        assert other.status_code == 201


def test_a_process_that_may_open_few_files_accepts_fewer_connections(tmp_path: Path) -> None:
    files = RESERVED_FILES + REFUSED_AT_ONCE + 3
    limited = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
    words = [*limited, *command(tmp_path, "serve", "--json", "--port", "0")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            url = str(json.loads(program.stdout.readline())["url"])
            with contextlib.ExitStack() as stack:
                for status in (200, 200, 200, 503):
                    connection = stack.enter_context(a_connection(url))
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")

                    assert connection.recv(65_536).startswith(b"HTTP/1.1 %d " % status)
        finally:
            end(program)


def test_r6_a_connection_for_which_there_is_no_file_is_closed_and_nothing_is_logged(
    tmp_path: Path,
) -> None:
    words = ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"]
    words += command(tmp_path, "serve", "--json", "--port", "0")
    log = tmp_path / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as program,
    ):
        try:
            assert program.stdout is not None
            url = str(json.loads(program.stdout.readline())["url"])
            with contextlib.ExitStack() as stack:
                held = [stack.enter_context(a_connection(url)) for _ in range(100)]
                assert ends(held[-1])

            wait_until(lambda: is_served(url))
        finally:
            end(program)
    assert log.read_text() == ""


def is_served(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").is_success
    except httpx.TransportError:
        return False


# Over TLS


@contextlib.contextmanager
def serve_tls(home: Path, **settings: float) -> Iterator[tuple[Served, ssl.SSLContext]]:
    """A server over TLS, and what a client needs to trust it."""
    certificate = str(make_certificate(home))
    context = ssl.create_default_context(cafile=certificate)
    with serve(home, tls_cert=certificate, **settings) as served:
        yield served, context


def client_hello(context: ssl.SSLContext) -> bytes:
    """The first words of a handshake."""
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def ends(connection: socket.socket) -> bool:
    """Whether the server has closed the connection, as soon as it has."""
    with contextlib.suppress(ConnectionResetError):  # it had sent more than was read
        read_all(connection)
    return True


def status_over_tls(served: Served, context: ssl.SSLContext) -> int:
    """The status of a list by somebody without a key; 0 if the connection was closed at once."""
    try:
        return httpx.get(served.url + RESUMES, verify=context).status_code
    except httpx.ConnectError:
        return 0


def test_tls_handshakes_that_are_not_complete_count_as_connections(tmp_path: Path) -> None:
    with (
        serve_tls(tmp_path, max_connections=2, client_timeout_s=3_600) as (served, context),
        a_connection(served.url) as first,
        a_connection(served.url) as second,
    ):
        second.sendall(client_hello(context))
        assert second.recv(1)

        refused = httpx.get(served.url + RESUMES, verify=context)
        first.close()

        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        wait_until(lambda: status_over_tls(served, context) == 401)


@pytest.mark.parametrize("said", [0.0, 0.5, 1.0])
def test_who_does_not_complete_a_tls_handshake_is_let_go(tmp_path: Path, said: float) -> None:
    with (
        serve_tls(tmp_path, max_connections=1, client_timeout_s=TIMEOUT_S) as (served, context),
        a_connection(served.url) as silent,
    ):
        began_s = time.monotonic()
        hello = client_hello(context)
        silent.sendall(hello[: int(len(hello) * said)])

        assert ends(silent)
        assert time.monotonic() - began_s > TIMEOUT_S * 0.9
        wait_until(lambda: status_over_tls(served, context) == 401)


@pytest.mark.timing
def test_a_head_has_its_time_from_the_opening_and_not_from_its_tls_handshake(
    tmp_path: Path,
) -> None:
    with (
        serve_tls(tmp_path, client_timeout_s=TIMEOUT_S) as (served, context),
        a_connection(served.url) as plain,
    ):
        began_s = time.monotonic()
        assert not select.select([plain], [], [], TIMEOUT_S * 0.8)[0]
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(a_head(served, len(BODY))[:-2])
            answer = read_all(connection)
        lasted_s = time.monotonic() - began_s

    assert statuses(answer) == [408]
    assert TIMEOUT_S * 0.9 < lasted_s < TIMEOUT_S * 1.5


def test_tls_handshakes_that_fail_take_no_place(tmp_path: Path) -> None:
    with serve_tls(tmp_path, max_connections=2, client_timeout_s=3_600) as (served, context):
        for sent in [b"GET / HTTP/1.1\r\n\r\n", client_hello(context)] * 5:
            with a_connection(served.url) as gone:
                gone.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    gone.recv(1)  # what the server has to say to that, if anything

        wait_until(lambda: status_over_tls(served, context) == 401)


def test_a_storm_of_tls_handshakes_leaves_the_others_alone(tmp_path: Path) -> None:
    with (
        serve_tls(tmp_path, max_connections=20, client_timeout_s=3_600) as (served, context),
        contextlib.ExitStack() as stack,
    ):
        client = stack.enter_context(httpx.Client(verify=context))
        assert client.get(served.url + RESUMES).status_code == 401

        storm = [stack.enter_context(a_connection(served.url)) for _ in range(400)]
        for connection in storm[1::2]:
            with contextlib.suppress(ConnectionError):  # it may be closed already
                connection.sendall(client_hello(context))

        assert all(ends(connection) for connection in storm[19 + REFUSED_AT_ONCE :])
        assert client.get(served.url + RESUMES).status_code == 401
        assert not select.select(storm[:18:2], [], [], 0)[0]  # these are within the limit


def test_a_tls_handshake_does_not_delay_a_stop(tmp_path: Path) -> None:
    with (
        serve_tls(tmp_path, client_timeout_s=3_600) as (served, context),
        a_connection(served.url) as silent,
    ):
        silent.sendall(client_hello(context))
        assert silent.recv(1)

        served.process.send_signal(signal.SIGTERM)

        assert served.process.communicate(timeout=30) == ("ended\n", "")


# The end


@pytest.mark.timing
def test_half_a_request_delays_a_stop_by_2_s_at_most(tmp_path: Path) -> None:
    with serve(tmp_path) as served, contextlib.ExitStack() as stack:
        late_body, late_head, in_time, idle = (
            stack.enter_context(a_connection(served.url)) for _ in range(4)
        )
        late_body.sendall(a_head(served, len(BODY)) + BODY[:-1])
        late_head.sendall(a_head(served, len(BODY))[:-2])
        in_time.sendall(a_head(served, len(BODY)) + BODY[:-1])
        idle.sendall(a_get(served))
        assert statuses(idle.recv(65536)) == [200]
        began_s = time.monotonic()

        served.process.send_signal(signal.SIGTERM)
        assert read_all(idle) == b""
        in_time.sendall(BODY[-1:])

        assert statuses(read_all(in_time)) == [201]
        assert statuses(read_all(late_body)) == [503]
        assert statuses(read_all(late_head)) == [503]
        assert 1.9 < time.monotonic() - began_s < 3
        assert served.process.wait(10) == 0
        assert time.monotonic() - began_s < 6


def test_what_was_sent_before_a_stop_is_answered(tmp_path: Path) -> None:
    with serve(tmp_path) as served, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(a_connection(served.url)) for _ in range(50)]
        for client in clients:
            client.sendall(a_get(served))
            assert statuses(client.recv(65536)) == [200]

        served.process.send_signal(signal.SIGSTOP)
        for client in clients:
            client.sendall(a_get(served) * 2)
        served.process.send_signal(signal.SIGTERM)
        served.process.send_signal(signal.SIGCONT)

        assert [statuses(read_all(client)) for client in clients] == [[200, 200]] * 50
        assert served.process.wait(10) == 0
