import json
import os
import signal
import ssl
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from resumes.errors import ErrorCode, InvalidArgument, StoreIncompatible, StoreUnavailable
from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import accounts, listing, open_store, search, search_filler
from server import service
from server.counters import SharedCounters
from server.listener import CannotListen, listen
from tests.postgres import free_port
from tests.server.builders import RESUMES, a_resume, error_of
from tests.server.serving import (
    a_connection,
    make_certificate,
    read_all,
    serve,
    wait_until,
)


def test_a_port_in_use_is_one_clear_error(settings: Settings) -> None:
    with listen(settings) as other:
        port = other.getsockname()[1]

        with pytest.raises(CannotListen) as caught:
            service.run(settings.model_copy(update={"port": port}))

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert str(caught.value) == f"Port {port} on 127.0.0.1 is in use; choose another with --port"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_cannot_be_opened_is_raised_before_anything_listens(
    settings: Settings, workers: int
) -> None:
    changed = settings.model_copy(update={"workers": workers})
    no_store, nowhere = places_without_a_store(settings)

    with pytest.raises(StoreIncompatible):
        service.run(changed.model_copy(update={"database": no_store}))
    with pytest.raises(StoreUnavailable):
        service.run(changed.model_copy(update={"database": nowhere}))


def places_without_a_store(settings: Settings) -> tuple[str, str]:
    """One where there can be none, and one out of reach."""
    if settings.database_url.startswith("sqlite"):
        (settings.home / "other.db").write_bytes(b"not a database" * 100)
        return f"sqlite:///{settings.home}/other.db", "sqlite:////nowhere/resumes.db"
    with psycopg.connect(settings.database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE alembic_version")  # whose tables are these?
    return settings.database_url, f"postgresql://resumes@127.0.0.1:{free_port()}/resumes"


def test_tls_files_that_cannot_be_used_are_invalid(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")

    for cert in ("cert.pem", "missing.pem"):
        with pytest.raises(InvalidArgument, match="Cannot use the TLS files"):
            service.run(settings, tls_cert=tmp_path / cert)
    with pytest.raises(InvalidArgument, match="needs --tls-cert"):
        service.run(settings, tls_key=tmp_path / "key.pem")


@pytest.mark.parametrize(
    ("host", "has_tls", "warnings"),
    [("127.0.0.1", False, []), ("0.0.0.0", True, []), ("0.0.0.0", False, ["without TLS"])],
)
def test_what_is_not_safe_is_said_at_the_start(
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    host: str,
    has_tls: bool,
    warnings: list[str],
) -> None:
    with listen(settings.model_copy(update={"host": host})) as listener:
        service._warn(listener, has_tls=has_tls)

    assert len(caplog.messages) == len(warnings)
    for message, expected in zip(caplog.messages, warnings, strict=True):
        assert expected in message


def a_post(key: str, body: bytes) -> bytes:
    lines = [
        f"POST {RESUMES} HTTP/1.1",
        "Host: resumes.test",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        "Expect: 100-continue",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def is_refused(url: str) -> bool:
    try:
        with a_connection(url):
            return False
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_stop_lets_an_accepted_request_finish(
    tmp_path: Path, url: str, stop: signal.Signals
) -> None:
    body = json.dumps(a_resume()).encode()
    with (
        serve(tmp_path, database=url, host="0.0.0.0") as served,
        a_connection(served.url) as connection,
    ):
        connection.sendall(a_post(served.key, body))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"

        served.process.send_signal(stop)
        wait_until(lambda: is_refused(served.url))
        connection.sendall(body)
        answer = read_all(connection)

        assert served.process.wait(60) == 0
        output, errors = served.process.communicate()

    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"connection: close" in answer
    assert output == "ended\n"
    assert len(errors.splitlines()) == 1  # no TLS
    resume_id = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
    with open_store(url) as store:
        account_id = accounts.get_account(store, "ada").id
        assert listing.get_resume(store, account_id, resume_id).entry.id == resume_id


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()]


@pytest.mark.slow
def test_two_workers_serve_one_store_and_stop_together(tmp_path: Path, url: str) -> None:
    with serve(tmp_path, database=url, workers=2) as served:
        headers = {"Authorization": f"Bearer {served.key}"}
        for _ in range(10):  # each with a connection of its own, so both workers get some
            created = httpx.post(served.url + RESUMES, json=a_resume(), headers=headers)
            assert created.status_code == 201
        listed = httpx.get(served.url + RESUMES, headers=headers).json()["resumes"]
        assert len(listed) == 10
        # Two workers, and Python's resource tracker.
        assert len(children(served.process.pid)) == 3

        served.process.terminate()

        assert served.process.wait(60) == 0
        assert is_refused(served.url)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_is_created_is_soon_in_the_search_index(
    tmp_path: Path, url: str, workers: int
) -> None:
    with serve(tmp_path, database=url, workers=workers) as served:
        headers = {"Authorization": f"Bearer {served.key}"}
        assert httpx.post(served.url + RESUMES, json=a_resume(), headers=headers).is_success
        with open_store(url) as store:
            wait_until(lambda: not search_filler.gather(store).slices)
            account = accounts.get_account(store, "ada")
            page, unindexed = search.find_page(store, account.id, "res", patience_s=0)
        served.process.terminate()
        _, said = served.process.communicate(timeout=60)

    # Without a moment to look through what is not indexed.
    assert (len(page.entries), unindexed) == (1, 0)
    assert said == ""


def test_workers_end_with_a_supervisor_that_is_killed(tmp_path: Path, url: str) -> None:
    with serve(tmp_path, database=url, workers=2) as served:
        served.process.kill()
        served.process.wait(60)

        wait_until(lambda: is_refused(served.url))


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_that_is_said(tmp_path: Path, url: str) -> None:
    with serve(tmp_path, database=url, workers=2) as served:
        workers = [pid for pid in children(served.process.pid) if "spawn_main" in command_of(pid)]
        os.kill(workers[0], signal.SIGKILL)

        wait_until(lambda: len(set(children(served.process.pid)) - set(workers)) == 2)
        served.process.terminate()
        _, said = served.process.communicate(timeout=60)

    assert f"Worker {workers[0]} ended (killed by signal 9) and was replaced" in said


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_a_worker_that_cannot_open_the_store_says_so_in_one_line(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_end_with_parent", lambda: None)
    broken = settings.model_copy(update={"database": "sqlite:////nowhere/resumes.db"})

    with pytest.raises(SystemExit) as caught:
        service._worker_app(broken)

    assert caught.value.code == 3
    assert len(caplog.messages) == 1
    assert "Folder not found" in caplog.messages[0]


def test_tls_is_served_with_a_certificate(tmp_path: Path) -> None:
    certificate = str(make_certificate(tmp_path))
    context = ssl.create_default_context(cafile=certificate)
    with serve(tmp_path, tls_cert=certificate) as served:
        assert served.url.startswith("https://127.0.0.1:")

        answer: Any = httpx.get(served.url + RESUMES, verify=context)

    assert error_of(answer) == {"error": "Invalid API key", "status": 401}


def test_without_memory_to_share_each_worker_counts_for_itself(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    (settings.home / "run").write_text("in the way")

    with service._sharing_counters(settings) as shared:
        assert shared is None
        assert service._find_counters(shared) is None

    assert len(caplog.messages) == 1
    assert "Each worker counts for itself" in caplog.messages[0]


def test_a_worker_without_a_slot_counts_for_itself(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    no_file = SharedCounters(settings.home, 1)

    assert service._find_counters(no_file) is None

    assert "A worker counts for itself: Is a directory" in caplog.text


def test_the_log_is_written_to_its_end_when_the_service_ends(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    log = LogWriter(descriptor)

    with service._opened(lambda: log) as opened:
        assert opened is log
        log.put(b"the last line\n")

    assert (tmp_path / "log").read_bytes() == b"the last line\n"
    os.close(descriptor)
