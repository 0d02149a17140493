"""PgBouncer, which gives each transaction another session."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import UNPRIVILEGED, Server, free_port

PGBOUNCER = shutil.which("pgbouncer")

SESSIONS = 2
"""Fewer than connections, so that each transaction really has another one."""


@pytest.fixture
def pooled(url: str, server: Server) -> Iterator[str]:
    """The address of the database through a pooler in transaction mode."""
    folder = Path(tempfile.mkdtemp(prefix="resumes-pgbouncer-"))
    folder.chmod(0o755)
    port = free_port()
    users = folder / "users"
    users.write_text('"resumes" ""\n')
    config = folder / "config"
    config.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 100\n"
    )
    assert PGBOUNCER is not None
    user = {"user": UNPRIVILEGED, "group": "nogroup"} if os.geteuid() == 0 else {}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([PGBOUNCER, config], stdout=log, stderr=log, **user)  # type: ignore[call-overload]  # typeshed: user by keyword alone
    address = f"postgresql://resumes@127.0.0.1:{port}/{url.rpartition('/')[2]}"
    try:
        _wait(address, process, folder / "log")
        yield address
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder)


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    ends_at = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < ends_at, log.read_text()
            time.sleep(0.05)
        else:
            return
