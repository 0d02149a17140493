"""The search index: an entry for each resume, and the pieces that its words can be looked up by.

Entries are numbered as ids rise. How pieces are kept is each engine's own (`store/sqlite/pieces`,
`store/postgresql/pieces`): from an account's entries, in the order of their numbers, those that may
hold the terms. What is found is compared with the terms once more, so finding too much is right, and
too little is not.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from resumes.store.columns import Text
from resumes.store.postgresql import pieces as postgresql_pieces
from resumes.store.schema import (
    account_usage,
    accounts,
    documents,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.search_pieces import Pieces, Wanted
from resumes.store.search_words import pieces_of_terms
from resumes.store.sqlite import pieces as sqlite_pieces
from resumes.store.statements import Prepared, at_most, looked_up


class Progress(NamedTuple):
    """What an account's index holds: entries up to `last_seq`, of all resumes up to `indexed_us`."""

    number: int
    last_seq: int
    indexed_us: int


class Slice(NamedTuple):
    """Resumes of an account that come next: ids and words, all that there are between two positions."""

    account_id: str
    after_us: int
    up_to_us: int
    words: Sequence[tuple[str, str]]


PROGRESS = Prepared(
    select(
        search_progress.c.number, search_progress.c.last_seq, search_progress.c.indexed_us
    ).where(search_progress.c.account_id == bindparam("account_id"))
)
NEXT_NUMBER = Prepared(select(func.coalesce(func.max(search_progress.c.number), 0) + 1))
# Without effect where somebody else has taken the number meanwhile.
ADD_PROGRESS = Prepared(
    lambda insert: (
        insert(search_progress)
        .values({column.name: bindparam(column.name) for column in search_progress.columns})
        .on_conflict_do_nothing(index_elements=["number"])
    )
)
MOVE_PROGRESS = Prepared(
    update(search_progress)
    .where(search_progress.c.account_id == bindparam("account"))
    .values(last_seq=bindparam("last_seq"), indexed_us=bindparam("indexed_us"))
)
# As in every write to an account: its row first. Then, by a statement of its own, which sees what
# was committed while that one waited, whether the account is still open.
LOCK_ACCOUNT = Prepared(
    select(account_usage.c.account_id)
    .where(account_usage.c.account_id == bindparam("account_id"))
    .with_for_update()
)
OPEN_ACCOUNT = Prepared(
    select(accounts.c.id).where(
        accounts.c.id == bindparam("account_id"), accounts.c.closed_at.is_(None)
    )
)
STORED_BETWEEN = Prepared(
    select(resumes.c.id).where(
        resumes.c.account_id == bindparam("account_id"),
        resumes.c.id.between(bindparam("first"), bindparam("last")),
    )
)
ADD_ENTRY = Prepared(insert(search_entries))
ENTRY = Prepared(
    select(search_entries.c.seq, search_entries.c.words).where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.id == bindparam("resume_id"),
    )
)
OLDEST_ENTRIES = Prepared(
    select(search_entries.c.seq, search_entries.c.words)
    .where(search_entries.c.account_id == bindparam("account_id"))
    .order_by(search_entries.c.seq)
    .limit(at_most("rows"))
)
REMOVE_ENTRY = Prepared(
    delete(search_entries).where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.seq == bindparam("seq"),
    )
)
SEQ_AFTER = Prepared(
    select(search_entries.c.seq)
    .where(
        search_entries.c.account_id == bindparam("account_id"),
        search_entries.c.id > bindparam("after"),
    )
    .order_by(search_entries.c.id)
    .limit(1)
)


class document_email(FunctionElement[str]):
    """The e-mail address of a document; None where it has none."""

    type = Text()
    inherit_cache = True


@compiles(document_email, "sqlite")
def _email_sqlite(element: document_email, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$.header.email')"


@compiles(document_email, "postgresql")
def _email_postgresql(element: document_email, compiler: SQLCompiler, **options: Any) -> str:
    return f"({compiler.process(element.clauses, **options)}::json #>> '{{header,email}}')"


EMAIL: Final = looked_up(
    document_email(documents.c.document), documents, resumes.c.account_id, resumes.c.id
)
"""Of a resume, for statements that select from `resumes`."""


def find_progress(connection: Connection, account_id: str) -> Progress | None:
    """How far the account's index is; None before anything of it was indexed."""
    row = PROGRESS.run(connection, account_id=account_id).fetchone()
    return None if row is None else Progress._make(row)


def begin_candidates(
    connection: Connection, account_id: str, progress: Progress, terms: Iterable[str], after: str
) -> Any:
    """The resumes that may hold the terms, in the order of ids; whoever asks closes it.

    Each row is the words and then the columns of a list's entry. Those after the id `after` come,
    as far as `progress` says.
    """
    row = SEQ_AFTER.run(connection, account_id=account_id, after=after).fetchone()
    first = progress.last_seq + 1 if row is None else row[0]
    wanted = Wanted(account_id, progress.number, pieces_of_terms(terms), first, progress.last_seq)
    return pieces_of(connection).begin(connection, wanted)


def add_slice(connection: Connection, some: Slice) -> bool:
    """The slice is in the index, but for what was deleted since it was read.

    False, and nothing is done, if somebody else has indexed it or the account is gone.
    """
    LOCK_ACCOUNT.run(connection, account_id=some.account_id).fetchall()
    if OPEN_ACCOUNT.run(connection, account_id=some.account_id).fetchone() is None:
        return False
    progress = find_progress(connection, some.account_id)
    if some.after_us != (0 if progress is None else progress.indexed_us):
        return False
    progress = progress or _begin_progress(connection, some.account_id)
    last_seq = _add_entries(connection, some, progress)
    MOVE_PROGRESS.run(
        connection, account=some.account_id, last_seq=last_seq, indexed_us=some.up_to_us
    )
    return True


def _begin_progress(connection: Connection, account_id: str) -> Progress:
    while True:
        (number,) = NEXT_NUMBER.run(connection).fetchone()
        row = {"account_id": account_id, "number": number, "last_seq": 0, "indexed_us": 0}
        if ADD_PROGRESS.run(connection, **row).rowcount:
            return Progress(number, 0, 0)


def _add_entries(connection: Connection, some: Slice, progress: Progress) -> int:
    """The slice has its entries; the last one's number."""
    if not some.words:
        return progress.last_seq
    rows = STORED_BETWEEN.run(
        connection, account_id=some.account_id, first=some.words[0][0], last=some.words[-1][0]
    )
    stored = {resume_id for (resume_id,) in rows.fetchall()}
    kept = [one for one in some.words if one[0] in stored]
    numbered = list(enumerate(kept, progress.last_seq + 1))
    ADD_ENTRY.run_many(
        connection,
        (
            {"account_id": some.account_id, "seq": seq, "id": resume_id, "words": words}
            for seq, (resume_id, words) in numbered
        ),
    )
    pieces_of(connection).add(
        connection, some.account_id, progress.number, [(seq, words) for seq, (_, words) in numbered]
    )
    return progress.last_seq + len(kept)


def remove(connection: Connection, account_id: str, resume_id: str) -> None:
    """The resume is not in the index; part of the transaction that deletes it."""
    _remove(
        connection, account_id, ENTRY.run(connection, account_id=account_id, resume_id=resume_id)
    )


def remove_oldest(connection: Connection, account_id: str, count: int) -> None:
    """So many of the account's entries have gone, oldest first; part of deleting the account."""
    _remove(
        connection, account_id, OLDEST_ENTRIES.run(connection, account_id=account_id, rows=count)
    )


def _remove(connection: Connection, account_id: str, entries: Any) -> None:
    rows: list[tuple[int, str]] = entries.fetchall()
    progress = find_progress(connection, account_id)
    if not rows or progress is None:
        return
    pieces_of(connection).remove(connection, account_id, progress.number, rows)
    REMOVE_ENTRY.run_many(connection, ({"account_id": account_id, "seq": seq} for seq, _ in rows))


def pieces_of(connection: Connection) -> Pieces:
    """How this engine keeps pieces."""
    if connection.dialect.name == "sqlite":
        return sqlite_pieces
    return postgresql_pieces
