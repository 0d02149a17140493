"""The store: its schema, every query, and the create path. Knows no HTTP, folder or terminal."""

from resumes.clock import Clock, system_clock
from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.store import Store

__all__ = ["Store", "open_store"]


def open_store(
    url: str,
    *,
    clock: Clock = system_clock,
    upgrade: bool = True,
    read_cache_bytes: int | None = None,
    read_patience_s: float | None = None,
) -> Store:
    """The store at an address, made or brought up to date first when `upgrade` allows.

    `read_cache_bytes` is what each thread that reads a file keeps of it at most; `read_patience_s`
    how long a statement that reads waits for a server. None is the engine's choice.

    Several processes may open a new store at once; one of them makes it. Raises InvalidArgument
    for an address that cannot be used, StoreIncompatible for a file or a database that is no store
    of ours, is damaged or newer than this program, and StoreUnavailable when it cannot be had now.
    """
    address = parse_address(url)
    # Each engine's driver is loaded only where it is used.
    if isinstance(address, PostgresAddress):
        from resumes.store.postgresql.bootstrap import open_database

        server = open_database(address, upgrade=upgrade, read_patience_s=read_patience_s)
        return Store(server, clock=clock)
    from resumes.store.sqlite.bootstrap import open_file

    database = open_file(address.path, upgrade=upgrade, read_cache_bytes=read_cache_bytes)
    return Store(database, clock=clock)
