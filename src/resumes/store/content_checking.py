"""Whether what an account's rows hold can be read back by those who read it.

Row after row, so it takes time that grows with the account: all documents are gone through.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, select

from resumes.analyzer import check_stored
from resumes.errors import InvalidInput, StoreIncompatible
from resumes.store.checking import BACKUP, STOPPED, Defect, Flaw, Question
from resumes.store.engine import Store
from resumes.store.items import parse_items
from resumes.store.paging import next_page
from resumes.store.schema import documents, imported_files

ROWS_AT_ONCE: Final = 25
"""Each may have megabytes."""


def _is_resume(document: str) -> bool:
    try:
        check_stored(document.encode())
    except InvalidInput:
        return False
    return True


def _is_items(text: str) -> bool:
    try:
        parse_items(text)
    except ValueError:
        return False
    return True


class Contents(NamedTuple):
    """Texts that are read as something, of which there is one for each key; and what is said of
    those that cannot be. The question's statement gives a page of keys and texts."""

    question: Question
    after: str
    is_readable: Callable[[str], bool]


def _page(key: ColumnElement[str], content: ColumnElement[Any]) -> Select[Any]:
    owner = key.table.c.account_id
    return next_page(
        select(key, content).where(owner == bindparam("account_id"), content.is_not(None)), key
    )


CONTENTS: Final = (
    Contents(
        Question(
            Defect.BAD_DOCUMENT,
            _page(documents.c.id, documents.c.document),
            "Documents are no resumes: who asks for one gets an error",
            BACKUP + ", or let go of each: `resumes delete {first} --account {account}`",
        ),
        "after_id",
        _is_resume,
    ),
    Contents(
        Question(
            Defect.BAD_ITEMS,
            _page(imported_files.c.claim_id, imported_files.c["items"]),
            "Files have a history that cannot be read: lists that they are in fail",
            STOPPED + "UPDATE imported_files SET items = NULL "
            "WHERE account_id = '{account_id}' AND claim_id = '{first}'",
        ),
        "after_claim_id",
        _is_items,
    ),
)


def iter_flaws(store: Store, account_id: str, name: str) -> Iterator[Flaw]:
    """What of the account's contents cannot be read back."""
    for contents in CONTENTS:
        bad: list[str] = []
        # Text that is no UTF-8 ends it: iter_damage tells of that.
        with contextlib.suppress(StoreIncompatible):
            bad.extend(_iter_bad(store, account_id, contents))
        if bad:
            yield contents.question.flaw(name, account_id, len(bad), bad[0])


def _iter_bad(store: Store, account_id: str, contents: Contents) -> Iterator[str]:
    """The keys of what cannot be read, in order."""
    after = ""
    while True:
        with store.read() as connection:
            page = connection.execute(
                contents.question.statement,
                {"account_id": account_id, contents.after: after, "rows": ROWS_AT_ONCE},
            ).all()
        for key, content in page:
            if not contents.is_readable(content):
                yield key
        if len(page) < ROWS_AT_ONCE:
            return
        after = page[-1][0]
