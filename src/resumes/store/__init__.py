"""The store: its schema, all queries, and the create path, without HTTP, inboxes and terminals."""

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
    """Open the store at an address; with `upgrade`, create or upgrade it first if necessary.

    `read_cache_bytes` limits the page cache of each thread that reads a file; `read_timeout_s` is
    how long a reading statement waits for a server. None is the engine's default.

    Several processes may open a new store at the same time; one of them creates it. Raises
    InvalidArgument for an invalid address, StoreIncompatible if the file or database is not a store
    of this program, is damaged, or is newer than the program, and StoreUnavailable if the store
    cannot be opened now.
    """
    address = parse_address(url)
    # Import an engine's driver only if the engine is used.
    if isinstance(address, PostgresAddress):
        from resumes.store.postgresql.store import open_server

        return open_server(address, clock=clock, upgrade=upgrade, read_timeout_s=read_timeout_s)
    from resumes.store.sqlite.files import open_file

    return open_file(address.path, clock=clock, upgrade=upgrade, read_cache_bytes=read_cache_bytes)
