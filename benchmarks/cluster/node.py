"""A node: a Patroni and the PostgreSQL that it looks after.

Patroni keeps who leads in a store of its own that the nodes agree on by Raft, so nothing else has
to run. `synchronous_mode`: a commit is acknowledged when a standby has it too, and only such a
standby may lead next.
"""

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.cluster import unprivileged
from benchmarks.cluster.processes import Program, kill_all, tell, tree

USER: Final = "resumes"
"""The owner of the databases."""

# How soon a dead leader is replaced is `ttl`, of which Patroni takes no shorter one.
TIMEOUTS: Final = {"ttl": 20, "loop_wait": 2, "retry_timeout": 5}


class Node:
    """One of the nodes."""

    def __init__(self, name: str, folder: Path, programs: Path, site: Path) -> None:
        self.name = name
        self.port, self.rest_port, self.raft_port = 0, 0, 0
        self._folder = unprivileged.give_away(folder)
        self._programs = programs
        self._program = Program(
            [unprivileged.open_python(), "-m", "patroni", folder / "patroni.json"],
            folder / "log",
            environment={"PYTHONPATH": str(site), "PATRONI_LOG_LEVEL": "INFO", "HOME": str(folder)},
            user=unprivileged.USER,
        )

    def configure(self, others: Sequence["Node"], on_role_change: Path) -> None:
        """What Patroni reads when it starts is there."""
        parameters = {
            "max_connections": 200,
            "shared_buffers": "64MB",
            "unix_socket_directories": "",
            # Whatever it leaves behind when it is killed is in its folder.
            "dynamic_shared_memory_type": "mmap",
        }
        dynamic = {
            **TIMEOUTS,
            "synchronous_mode": True,
            "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": parameters},
        }
        settings = {
            "scope": "resumes",
            "name": self.name,
            "restapi": _listen(self.rest_port),
            "raft": {
                "data_dir": str(self._folder / "raft"),
                "self_addr": f"127.0.0.1:{self.raft_port}",
                "partner_addrs": [f"127.0.0.1:{one.raft_port}" for one in others],
            },
            "bootstrap": {
                "dcs": dynamic,
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
            },
            "postgresql": {
                **_listen(self.port),
                "data_dir": str(self._folder / "data"),
                "bin_dir": str(self._programs),
                "basebackup": [{"checkpoint": "fast"}],
                "callbacks": {"on_role_change": f"{on_role_change} {self.port}"},
                "pgpass": str(self._folder / "pgpass"),
                "pg_hba": [
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                ],
                "authentication": {
                    "superuser": {"username": USER},
                    "replication": {"username": "replicator"},
                },
            },
        }
        (self._folder / "patroni.json").write_text(json.dumps(settings))

    def start(self) -> None:
        """Patroni runs, and starts PostgreSQL when it may."""
        self._program.start()

    def postmaster(self) -> int | None:
        """The process that all others of this PostgreSQL come from; None while it does not run."""
        try:
            pid = int((self._folder / "data/postmaster.pid").read_text().split()[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return None
        return pid if str(self._folder).encode() in command else None

    def pids(self) -> list[int]:
        """Patroni and PostgreSQL, and all that they started."""
        postmaster = self.postmaster()
        return self._program.pids() + (tree(postmaster) if postmaster else [])

    def kill_postmaster(self) -> None:
        """The postmaster is gone; its backends notice, and so does Patroni."""
        pid = self.postmaster()
        assert pid is not None, f"{self.name} does not run"
        tell([pid], signal.SIGKILL)

    def kill(self) -> None:
        """The node is gone, as if its machine were."""
        kill_all(self.pids())
        self._program.kill()

    def freeze(self) -> None:
        """Nothing of the node runs; its connections stay, and its kernel goes on answering."""
        tell(self.pids(), signal.SIGSTOP)

    def thaw(self) -> None:
        """It runs on, as if nothing had been."""
        tell(self.pids(), signal.SIGCONT)

    def stop(self) -> list[int]:
        """Patroni is gone, and PostgreSQL is ending in order; the processes that are left."""
        self.thaw()
        postmaster = self.postmaster()
        self._program.kill()
        left = tree(postmaster) if postmaster else []
        tell(left[:1], signal.SIGINT)  # a fast shutdown
        return left


def _listen(port: int) -> dict[str, str]:
    return {"listen": f"127.0.0.1:{port}", "connect_address": f"127.0.0.1:{port}"}
