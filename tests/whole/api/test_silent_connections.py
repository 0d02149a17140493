"""Clients that keep connections waiting, or too many of them, and what others notice of it."""

import contextlib
import json
import select
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server.connections import REFUSED_AT_ONCE, RESERVED_FILES
from tests.support.api.builders import RESUMES
from tests.support.api.refused import statuses
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


@contextlib.contextmanager
def serve_with_few_files(home: Path, count: int) -> Iterator[str]:
    """The address of a server that may open so many files, and logs nothing."""
    words = ["sh", "-c", f'ulimit -n {count} && exec "$@"', "sh"]
    words += command(home, "serve", "--json", "--port", "0")
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True) as program,
    ):
        try:
            assert program.stdout is not None
            yield str(json.loads(program.stdout.readline())["url"])
        finally:
            end(program)
        log.seek(0)
        assert log.read() == ""


def test_a_process_that_may_open_few_files_accepts_fewer_connections(tmp_path: Path) -> None:
    files = RESERVED_FILES + REFUSED_AT_ONCE + 3
    with serve_with_few_files(tmp_path, files) as url, contextlib.ExitStack() as stack:
        for status in (200, 200, 200, 503):
            connection = stack.enter_context(a_connection(url))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")

            assert connection.recv(65_536).startswith(b"HTTP/1.1 %d " % status)


def test_r6_a_connection_for_which_there_is_no_file_is_closed_and_nothing_is_logged(
    tmp_path: Path,
) -> None:
    with serve_with_few_files(tmp_path, 64) as url:
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(a_connection(url)) for _ in range(100)]
            assert ends(held[-1])

        wait_until(lambda: is_served(url))


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
        # Those that fail take no place.
        for sent in [b"GET / HTTP/1.1\r\n\r\n", client_hello(context)] * 5:
            with a_connection(served.url) as gone:
                gone.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    gone.recv(1)  # what the server has to say to that, if anything
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
