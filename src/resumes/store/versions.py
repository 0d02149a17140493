"""The versions of a person's resume, and how a newer version replaces older versions.

Resumes in an account with the same `person` are versions. In an account that replaces versions, a
create request deletes the older versions in its transaction. The time of arrival determines which
version is newer. A file arrives when it is found in the inbox (the time in its claim), another
resume when it is created, and an updated resume when it is updated. So a file that is retried or
imported late never replaces a version that arrived after it (docs/decisions/0021).

The index of persons finds versions. In an account that replaces versions, create requests add
resumes to this index. In other accounts, the search indexer does so later, because the random keys
would slow down create requests. Queries for versions therefore also read the resumes that are not
indexed yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
    update,
)
from sqlmodel import Session

from resumes.clock import timestamp
from resumes.store.entry import MAX_VERSIONS
from resumes.store.erasing import erase_rows
from resumes.store.identifiers import position_of
from resumes.store.schema import (
    Account,
    BinaryText,
    imported_digests,
    replaced_resumes,
    resumes,
    search_progress,
)
from resumes.store.statements import Prepared, by_engine, insert_into
from resumes.store.store import Store, change_count


class OnNewer(StrEnum):
    """What a create request does with older versions of the resume."""

    KEEP = "keep"
    REPLACE = "replace"


# A bound that is greater than every ID at the position.
_last_id = by_engine(sqlite="printf('%016xg', {})", postgresql="lpad(to_hex({}), 16, '0') || 'g'")


def _is_unindexed(table: FromClause, account_id: Any) -> ColumnElement[bool]:
    """Return the condition that a row of `resumes` is not in the index of persons yet."""
    indexed_us = select(search_progress.c.indexed_us).where(
        search_progress.c.account_id == account_id
    )
    position = func.coalesce(indexed_us.scalar_subquery(), literal_column("0", Integer))
    return and_(
        table.c.account_id == account_id,
        table.c.id > _last_id(position),
        table.c.is_person_indexed.is_(None),
    )


_NO_TEXT: Final[ColumnElement[str]] = literal_column("''", BinaryText)


def is_newest(
    listed: FromClause, account_id: Any, persons: Select[Any] | None = None
) -> ColumnElement[bool]:
    """Return the condition that a row of the account in `resumes` is its person's newest resume.

    `persons` selects the persons of all rows that are compared, if there are few of them.
    """
    later = resumes.alias("later")
    next_person = (
        select(later.c.person == listed.c.person)
        .where(
            later.c.account_id == account_id,
            # The condition of the partial index.
            later.c.is_person_indexed.is_not(None),
            # Without `_NO_TEXT`, SQLite would read both rows to compare them, without the index.
            tuple_(later.c.person, later.c.id) > tuple_(listed.c.person, listed.c.id + _NO_TEXT),
        )
        .order_by(later.c.person, later.c.id)
        .limit(literal_column("1", Integer))
        .correlate(listed)
        .scalar_subquery()
    )
    new = resumes.alias("new")
    rows = select(new.c.person, func.max(new.c.id).label("id"))
    rows = rows.where(_is_unindexed(new, account_id)).group_by(new.c.person)
    if persons is not None:
        # `is_` prevents PostgreSQL from turning the condition into a join (pitfalls S24).
        rows = rows.where(new.c.person.in_(persons).is_(true()))
    # Not correlated, so that it is read only once and not for each row.
    last = rows.cte("last").prefix_with("MATERIALIZED")
    is_last = or_(
        listed.c.person.in_(select(last.c.person)).is_not(true()),
        listed.c.id.in_(select(last.c.id)),
    )
    return and_(next_person.is_not(true()), is_last)


def select_newest(account_id: Any, resume_ids: Any) -> Select[Any]:
    """Return the statement that selects the IDs of those resumes that are their person's newest."""
    asked = resumes.c.account_id == account_id, resumes.c.id.in_(resume_ids)
    persons = select(resumes.c.person).where(*asked)
    return select(resumes.c.id).where(*asked, is_newest(resumes, account_id, persons))


_ACCOUNT: Final[BindParameter[str]] = bindparam("account_id")
_IDS: Final[BindParameter[Any]] = bindparam("resume_ids", expanding=True)
_NEWEST: Final = select_newest(_ACCOUNT, _IDS)


def newest_of(connection: Connection, account_id: str, resume_ids: Sequence[str]) -> set[str]:
    """Return the IDs of those resumes that are their person's newest."""
    values = {"account_id": account_id, "resume_ids": resume_ids}
    return set(connection.execute(_NEWEST, values).scalars())


class Version(NamedTuple):
    """A stored version of a person's resume.

    `arrival` is the ID of its claim, or its own ID if it has no claim. `changed_at` is empty unless
    the resume was updated.
    """

    id: str
    arrival: str
    changed_at: str = ""
    label: str | None = None

    def is_after(self, claim_id: str) -> bool:
        """Return whether this version is newer than the file of the claim."""
        return self.arrival > claim_id or self.changed_at > timestamp(position_of(claim_id))


def of_person(table: FromClause, account_id: Any, person: Any) -> ColumnElement[bool]:
    """Return the condition that a row of `resumes` belongs to the person.

    The statement must be ordered by person and ID.
    """
    # The condition of the partial index, a range and this order make engines use the index, even if
    # PostgreSQL's statistics about the account are outdated (pitfalls S24).
    is_theirs = table.c.is_person_indexed.is_not(None), table.c.person.between(person, person)
    return and_(table.c.account_id == account_id, *is_theirs)


_OF_PERSONS: Final = Prepared(
    select(*resumes.c["id", "claim_id", "created_at", "updated_at", "label"])
    .where(of_person(resumes, bindparam("account_id"), bindparam("person")))
    .order_by(resumes.c.person, resumes.c.id)
)


def find_versions(
    connection: Connection, account_id: str, persons: Iterable[bytes]
) -> dict[bytes, list[Version]]:
    """Return the stored versions by person, oldest first."""
    known = set(persons)
    wanted = [{"account_id": account_id, "person": person} for person in known]
    found: dict[bytes, list[Version]] = {}
    for person, rows in zip(known, _OF_PERSONS.run_each(connection, wanted), strict=True):
        for resume_id, claim_id, created_at, updated_at, label in rows:
            changed_at = updated_at if updated_at != created_at else ""
            version = Version(resume_id, claim_id or resume_id, changed_at, label)
            found.setdefault(person, []).append(version)
    return found


# Lists and counts


def select_counts(account_id: Any, resume_ids: Any) -> Select[Any]:
    """Return the statement that selects the IDs of these resumes, and their numbers of versions."""
    asked = resumes.c.account_id == account_id, resumes.c.id.in_(resume_ids)
    new = resumes.alias("new")
    # Written like this for the same reason as in `is_newest`.
    is_asked = new.c.person.in_(select(resumes.c.person).where(*asked)).is_(true())
    new_of_persons = (
        select(new.c.person, func.count().label("count"))
        .where(_is_unindexed(new, account_id), is_asked)
        .group_by(new.c.person)
        .cte()
        .prefix_with("MATERIALIZED")
    )
    other = resumes.alias("other")
    counted = select(other.c.id).where(of_person(other, account_id, resumes.c.person))
    counted = counted.order_by(other.c.person, other.c.id)
    counted = counted.limit(literal_column(str(MAX_VERSIONS), Integer)).correlate(resumes)
    indexed = select(func.count()).select_from(counted.subquery())
    unindexed = func.coalesce(new_of_persons.c.count, literal_column("0", Integer))
    return (
        select(resumes.c.id, indexed.scalar_subquery() + unindexed)
        .outerjoin(new_of_persons, new_of_persons.c.person == resumes.c.person)
        .where(*asked)
    )


def count_versions(store: Store, account_id: str, resume_ids: Sequence[str]) -> dict[str, int]:
    """Return the number of versions by resume, at most 100; leave out resumes with one version."""
    found = store.fetch(select_counts(account_id, resume_ids))
    return {resume_id: min(count, MAX_VERSIONS) for resume_id, count in found if count > 1}


def select_versions(
    columns: Sequence[ColumnElement[Any]], account_id: str, person: bytes
) -> CompoundSelect[Any]:
    """Return the statement that selects these columns of the person's newest resumes.

    It selects at most 100 resumes that are in the index, and at most 100 that are not.
    """
    rows = select(*columns).limit(MAX_VERSIONS)
    indexed = rows.where(of_person(resumes, account_id, person))
    new = rows.where(_is_unindexed(resumes, account_id), resumes.c.person == person)
    return union_all(
        select(indexed.order_by(resumes.c.person.desc(), resumes.c.id.desc()).subquery()),
        select(new.order_by(resumes.c.id.desc()).subquery()),
    )


# Replacing

_HAND_ON: Final = (
    update(imported_digests)
    .where(
        imported_digests.c.account_id == bindparam("of_account"),
        imported_digests.c.resume_id == bindparam("replaced_id"),
    )
    .values(resume_id=bindparam("by_id"), is_older=true())
)


def replace(
    connection: Connection,
    account_id: str,
    replaced: Mapping[str, Sequence[str]],
    *,
    by_create: bool = True,
) -> None:
    """Delete the older versions in `replaced`, which maps the IDs of newer resumes to their IDs.

    The older versions need not be in the search index. Their digests are kept as older digests of
    the newer resume, so that they are not imported again while it is stored. Versions that a create
    request replaced are recorded, because a repeated request returns their IDs again. The caller
    changes the account's counter.
    """
    pairs = [(by_id, old_id) for by_id, old_ids in replaced.items() for old_id in old_ids]
    if not pairs:
        return
    rows = [
        {"of_account": account_id, "replaced_id": old_id, "by_id": by_id} for by_id, old_id in pairs
    ]
    connection.execute(_HAND_ON, rows)
    noted = [(account_id, by_id, old_id) for by_id, old_id in pairs if by_create]
    insert_into(replaced_resumes).run_rows(connection, noted)
    erase_rows(connection, account_id, [old_id for _, old_id in pairs])


def replace_others(
    session: Session, account_id: str, resume_id: str, person: bytes | None
) -> Sequence[str]:
    """Delete a person's other resumes after an update, if the account replaces; return the IDs."""
    account = session.get(Account, account_id)
    if person is None or account is None or account.on_newer != OnNewer.REPLACE:
        return ()
    session.flush()
    connection = session.connection()
    versions = find_versions(connection, account_id, [person])[person]
    others = [version.id for version in versions if version.id != resume_id]
    if others:
        replace(connection, account_id, {resume_id: others}, by_create=False)
        change_count(session, account_id, -len(others))
    return others


def _select_replaced(account_id: str, by: ColumnElement[bool]) -> Select[Any]:
    these = replaced_resumes.c.account_id == account_id, by
    rows = select(replaced_resumes.c.resume_id, replaced_resumes.c.replaced_id).where(*these)
    return rows.order_by(replaced_resumes.c.resume_id, replaced_resumes.c.replaced_id)


def find_replaced(
    connection: Connection, account_id: str, resume_ids: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return, by resume, the IDs of the versions that were replaced when the resume was created."""
    found: dict[str, tuple[str, ...]] = {}
    if not resume_ids:
        return found
    rows = _select_replaced(account_id, replaced_resumes.c.resume_id.in_(resume_ids))
    for resume_id, replaced_id in connection.execute(rows):
        found[resume_id] = (*found.get(resume_id, ()), replaced_id)
    return found


async def list_replaced_async(store: Store, account_id: str, resume_id: str) -> tuple[str, ...]:
    """Return the IDs of the versions that were replaced when this resume was created."""
    by = replaced_resumes.c.resume_id == resume_id
    rows = await store.fetch_async(_select_replaced(account_id, by))
    return tuple(replaced_id for _, replaced_id in rows)
