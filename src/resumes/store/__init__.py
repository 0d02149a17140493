"""The store: its schema, all queries, and the create path. Independent of HTTP, folders and terminals."""

from typing import TYPE_CHECKING, Any

from resumes.clock import Clock, system_clock
from resumes.store.addresses import PostgresAddress, parse_address

if TYPE_CHECKING:
    from resumes.store.store import Store

__all__ = ["Store", "open_store"]


def __getattr__(name: str) -> Any:
    """Import `Store` on first use, so that `sqlite.first_rows` does not need SQLAlchemy."""
    if name != "Store":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from resumes.store.store import Store

    return Store


def open_store(
    url: str,
    *,
    clock: Clock = system_clock,
    upgrade: bool = True,
    read_cache_bytes: int | None = None,
    read_timeout_s: float | None = None,
) -> "Store":
    """Open the store at an address, created or upgraded first when `upgrade` allows.

    `read_cache_bytes` limits the page cache of each thread that reads a file; `read_timeout_s` is how
    long a reading statement waits for a server. None is the engine's default.

    Several processes may open a new store at the same time; one of them creates it. Raises
    InvalidArgument for an unusable address, StoreIncompatible for a file or a database that is not a
    store of ours, is damaged or newer than this program, and StoreUnavailable when it cannot be
    opened now.
    """
    address = parse_address(url)
    # Each engine's driver is loaded only if it is used.
    if isinstance(address, PostgresAddress):
        from resumes.store.postgresql.store import open_server

        return open_server(address, clock=clock, upgrade=upgrade, read_timeout_s=read_timeout_s)
    from resumes.store.sqlite.files import open_file

    return open_file(address.path, clock=clock, upgrade=upgrade, read_cache_bytes=read_cache_bytes)
