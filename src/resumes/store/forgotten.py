"""People who were erased and may not come back. A store knows them by keyed digests alone.

Each create and update looks them up, in its transaction (docs/erasing.md).
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlmodel import Session

from resumes.analyzer.person import find_email, folded_email, person_of
from resumes.clock import timestamp
from resumes.store.schema import Forgotten, account_usage, forgotten, store_facts
from resumes.store.statements import Prepared
from resumes.store.store import Store, read_fact, session_on, set_facts


class SubjectKind(StrEnum):
    """By what the store recognizes a resume of a person who was erased."""

    EMAIL = "email"
    PERSON = "person"
    """By address and name (`analyzer.person`)."""
    DOCUMENT = "document"
    """By its whole content, if it has no address."""


class Subject(NamedTuple):
    """Whose resumes are erased."""

    kind: SubjectKind
    value: bytes

    @classmethod
    def of_email(cls, email: str) -> "Subject":
        """Return everyone with this address."""
        return cls(SubjectKind.EMAIL, folded_email(email).encode())

    @classmethod
    def of_resume(cls, document: str | bytes, name: str | None) -> "Subject":
        """Return the person of a resume; without an address this content alone."""
        return subjects_of(document, name)[-1]

    def digest(self, key: str, scope: str) -> bytes:
        """Return the keyed digest under which a store remembers the subject, in an account or, if `scope` is
        empty, in all."""
        text = f"{scope}\0{self.kind}\0".encode() + self.value
        return hmac.digest(bytes.fromhex(key), text, hashlib.sha256)


def subjects_of(document: str | bytes, name: str | None) -> list[Subject]:
    """Return every subject that a resume belongs to."""
    email = find_email(document)
    person = person_of(email, name)
    if email is None or person is None:
        content = document.encode() if isinstance(document, str) else document
        return [Subject(SubjectKind.DOCUMENT, hashlib.sha256(content).digest())]
    return [Subject.of_email(email), Subject(SubjectKind.PERSON, person)]


FORGET_KEY: Final = (
    select(store_facts.c.value).where(store_facts.c.name == "forget_key").scalar_subquery()
)
"""The key of the digests; NULL until a person is forgotten."""

_WIDTH: Final = 4
_NAMES: Final = tuple(f"d{number}" for number in range(_WIDTH))
_FIND: Final = Prepared(
    select(forgotten.c.digest).where(forgotten.c.digest.in_([bindparam(name) for name in _NAMES]))
)


def find_forgotten(
    connection: Connection, key: str, subjects: Iterable[tuple[str, Sequence[Subject]]]
) -> list[bool]:
    """Return for the account and subjects of each resume whether one of them was forgotten, in the account
    or everywhere."""
    rows = []
    for account_id, some in subjects:
        digests = [one.digest(key, scope) for one in some for scope in (account_id, "")]
        digests += digests[-1:] * (_WIDTH - len(digests))
        rows.append(dict(zip(_NAMES, digests, strict=True)))
    return [bool(found) for found in _FIND.run_each(connection, rows)]


def is_forgotten(
    connection: Connection, account_id: str, document: str | bytes, name: str | None
) -> bool:
    """Return whether a resume is of a person who was erased."""
    key = connection.execute(select(FORGET_KEY)).scalar_one()
    subjects = account_id, subjects_of(document, name)
    return bool(key) and find_forgotten(connection, key, [subjects])[0]


class Memory(NamedTuple):
    """Whom a store forgot: the key, and the rows of digests with their times."""

    key: str
    rows: Sequence[Any]


def read_memory(connection: Connection) -> Memory | None:
    """Return whom a store forgot, perhaps one of an older version; None if it never forgot anyone."""
    key = connection.execute(select(FORGET_KEY)).scalar_one()
    return Memory(key, connection.execute(select(forgotten)).all()) if key else None


def add_memory(connection: Connection, memory: Memory | None) -> bool:
    """Add the people whom another state of the same store forgot; return whether it forgot any.

    This state may know all of them and still have their resumes: `forget` erases after it remembers.
    """
    mine = read_memory(connection)
    if memory is None or (mine and mine.key != memory.key):
        return False
    known = {row.digest for row in mine.rows} if mine else set()
    new = [row._asdict() for row in memory.rows if row.digest not in known]
    set_facts(session_on(connection), forget_key=memory.key)
    if new:
        connection.execute(insert(forgotten), new)
    return bool(memory.rows)


def list_times(store: Store) -> list[str]:
    """Return when each person was erased who may not come back, latest first."""
    return [
        row.forgotten_at
        for row in store.fetch(select(forgotten).order_by(forgotten.c.forgotten_at.desc()))
    ]


def remember(store: Store, subjects: Iterable[Subject], scope: str = "") -> None:
    """Let no resume of the subjects into the account, or with an empty scope into any account, from now on."""
    now = timestamp(store.clock())

    def change(session: Session) -> None:
        if session.get_bind().dialect.name == "postgresql":
            # A create that has locked its account before this ends before this.
            session.connection().exec_driver_sql(f"LOCK TABLE {account_usage} IN EXCLUSIVE MODE")
        key = read_fact(session, "forget_key") or secrets.token_hex(32)
        set_facts(session, forget_key=key)
        for one in subjects:
            digest = one.digest(key, scope)
            if session.get(Forgotten, digest) is None:
                session.add(Forgotten(digest=digest, forgotten_at=now))

    store.write(change)


def lift(store: Store, subjects: Iterable[Subject], scope: str = "") -> bool:
    """Let resumes of the subjects in again; return whether any was forgotten."""

    def change(session: Session) -> bool:
        key = read_fact(session, "forget_key")
        digests = [one.digest(key, scope) for one in subjects]
        return session.exec(delete(forgotten).where(forgotten.c.digest.in_(digests))).rowcount > 0

    return store.write(change)
