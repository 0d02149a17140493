"""Whether a PostgreSQL server keeps the store well, and has room for those who use it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import text

from resumes.health.findings import Finding, notice
from resumes.store.engine import Store

CONNECTIONS_OF_A_WORKER: Final = 7
"""Of each API process at most: those that write, one that reads for requests, two that watch."""

CONNECTIONS_OF_OTHERS: Final = 20
"""For an importer with its helpers, a terminal UI, and a command now and then."""

# What a server does not know is null: others than PostgreSQL speak its protocol.
FACTS: Final = text(
    "SELECT current_setting('server_version', true), current_setting('synchronous_commit', true),"
    " current_setting('fsync', true), current_setting('full_page_writes', true),"
    " current_setting('max_connections', true),"
    " current_setting('superuser_reserved_connections', true),"
    " current_setting('reserved_connections', true),"
    " pg_is_in_recovery()"
)


class ServerFacts(NamedTuple):
    """What a server says of itself. None: it does not say."""

    version: str | None
    synchronous_commit: str | None
    fsync: str | None
    full_page_writes: str | None
    connections: str | None
    """How many it takes in all, those among them that it keeps for its own people."""

    reserved_for_superusers: str | None = None
    reserved: str | None = None
    is_standby: bool = False

    @property
    def room(self) -> int | None:
        """For how many connections of ours there is room."""
        if self.connections is None:
            return None
        kept = int(self.reserved_for_superusers or 0) + int(self.reserved or 0)
        return int(self.connections) - kept


def read_facts(store: Store) -> ServerFacts:
    """What the server of the store says of itself. Raises StoreError."""
    with store.read() as connection:
        return ServerFacts(*connection.execute(FACTS).one())


def iter_server_findings(facts: ServerFacts, *, workers: int) -> Iterator[Finding]:
    """What it is, and what of it wants a look. `workers` are API processes on this machine."""
    yield Finding("server", f"version {facts.version or 'unknown'}")
    if facts.is_standby:
        yield Finding(
            "server",
            "is a standby, which takes no writes",
            "Name the primary, or all servers with ?target_session_attrs=read-write behind them",
            about="standby",
        )
    if facts.synchronous_commit == "off":
        yield notice(
            "server",
            "synchronous_commit is off: when it crashes, resumes that were acknowledged are lost",
            "Set synchronous_commit to on",
            about="synchronous_commit",
        )
    for name, value in (("fsync", facts.fsync), ("full_page_writes", facts.full_page_writes)):
        if value == "off":
            yield notice(
                "server",
                f"{name} is off: when its machine crashes, the store is lost",
                f"Set {name} to on",
                about=name,
            )
    needed = workers * CONNECTIONS_OF_A_WORKER + CONNECTIONS_OF_OTHERS
    if facts.room is not None and facts.room < needed:
        yield notice(
            "server",
            f"takes {facts.room} connections, and this machine alone may want {needed}",
            f"Set max_connections to {needed + 20} or more for each machine that uses it, start "
            "fewer workers, or put a pooler between",
            about="max_connections",
        )
