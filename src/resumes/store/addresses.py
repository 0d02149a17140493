"""Where a store is: a file, or a database that a server keeps."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from resumes.errors import InvalidArgument

POSTGRES = ("postgresql", "postgres")
FORMS = "use sqlite:///PATH or postgresql://USER@HOST/NAME"


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file, absolute."""

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
        parts = urlsplit(self.url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

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
        return SqliteAddress(Path(rest[1:]).absolute())
    if separator and engine in POSTGRES:
        return _postgres_address(f"postgresql://{rest}")
    shown = url if "@" not in url else f"{scheme}://…"
    raise InvalidArgument(f'Invalid database "{shown}": {FORMS}')


def _postgres_address(url: str) -> PostgresAddress:
    address = PostgresAddress(url)
    name = unquote(urlsplit(url).path).strip("/")
    if not name and "dbname=" not in urlsplit(url).query:
        raise InvalidArgument(f'Invalid database "{address.label}": name one, as in {FORMS}')
    return address
