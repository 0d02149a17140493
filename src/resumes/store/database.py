"""What a store needs of the engine below it. Each engine has a package of its own beside this."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection

from resumes.errors import InvalidArgument
from resumes.store.statements import Prepared
from resumes.store.writes import Lane

Row = tuple[Any, ...]


class Size(NamedTuple):
    """The bytes of a store's data, and of a log that is still to be copied there; None where a
    server looks after that."""

    data_bytes: int
    log_bytes: int | None


class Database(Protocol):
    """An open database: how it is read, and the lane by which it is written."""

    @property
    def lane(self) -> Lane:
        """How it is written."""

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""

    @property
    def waits_for_network(self) -> bool:
        """Whether a read may take long through no fault of its own: event loops leave it to
        threads."""

    @property
    def url(self) -> str:
        """The address that opens the store again. May hold a password."""

    @property
    def label(self) -> str:
        """The address as people and logs are shown it: without a password."""

    @property
    def engine(self) -> Mapping[str, str]:
        """What is told of the engine beside the program's own version: names with values."""

    def read(self) -> AbstractContextManager[Connection]:
        """A block with a connection to read by, of this thread alone; SQLite's cannot write.

        Each statement sees what is committed when it starts. Errors of the driver become
        StoreUnavailable, or StoreIncompatible for a damaged file, and words that are not UTF-8
        InvalidArgument.
        """

    def read_version(self) -> int | None:
        """Return a number that changes with commits, for this thread; None where there is none."""

    async def fetch_soon(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        """The rows of a statement, for coroutines. Raises what `read` raises."""

    def measure(self) -> Size:
        """How large it is now. Raises StoreUnavailable."""

    def close(self) -> None:
        """Waiting writes are done, connections are closed."""


def not_text(error: UnicodeEncodeError) -> InvalidArgument:
    """What a word from a command line that is not UTF-8 is answered with."""
    return InvalidArgument(f"Not UTF-8 text: {error.object[:80]!r}")
