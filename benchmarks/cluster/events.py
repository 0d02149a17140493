"""What befalls a cluster. Each returns when nothing more is done to it, and it may mend."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.cluster.cluster import Cluster

FROZEN_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Event:
    """One of them."""

    name: str
    happen: Callable[[Cluster], None]
    is_pooled: bool = False
    """Whether the service works through PgBouncer meanwhile."""

    is_planned: bool = False
    """Whether requests only wait for its end."""


def switch_over(cluster: Cluster) -> None:
    """The leader hands over, as for maintenance."""
    cluster.switch_over()


def kill_postmaster(cluster: Cluster) -> None:
    """PostgreSQL dies on the leader; its Patroni lives, and starts it again."""
    node = cluster.leader()
    node.kill_postmaster()
    # Patroni notices a little later; until then it says that all is well.
    cluster.wait_for_postmaster(node)


def kill_node(cluster: Cluster) -> None:
    """The leader's machine goes, and is back when another leads."""
    node = cluster.leader()
    node.kill()
    cluster.wait_for_leader(other_than=node)
    node.start()


def freeze_node(cluster: Cluster) -> None:
    """The leader's machine stands still, and goes on 30 seconds later."""
    node = cluster.leader()
    node.freeze()
    time.sleep(FROZEN_S)
    node.thaw()


EVENTS: Final = {
    event.name: event
    for event in (
        Event("switchover", switch_over, is_planned=True),
        Event("kill-postmaster", kill_postmaster),
        Event("kill-node", kill_node),
        Event("freeze-node", freeze_node),
        Event("pgbouncer-switchover", switch_over, is_pooled=True, is_planned=True),
        Event("pgbouncer-kill-postmaster", kill_postmaster, is_pooled=True),
    )
}
"""By the names that --events takes, in the order of the drill."""
