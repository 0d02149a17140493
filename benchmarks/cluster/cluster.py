"""Three nodes, and which of them leads."""

import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg

from benchmarks.cluster.node import USER, Node
from benchmarks.cluster.processes import CannotRun, free_ports, kill_all, wait_until_ended

NODES: Final = 3
DATABASE: Final = "resumes"

SETTLED_S: Final = 90.0
"""How long a cluster may take until all is as it was."""

STOP_S: Final = 10.0
"""How long PostgreSQL may take to end in order."""


class Cluster:
    """Three nodes, of which one leads."""

    def __init__(self, folder: Path, programs: Path, site: Path, on_role_change: Path) -> None:
        """`on_role_change` is called with a node's port and what Patroni says of its new role."""
        self.nodes = [
            Node(f"node{number}", folder / f"node{number}", programs, site)
            for number in range(1, NODES + 1)
        ]
        ports = iter(free_ports(3 * NODES))
        for node in self.nodes:
            node.port, node.rest_port, node.raft_port = next(ports), next(ports), next(ports)
        for node in self.nodes:
            others = [other for other in self.nodes if other is not node]
            node.configure(others, on_role_change)

    def start(self) -> None:
        """All nodes run, one leads, and it has an empty database."""
        for node in self.nodes:
            node.start()
        self.wait_until_whole()
        with psycopg.connect(self.leader_url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())

    def end(self) -> None:
        """Nothing of it runs."""
        left: list[int] = []
        with contextlib.ExitStack() as stack:  # each, whatever becomes of the others
            for node in self.nodes:
                stack.callback(lambda node: left.extend(node.stop()), node)
        if not wait_until_ended(left, STOP_S):
            kill_all(left)

    def url(self) -> str:
        """Where whoever leads is found without further help."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgresql://{USER}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def leader_url(self, database: str = DATABASE) -> str:
        """The one that leads."""
        return f"postgresql://{USER}@127.0.0.1:{self.leader().port}/{database}"

    def leader(self) -> Node:
        """The one that leads. Raises LookupError when none does."""
        for member in self.members():
            if member["role"] == "leader" and member["state"] == "running":
                return next(node for node in self.nodes if node.name == member["name"])
        raise LookupError("No node leads")

    def members(self) -> list[dict[str, Any]]:
        """What a node that answers says of all of them; nothing when none answers."""
        for node in self.nodes:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{node.rest_port}/cluster", timeout=2
                ) as answer:
                    members: list[dict[str, Any]] = json.load(answer)["members"]
                    return members
            except (OSError, ValueError):
                continue
        return []

    def wait_for_leader(self, *, other_than: Node) -> None:
        """Another node leads."""

        def leads() -> bool:
            try:
                return self.leader() is not other_than
            except LookupError:
                return False

        self._wait("another leader", leads)

    def wait_for_postmaster(self, node: Node) -> None:
        """PostgreSQL runs on the node."""
        self._wait(f"PostgreSQL on {node.name}", lambda: node.postmaster() is not None)

    def wait_until_whole(self) -> None:
        """One leads, and two follow it, one of them synchronously."""

        def is_whole() -> bool:
            states = sorted((one["role"], one["state"]) for one in self.members())
            return states == [
                ("leader", "running"), ("replica", "streaming"), ("sync_standby", "streaming"),
            ]  # fmt: skip

        self._wait("a leader and two that follow it", is_whole)

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + SETTLED_S
        while not condition():
            if time.monotonic() > ends_at:
                raise CannotRun(f"The cluster has not come to {what} within {SETTLED_S:g} s: "
                                 f"{self.members()}")  # fmt: skip
            time.sleep(0.2)

    def switch_over(self) -> None:
        """The leader has handed over to the synchronous standby."""
        leader = self.leader()
        request = urllib.request.Request(
            f"http://127.0.0.1:{leader.rest_port}/switchover",
            data=json.dumps({"leader": leader.name}).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            urllib.request.urlopen(request, timeout=60).close()
        except urllib.error.HTTPError as error:
            with error:
                raise CannotRun(f"Patroni does not switch over: {error.read()!r}") from error
        self.wait_for_leader(other_than=leader)
