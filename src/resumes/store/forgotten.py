"""Erased people whose resumes are rejected. A store remembers only keyed digests of them.

Each create and update request looks up these digests in its transaction (docs/erasing.md).
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
    """How the store recognizes the resumes of an erased person."""

    EMAIL = "email"
    PERSON = "person"
    """By email address and name (`analyzer.person`)."""
    DOCUMENT = "document"
    """By the complete document, if it has no email address."""


class Subject(NamedTuple):
    """What all resumes that are erased together have in common."""

    kind: SubjectKind
    value: bytes

    @classmethod
    def of_email(cls, email: str) -> "Subject":
        """Return the subject for everyone with this email address."""
        return cls(SubjectKind.EMAIL, folded_email(email).encode())

    @classmethod
    def of_resume(cls, document: str | bytes, name: str | None) -> "Subject":
        """Return the subject for a resume's person, or for its content if the person is unknown."""
        return subjects_of(document, name)[-1]

    def digest(self, key: str, scope: str) -> bytes:
        """Return the keyed digest by which a store remembers the subject.

        `scope` is the ID of an account, or empty for all accounts.
        """
        text = f"{scope}\0{self.kind}\0".encode() + self.value
        return hmac.digest(bytes.fromhex(key), text, hashlib.sha256)


def subjects_of(document: str | bytes, name: str | None) -> list[Subject]:
    """Return all subjects to which a resume belongs."""
    email = find_email(document)
    person = person_of(email, name)
    if email is None or person is None:
        content = document.encode() if isinstance(document, str) else document
        return [Subject(SubjectKind.DOCUMENT, hashlib.sha256(content).digest())]
    return [Subject.of_email(email), Subject(SubjectKind.PERSON, person)]


FORGET_KEY: Final = (
    select(store_facts.c.value).where(store_facts.c.name == "forget_key").scalar_subquery()
)
"""The key of the digests. It is NULL until the store forgets its first person."""

_WIDTH: Final = 4
_NAMES: Final = tuple(f"d{number}" for number in range(_WIDTH))
_FIND: Final = Prepared(
    select(forgotten.c.digest).where(forgotten.c.digest.in_([bindparam(name) for name in _NAMES]))
)


def find_forgotten(
    connection: Connection, key: str, subjects: Iterable[tuple[str, Sequence[Subject]]]
) -> list[bool]:
    """Return whether each resume is forgotten, given its account and its subjects.

    It is forgotten if any of its subjects is forgotten in the account or in all accounts.
    """
    rows = []
    for account_id, some in subjects:
        digests = [one.digest(key, scope) for one in some for scope in (account_id, "")]
        digests += digests[-1:] * (_WIDTH - len(digests))
        rows.append(dict(zip(_NAMES, digests, strict=True)))
    return [bool(found) for found in _FIND.run_each(connection, rows)]


def is_forgotten(
    connection: Connection, account_id: str, document: str | bytes, name: str | None
) -> bool:
    """Return whether a resume belongs to an erased person."""
    key = connection.execute(select(FORGET_KEY)).scalar_one()
    subjects = account_id, subjects_of(document, name)
    return bool(key) and find_forgotten(connection, key, [subjects])[0]


class Memory(NamedTuple):
    """A store's memory of erased people: the key, and the digests with their times."""

    key: str
    rows: Sequence[Any]


def read_memory(connection: Connection) -> Memory | None:
    """Return a store's memory of erased people, or None if it never erased anyone."""
    key = connection.execute(select(FORGET_KEY)).scalar_one()
    return Memory(key, connection.execute(select(forgotten)).all()) if key else None


def add_memory(connection: Connection, memory: Memory | None) -> bool:
    """Add the memory of another state of the same store; return whether it contains any people.

    This store may already remember all of them and still have their resumes, because `forget`
    remembers people before it erases their resumes.
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
    """Return the times when the remembered people were erased, latest first."""
    return [
        row.forgotten_at
        for row in store.fetch(select(forgotten).order_by(forgotten.c.forgotten_at.desc()))
    ]


def remember(store: Store, subjects: Iterable[Subject], scope: str = "") -> None:
    """Reject the subjects' resumes from now on, in the account `scope` or, if empty, in all."""
    now = timestamp(store.clock())

    def change(session: Session) -> None:
        if session.get_bind().dialect.name == "postgresql":
            # Waits for create requests that have already locked their account.
            session.connection().exec_driver_sql(f"LOCK TABLE {account_usage} IN EXCLUSIVE MODE")
        key = read_fact(session, "forget_key") or secrets.token_hex(32)
        set_facts(session, forget_key=key)
        for one in subjects:
            digest = one.digest(key, scope)
            if session.get(Forgotten, digest) is None:
                session.add(Forgotten(digest=digest, forgotten_at=now))

    store.write(change)


def lift(store: Store, subjects: Iterable[Subject], scope: str = "") -> bool:
    """Accept resumes of the subjects again; return whether any subject was forgotten."""

    def change(session: Session) -> bool:
        key = read_fact(session, "forget_key")
        digests = [one.digest(key, scope) for one in subjects]
        return session.exec(delete(forgotten).where(forgotten.c.digest.in_(digests))).rowcount > 0

    return store.write(change)
