"""PgBouncer in transaction mode before whoever leads.

Who leads tells it so: Patroni calls a script on each node whose role changes. Nodes with a pooler
each, and the service told of all of them, would not do: PgBouncer tells its clients what its first
connection was told of the server's role, for good, so libpq does not notice that it has changed.
"""

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from benchmarks.cluster import unprivileged
from benchmarks.cluster.cluster import DATABASE
from benchmarks.cluster.node import USER
from benchmarks.cluster.processes import CannotRun, Program, free_ports

START_S: Final = 10.0

SETTINGS: Final = """%include databases.ini
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pidfile = pid
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
server_login_retry = 1
"""

# Called with a node's port, then by Patroni: what has happened, the new role, the cluster's name.
FOLLOW: Final = f"""#!/bin/sh -e
[ "$3" = primary ] || exit 0
cd "$(dirname "$0")"
printf '[databases]\\n{DATABASE} = host=127.0.0.1 port=%s user={USER}\\n' "$1" > "databases.$1"
mv "databases.$1" databases.ini
[ ! -e pid ] || kill -HUP "$(cat pid)"
"""


def find_pgbouncer() -> Path | None:
    """The program; None where it is not installed."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


class Pooler:
    """The pooler of a cluster, which is told who leads from the beginning."""

    def __init__(self, folder: Path) -> None:
        self._folder = unprivileged.give_away(folder)
        self.follow = folder / "follow"
        """The script for Patroni."""

        self.follow.write_text(FOLLOW)
        self.follow.chmod(0o755)
        self._program: Program | None = None

    def start(self, program: Path, leader_port: int) -> str:
        """It answers; the address of the store through it. Raises CannotRun."""
        # Who leads from the beginning has changed no role.
        follow = [str(self.follow), str(leader_port), "start", "primary"]
        subprocess.run(follow, check=True, **unprivileged.USER)
        (port,) = free_ports(1)
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(port=port))
        self._program = Program([program, settings], self._folder / "log", user=unprivileged.USER)
        self._program.start()
        ends_at = time.monotonic() + START_S
        while not _listens(port):
            if time.monotonic() > ends_at or not self._program.is_running:
                raise CannotRun(f"PgBouncer did not start\n{self._program.log.read_text()}")
            time.sleep(0.05)
        return f"postgresql://{USER}@127.0.0.1:{port}/{DATABASE}"

    def end(self) -> None:
        """It does not run."""
        if self._program is not None:
            self._program.end(patience_s=1.0)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
