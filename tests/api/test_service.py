"""The service as a whole: its start, its processes, TLS, and its end."""

import contextlib
import json
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from resumes.errors import ErrorCode, InvalidArgument, StoreIncompatible, StoreUnavailable
from resumes.listener import CannotListen
from resumes.settings import Settings
from resumes.store import accounts, open_store, stored_resumes
from resumes.store.store import close_store, reopen_store
from server import service
from server.deadlines import STOP_S
from server.tls import load_tls
from tests.support.api.builders import RESUMES, a_body, a_resume, error_of
from tests.support.api.refused import JSON, a_request, kept
from tests.support.api.serving import (
    LoopClock,
    Place,
    a_connection,
    a_head,
    make_certificate,
    read_all,
    serve,
    serve_here,
    serving,
    wait_until,
)
from tests.support.postgres import free_port
from tests.support.store.builders import end_thread, hold_writer
from tests.support.stores import make_store_file, open_home
from tests.support.waiting import workers_of

# The start


def refusal(home: Path, error: type[BaseException], **changes: Any) -> str:
    """What a service that cannot start says."""
    with pytest.raises(error) as caught:
        service.run(Settings(home=home, port=0).model_copy(update=changes))
    return str(caught.value)


def test_an_address_that_cannot_be_had_is_one_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refusal(tmp_path, CannotListen, port=port)
        assert said == f"Port {port} on 127.0.0.1 is in use; choose another with --port"
    assert CannotListen.code is ErrorCode.STORE_UNAVAILABLE
    for host in ("no-such-host.invalid", "a" * 70 + ".invalid", "1.2.3.4.5"):
        assert f'Cannot resolve the host "{host}"' in refusal(tmp_path, CannotListen, host=host)
    said = refusal(tmp_path, CannotListen, host="192.0.2.1")
    assert said.startswith("Cannot listen on 192.0.2.1, port 0: ")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the machine has no IPv6")
def test_an_ipv6_address_is_shown_in_brackets(a_place: Callable[..., Place]) -> None:
    place = a_place(host="::1")
    assert place.url.startswith("http://[::1]:")
    assert httpx.get(f"{place.url}/healthz").is_success


@pytest.mark.engines
@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_cannot_be_opened_is_raised_before_anything_listens(
    tmp_path: Path, url: str, workers: int
) -> None:
    no_store, nowhere = places_without_a_store(tmp_path, url)

    refusal(tmp_path, StoreIncompatible, workers=workers, database=no_store)
    refusal(tmp_path, StoreUnavailable, workers=workers, database=nowhere)


def places_without_a_store(home: Path, url: str) -> tuple[str, str]:
    """One where there can be none, and one out of reach."""
    if url.startswith("sqlite"):
        (home / "other.db").write_bytes(b"not a database" * 100)
        return f"sqlite:///{home}/other.db", "sqlite:////nowhere/resumes.db"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE alembic_version")  # whose tables are these?
    return url, f"postgresql://resumes@127.0.0.1:{free_port()}/resumes"


def test_tls_files_that_cannot_be_used_are_invalid(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    settings = Settings(home=tmp_path, port=0)

    for cert in ("cert.pem", "missing.pem"):
        with pytest.raises(InvalidArgument, match=r"Cannot use the TLS files .* private key"):
            service.run(settings, tls_cert=tmp_path / cert)


@pytest.mark.parametrize(
    ("host", "has_tls", "count"), [("127.0.0.1", False, 0), ("0.0.0.0", True, 0), ("::", False, 1)]
)
def test_what_is_not_safe_is_said_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, has_tls: bool, count: int
) -> None:
    tls = load_tls(make_certificate(tmp_path) if has_tls else None)
    store = open_store(f"sqlite:///{tmp_path / 'resumes.db'}")

    with serving(Settings(home=tmp_path, port=0, host=host), store, tls=tls):
        assert ["without TLS" in message for message in caplog.messages] == [True] * count


def test_tls_is_served_with_a_certificate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificate = make_certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(certificate))
    store = open_store(f"sqlite:///{tmp_path / 'resumes.db'}")
    settings = Settings(home=tmp_path, port=0, max_connections=1)

    def is_served(url: str) -> bool:
        return httpx.get(f"{url}/healthz", verify=context).is_success

    with serving(settings, store, tls=load_tls(certificate)) as url:
        assert url.startswith("https://127.0.0.1:")
        place = Place(settings, store, None, url)  # type: ignore[arg-type]  # a clock of its own
        headers = {"Authorization": f"Bearer {place.key('ada')}"}
        with httpx.Client(base_url=url, verify=context) as client:
            for _ in range(3):
                answer = client.post(RESUMES, json=a_resume(), headers=headers)
                assert answer.status_code == 201
            assert len(client.get(RESUMES, headers=headers).json()["resumes"]) == 3
            assert error_of(client.get(RESUMES))["status"] == 401
        make_certificate(tmp_path)  # renewed, for the next start
        wait_until(lambda: is_served(url))
        wait_until(lambda: says_goodbye(url, context))
    context = ssl.create_default_context(cafile=str(certificate))
    store = open_store(store.url)
    settings = settings.model_copy(update={"max_connections": 2})
    with serving(settings, store, tls=load_tls(certificate)) as url:
        for _ in range(2):  # it is no HTTP that is spoken here, and takes no place
            with a_connection(url) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert b"HTTP" not in read_all(plain)
        wait_until(lambda: is_served(url))
    assert caplog.records == []


def says_goodbye(url: str, context: ssl.SSLContext) -> bool:
    """Whether a client was served that then ends sending, which with TLS ends the connection."""
    with a_connection(url) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
        tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        is_served = tls.recv(65536).startswith(b"HTTP/1.1 200 ")
        tls.unwrap()
    return is_served


# The end


def is_refused(url: str) -> bool:
    try:
        with a_connection(url):
            return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("name", ["store-writer", "search-indexer"])
def test_a_server_ends_when_a_thread_ended_that_it_cannot_do_without(
    tmp_path: Path, name: str
) -> None:
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with (
        ThreadPoolExecutor(1) as pool,
        open_store(make_store_file(tmp_path / "resumes.db")) as store,
    ):
        settings = Settings(home=tmp_path, port=0)
        ended = pool.submit(service.serve, settings, store, ready=told.put, signals=[])
        url = told.get(timeout=60)
        (thread,) = [one for one in store.threads if one.name == name]
        end_thread(store, thread)
        with pytest.raises(StoreUnavailable, match=f"Start this program again \\({name}\\)"):
            ended.result(60)
        assert is_refused(url)


@pytest.mark.parametrize("fails", [False, True])
def test_signals_are_given_back_when_all_is_closed(tmp_path: Path, fails: bool) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    store = open_store(make_store_file(tmp_path / "resumes.db"))

    def ready(_: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        if fails:
            raise BrokenPipeError

    with contextlib.suppress(BrokenPipeError):
        service.serve(Settings(home=tmp_path, port=0), store, ready=ready)

    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before
    assert not store.write_queue.is_alive


@pytest.mark.parametrize(
    "stop",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_stop_lets_an_accepted_request_finish(tmp_path: Path, stop: signal.Signals) -> None:
    with serve(tmp_path, host="0.0.0.0") as served, a_connection(served.url) as connection:
        connection.sendall(a_head(served, len(a_body()), "Expect: 100-continue"))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"

        served.process.send_signal(stop)
        wait_until(lambda: is_refused(served.url))
        connection.sendall(a_body())
        answer = read_all(connection)

        assert served.process.wait(60) == 0
        output, errors = served.process.communicate()

    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"connection: close" in answer
    assert output == "ended\n"
    assert len(errors.splitlines()) == 1  # no TLS
    resume_id = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        account_id = accounts.get_account(store, "ada").id
        assert stored_resumes.get_resume(store, account_id, resume_id).entry.id == resume_id


GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def stop_with_halves(
    place: Place, stack: contextlib.ExitStack
) -> tuple[socket.socket, socket.socket]:
    """Connections that lack the last two bytes of a GET, and the body of a create, at a stop."""
    idle, head, body = (stack.enter_context(a_connection(place.url)) for _ in range(3))
    for connection in (idle, head):
        connection.sendall(GET)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    head.sendall(GET[:-2])
    length = b"Content-Length: %d" % len(a_body())
    create = kept(a_request("POST", RESUMES, JSON, b"Expect: 100-continue", length))
    body.sendall(create.replace(b"ADA", place.key("ada").encode()))
    assert body.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    place.stop()
    assert read_all(idle) == b""
    return head, body


def test_half_a_request_and_an_idle_connection_do_not_keep_it_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock(monkeypatch)
    with serve_here(tmp_path, client_timeout_s=0.1) as place, contextlib.ExitStack() as stack:
        head, body = stop_with_halves(place, stack)
        clock.move(STOP_S)
        answers = [read_all(connection) for connection in (head, body)]

    for told in answers:
        assert told.startswith(b"HTTP/1.1 503 ")
        error = json.loads(told.partition(b"\r\n\r\n")[2])["error"]
        assert "shutting down, so nothing was done" in error


def test_what_comes_in_time_after_a_stop_is_answered_and_ends_its_connection(
    tmp_path: Path,
) -> None:
    with serve_here(tmp_path) as place, contextlib.ExitStack() as stack:
        head, body = stop_with_halves(place, stack)
        head.sendall(GET[-2:])
        body.sendall(a_body())
        answers = [read_all(connection) for connection in (head, body)]

    for answer, status in zip(answers, (200, 201), strict=True):
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"connection: close" in answer


def test_a_request_that_takes_longer_than_a_stop_waits_is_503_and_may_have_been_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.service.SHUTDOWN_S", 0.2)
    with ThreadPoolExecutor() as threads:
        with serve_here(tmp_path) as place:
            client = place.client()
            go_on, holder = hold_writer(place.store)
            answer = threads.submit(client.create, a_resume())
            wait_until(lambda: place.store.write_queue.waiting)
            answer.add_done_callback(lambda _: go_on.set())
        holder.join()

    told = answer.result()
    assert (told.status_code, told.headers["Connection"]) == (503, "close")
    assert told.headers["Retry-After"] == "1"
    assert error_of(told)["error"] == (
        "The server is shutting down; it is unknown whether the request succeeded"
    )


# What fails within


def test_the_cause_of_a_500_or_503_is_in_the_log_alone(
    a_place: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = a_place()
    client = place.client()
    resume_id = client.create(a_resume()).json()["id"]
    alter(place, "UPDATE documents SET document = 'damaged'")

    answer = client.get(resume_id)

    words, _, error_id = error_of(answer)["error"].rpartition(" ")
    assert (answer.status_code, words, len(error_id)) == (500, "Internal error", 16)
    assert f"Internal error {error_id} of request" in caplog.text
    assert "Traceback" in caplog.text
    assert client.page().status_code == 200
    metrics = client.request("GET", "/metrics").text
    assert 'resumes_requests_total{operation="get",status="500"} 1.0' in metrics
    assert "resumes_requests_in_flight 1.0" in metrics

    alter(place, "ALTER TABLE resumes RENAME TO elsewhere")

    answer = client.page()

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert error_of(answer)["error"] == "Service unavailable: nothing was done; try again later"
    assert f"The store {place.settings.home}" in caplog.text


def test_s13_a_store_that_is_being_moved_is_read_and_takes_no_create_until_it_is_reopened(
    tmp_path: Path, a_place: Callable[..., Place]
) -> None:
    place = a_place()
    client = place.client()
    close_store(place.store, "sqlite:////there.db", "0123")
    refused = client.create(a_resume())
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert client.ids() == []

    with open_home(tmp_path) as store:  # as another process: the server's own writes are refused
        reopen_store(store)

    assert client.create(a_resume()).status_code == 201


def alter(place: Place, statement: str) -> None:
    """Change the store's tables in a way that no program of ours does."""
    place.store.write(lambda session: session.connection().exec_driver_sql(statement))


# Several processes


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_that_is_said(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as below nohup
    try:
        with serve(tmp_path, workers=2) as served:
            workers = workers_of(served.process.pid)
            for process in (served.process.pid, *workers):
                os.kill(process, signal.SIGHUP)  # which is ignored
            os.kill(workers[0], signal.SIGKILL)

            wait_until(lambda: len(set(workers_of(served.process.pid)) - {workers[0]}) == 2)
            assert workers[1] in workers_of(served.process.pid)
            served.process.terminate()
            _, said = served.process.communicate(timeout=60)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert f"Worker {workers[0]} ended (killed by signal 9) and was replaced" in said


@pytest.mark.slow
def test_a_worker_that_cannot_start_again_is_tried_again_while_the_other_serves(
    tmp_path: Path,
) -> None:
    certificate = make_certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(certificate))
    with serve(tmp_path / "home", workers=2, tls_cert=str(certificate)) as served:
        first, other = workers_of(served.process.pid)
        moved = certificate.rename(tmp_path / "moved.pem")
        os.kill(first, signal.SIGKILL)
        assert served.process.stderr is not None
        said = [served.process.stderr.readline() for _ in range(2)]
        assert httpx.get(f"{served.url}/healthz", verify=context).is_success

        moved.rename(certificate)
        os.kill(other, signal.SIGSTOP)  # so that it is not the one that answers
        wait_until(lambda: is_healthy(served.url, context))
        os.kill(other, signal.SIGCONT)
        served.process.terminate()
        _, rest = served.process.communicate(timeout=60)

    assert f"Worker {first} ended (killed by signal 9) and was replaced" in said[0]
    assert "A worker could not start: Cannot use the TLS files" in said[1]
    assert "could not start" not in rest


def is_healthy(url: str, context: ssl.SSLContext) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/healthz", verify=context).is_success
    return False


AT_START = """
import sys
if "--multiprocessing-fork" in sys.orig_argv:
    {statement}
"""
"""Makes every process that Python spawns begin with this."""

IMPATIENT = """
import sys
from pathlib import Path
from resumes.settings import Settings
from server import service, workers

workers.STARTING_CHECKS, workers.SILENT_CHECKS, workers.END_WITHIN_S = int(sys.argv[2]), 4, 3
try:
    service.run(
        Settings(home=Path(sys.argv[1]), port=0, workers=2),
        ready=lambda url: print(url, flush=True),
    )
except workers.WorkersFailed as error:
    print(error.message)
"""


def start_workers_with(monkeypatch: pytest.MonkeyPatch, folder: Path, statement: str) -> None:
    (folder / "sitecustomize.py").write_text(AT_START.format(statement=statement))
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.slow
def test_workers_that_never_start_are_one_line_and_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_workers_with(monkeypatch, tmp_path, "import time; time.sleep(600)")

    command = [sys.executable, "-c", IMPATIENT, str(tmp_path), "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "could not start: no response for 1 s" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@contextlib.contextmanager
def workers_started(home: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A service whose workers have started, and the first of them."""
    command = [sys.executable, "-c", IMPATIENT, str(home), "600"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        first = workers_of(process.pid)[0]
        try:
            yield process, first
        finally:
            process.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGUSR1], ids=["silent", "hangs"])
def test_a_worker_that_falls_silent_or_whose_event_loop_hangs_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    # Its other threads go on.
    hang = "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: time.sleep(600))"
    (tmp_path / "start").mkdir()
    start_workers_with(monkeypatch, tmp_path / "start", hang)
    with workers_started(tmp_path) as (process, first):
        os.kill(first, how)
        wait_until(lambda: first not in workers_of(process.pid))
        process.terminate()
        _, said = process.communicate(timeout=60)

    assert f"Worker {first} ended (no response for 2 s) and was replaced" in said


@pytest.mark.slow
def test_a_worker_that_does_not_end_is_killed(tmp_path: Path) -> None:
    with workers_started(tmp_path) as (process, first):
        os.kill(first, signal.SIGSTOP)
        process.terminate()
        _, said = process.communicate(timeout=60)

    assert f"Worker {first} did not end; killing it" in said
