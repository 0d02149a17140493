"""Accounts as files: what is in them, and their lines."""

from typing import Any

from resumes.store import Store, accounts, creating
from resumes.store.account_export import iter_lines
from resumes.store.account_file import Header, Kind, Row, Writer
from resumes.store.accounts import AccountInfo
from tests.resumes.builders import a_claim, a_resume

HEADER = Header("ana", "pro", "2027-01-15T08:00:00.000Z", "2027-01-15T09:00:00.000Z", 16, 1)
NOW = "2027-01-15T08:00:00.000Z"
TITLE = 'a","document":{"b'
DOCUMENT = (
    b'{ "z": 1e2,"header":{},"sections":{},"document":{"a":"\xc3\xa9"},'
    b'"title":"a\\",\\"document\\":{\\"b","isImported":true }'
)


def fill(store: Store, account: AccountInfo, count: int) -> list[str]:
    """The ids of so many resumes that an importer brought in."""
    new = [a_resume(f"Ada {number}", item=number, with_digest=True) for number in range(count)]
    outcomes = creating.create(store, account.id, new, claim=a_claim())
    return [outcome.id for outcome in outcomes if isinstance(outcome, creating.Created)]


def exported(store: Store, name: str = "ana", *, with_keys: bool = False) -> bytes:
    """The file that an account is exported to."""
    account = accounts.get_account(store, name)
    return b"".join(iter_lines(store, account, with_keys=with_keys))


def a_row(resume_id: str = "0" * 23 + "1", **values: Any) -> Row:
    """A resume whose title looks like the place where documents begin."""
    row = {
        "id": resume_id, "title": TITLE, "name": None, "filename": "a.pdf",
        "created_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    return Row(Kind.RESUME, row | values, DOCUMENT)


def an_export(*rows: Row) -> list[bytes]:
    """The lines of a file with these rows."""
    writer = Writer()
    return [writer.header(HEADER), *map(writer.row, rows), writer.end()]
