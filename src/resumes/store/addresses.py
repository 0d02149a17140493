"""Where a store is: a file, or a database that a server keeps."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from resumes.errors import InvalidArgument

POSTGRES = ("postgresql", "postgres")
FORMS = "use sqlite:///PATH or postgresql://USER@HOST/NAME"

_SECRET: Final = re.compile("password|secret", re.IGNORECASE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BAD_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})|%00")


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file: its absolute path, links followed, so that all who use it share one set of locks and
    are told on which file system it lies."""

    path: Path


@dataclass(frozen=True, slots=True, repr=False)
class PostgresAddress:
    """A database of a PostgreSQL server, or of one that speaks its protocol.

    `url` is what libpq takes: several hosts, a password and options may stand in it. `label` is
    the same without what is nobody's business.
    """

    url: str

    @property
    def label(self) -> str:
        """Servers and name alone."""
        return f"postgresql://{_split(self.url).place}"

    @property
    def without_secrets(self) -> str:
        """What a person would type: all but the secrets, which can be given in other ways."""
        credentials, place, query = _split(self.url)
        user = credentials.partition(":")[0]
        options = [one for one in query.split("&") if one and not _SECRET.search(_name(one))]
        return (
            "postgresql://"
            + (f"{user}@" if user else "")
            + place
            + (f"?{'&'.join(options)}" if options else "")
        )

    def __repr__(self) -> str:
        return f"PostgresAddress({self.label})"


Address = SqliteAddress | PostgresAddress


def parse_address(url: str) -> Address:
    """The address that a URL names; a `+driver` suffix does not matter.

    Raises InvalidArgument for anything else, and repeats no password.
    """
    scheme, separator, rest = url.partition("://")
    engine = scheme.partition("+")[0]
    if separator and engine == "sqlite" and rest.startswith("/") and len(rest) > 1:
        if "\0" in rest:
            raise InvalidArgument(f"Invalid database {rest[1:]!a}: no path holds a NUL byte")
        # By os.path: Path.resolve fails for links that lead to one another, and none is opened here.
        return SqliteAddress(Path(os.path.realpath(rest[1:])))
    if separator and engine in POSTGRES:
        return _postgres_address(f"postgresql://{rest}")
    raise InvalidArgument(f'Invalid database "{_harmless(url)}": {FORMS}')


def find_without_secrets(url: str) -> str | None:
    """An address as a person would type it, without its secrets; None for what is no address."""
    try:
        address = parse_address(url)
    except InvalidArgument:
        return None
    return address.without_secrets if isinstance(address, PostgresAddress) else url


def _harmless(url: str) -> str:
    """What may be repeated of something that is no address, which can hold a password all the same."""
    if "@" not in url and "=" not in url:
        return url[:80]
    scheme, separator, _ = url.partition("://")
    return f"{scheme}://…" if separator and re.fullmatch("[A-Za-z0-9+.-]+", scheme) else "…"


class _Parts(NamedTuple):
    credentials: str
    place: str
    query: str


def _split(url: str) -> _Parts:
    """As libpq takes it apart: whatever stands before the first @, unless a / comes before it."""
    rest = url.partition("://")[2]
    credentials, at, after = rest.partition("@")
    if not at or "/" in credentials:
        credentials, after = "", rest
    place, _, query = after.partition("?")
    return _Parts(credentials, place, query)


def _name(option: str) -> str:
    return unquote(option.partition("=")[0])


def _postgres_address(url: str) -> PostgresAddress:
    _, place, query = _split(url)
    # Whatever libpq took apart in another way it would name in its complaint: half a password.
    if "@" in place or "@" in query or "#" in place or _BAD_PERCENT.search(url):
        raise InvalidArgument(
            'Invalid database "postgresql://…": in a name or password write %40 for @, %2F for /, '
            "%3F for ?, %23 for # and %25 for %"
        )
    if _SURROGATE.search(url):  # what Python makes of a byte of a variable that is not UTF-8
        raise InvalidArgument(
            'Invalid database "postgresql://…": it is not UTF-8. Write such a byte as %FF'
        )
    address = PostgresAddress(url)
    if not place.partition("/")[2] and "dbname=" not in query:
        raise InvalidArgument(f'Invalid database "{address.label}": name one, as in {FORMS}')
    return address
