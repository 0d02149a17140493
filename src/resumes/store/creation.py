"""The create path: the only way to store a resume, from HTTP, importer and command line alike.

    bytes -> analyzer.parse -> create(account, resumes) -> outcomes

One transaction does, in this order: lock the account; refuse people who were erased; look up earlier
outcomes (a claim's item already imported, an Idempotency-Key already used, a content already stored), so
that a repeated create gets its first answer even if the account is full; apply the quota, first come,
first served; assign the ids, so that the order of ids is the order of commits; insert the rows, with
those of the ledger.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, repeat
from typing import Any, NamedTuple
from zlib import crc32

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    LargeBinary,
    any_,
    bindparam,
    case,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)

from resumes.analyzer import Resume as ParsedResume
from resumes.clock import timestamp
from resumes.errors import (
    ErrorCode,
    IdempotencyMismatch,
    NotFound,
    PersonErased,
    QuotaReached,
    ResumesError,
)
from resumes.store import identifiers, import_ledger
from resumes.store.forgotten import FORGET_KEY, find_forgotten, subjects_of
from resumes.store.idempotency import ADD_KEY, FIND_KEY, kept_since
from resumes.store.import_ledger import (
    WORST_FIRST,
    ClaimedFile,
    FileOutcome,
    Verdict,
    nameless,
)
from resumes.store.schema import (
    BinaryText,
    account_usage,
    accounts,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    plans,
    resumes,
)
from resumes.store.statements import (
    VALUES,
    Prepared,
    chunks,
    columns_of,
    driver,
    insert_into,
    params_equal,
    pk_equals,
    text_of,
)
from resumes.store.store import WRITE_DEADLINE_S, Store
from resumes.store.versions import (
    OnNewer,
    Version,
    find_replaced,
    find_versions,
    list_replaced_async,
    replace,
)
from resumes.store.write_queue import SKIPPED, LostRace, Write


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's Idempotency-Key and the SHA-256 of the raw body that it came with."""

    key: str
    body_sha256: bytes


class NewResume(NamedTuple):
    """A parsed resume to store.

    `digest` is the SHA-256 of its JSON value's bytes: if it is given, content that is stored already
    is a duplicate, and keeps its label. `original` is the same of the file that it was analyzed from.
    `item` is its number in the bundle, 0 in a file of one resume.
    """

    resume: ParsedResume
    digest: bytes | None = None
    item: int = 0
    idempotency: IdempotencyKey | None = None
    label: str | None = None
    original: bytes | None = None

    @property
    def digests(self) -> Sequence[bytes]:
        """The digests by which it is recognized."""
        if self.original is None:
            return () if self.digest is None else (self.digest,)
        return [digest for digest in (self.original, self.digest) if digest is not None]


@dataclass(frozen=True, slots=True)
class Created:
    """The resume is stored. `replayed`: by an earlier call that this one repeats. `replaced` are the ids of
    the older versions that its create deleted."""

    id: str
    replayed: bool = False
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same content, or with `is_newer` a newer version of it, is stored already, under this id."""

    id: str
    is_newer: bool = False

    @property
    def message(self) -> str:
        """Return the message for people."""
        what = "A newer version of this resume" if self.is_newer else "The same content"
        return f"{what} is already stored as {self.id}"


Outcome = Created | Duplicate | QuotaReached | IdempotencyMismatch | PersonErased
"""The outcome of a create. The errors are values, since they do not stop the rest of the batch."""


class Creation(NamedTuple):
    """Resumes for one account, from one caller.

    With a `claim`, the outcomes of the items and the file go to the ledger. `failed` is the worst
    verdict on items that could not be read; it counts for the file's outcome. With `queue`, a message,
    resumes that need a place in the quota wait behind others, and get no place. `resume_id` is the resume
    that a file without items duplicates.
    """

    account_id: str
    resumes: Sequence[NewResume]
    now_us: int
    claim: ClaimedFile | None = None
    failed: Verdict | None = None
    queue: str | None = None
    resume_id: str | None = None


def create(
    store: Store,
    account_id: str,
    resumes: Sequence[NewResume],
    *,
    claim: ClaimedFile | None = None,
    failed: Verdict | None = None,
    deadline_s: float = WRITE_DEADLINE_S,
) -> list[Outcome]:
    """Store resumes, and return an outcome for each, in order; Created ones are committed.

    If they do not all fit the quota, the first ones are stored. Raises NotFound for an account that
    does not exist, and what `Store.write` raises.
    """
    creation = Creation(account_id, resumes, store.clock(), claim, failed)
    (outcomes,) = create_files(store, [creation], deadline_s=deadline_s)
    if isinstance(outcomes, NotFound):
        raise outcomes
    return outcomes


async def create_async(
    store: Store, account_id: str, resume: NewResume, *, deadline_s: float = WRITE_DEADLINE_S
) -> Outcome:
    """Store one resume, as `create` does, without blocking the event loop."""
    creation = Creation(account_id, (resume,), store.clock())
    outcomes: list[Outcome] = await store.commit_async(_write(creation, deadline_s))
    return outcomes[0]


async def find_early_outcome(
    store: Store, account_id: str, once: IdempotencyKey | None
) -> Created | QuotaReached | IdempotencyMismatch | None:
    """Return the outcome that a create has whatever its resume is; None if the resume decides.

    For a caller that has no resume yet; `create` decides again. Raises NotFound for an account that
    does not exist, and what `Store.fetch_async` raises.
    """
    if once is not None:
        since = kept_since(store.clock())
        rows = await store.fetch_async(FIND_KEY, account_id=account_id, key=once.key, since=since)
        for body_sha256, resume_id in rows:
            if body_sha256 != once.body_sha256:
                return IdempotencyMismatch()
            replaced = await list_replaced_async(store, account_id, resume_id)
            return Created(resume_id, replayed=True, replaced=replaced)
    accounts_found = await store.fetch_async(_READ_ACCOUNT, account_id=account_id)
    if not accounts_found:
        raise NotFound("Account not found")
    _, count, _, max_resumes, on_newer, _ = accounts_found[0]
    # A newer version needs no place.
    if max_resumes is None or count < max_resumes or on_newer == OnNewer.REPLACE:
        return None
    return QuotaReached(max_resumes=max_resumes)


def find_duplicate(store: Store, account_id: str, digest: bytes) -> Duplicate | None:
    """Return the stored resume that was imported from this content, if any."""
    this = pk_equals(imported_digests, account_id, digest)
    rows = store.fetch(select(*imported_digests.c["resume_id", "is_older"]).where(this))
    return next((Duplicate(*row) for row in rows), None)


def create_files(
    store: Store, creations: Sequence[Creation], *, deadline_s: float = WRITE_DEADLINE_S
) -> list[list[Outcome] | NotFound]:
    """Create from many files, of any accounts, in as few transactions as possible.

    Return a result for each, in order; NotFound for an account that does not exist. Raises what
    `Store.write` raises, and may have stored a part of them then: called again, each claim has its
    first outcome.
    """
    results = store.commit([_write(creation, deadline_s) for creation in creations])
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, NotFound):
            raise result
    return results


def _write(creation: Creation, deadline_s: float) -> Write:
    return Write(
        apply_creations,
        creation,
        deadline=time.monotonic() + deadline_s,
        account_id=creation.account_id,
        apply_alone=apply_alone,
        proof=was_stored,
    )


# Inside the transaction

_OPEN_ACCOUNTS = (
    select(
        *account_usage.c["account_id", "resume_count", "last_id_us"],
        plans.c.max_resumes,
        accounts.c.on_newer,
        FORGET_KEY,
    )
    .join(accounts, accounts.c.id == account_usage.c.account_id)
    .join(plans, plans.c.name == accounts.c.plan)
    .where(accounts.c.closed_at.is_(None))
)
_READ_ACCOUNT = _OPEN_ACCOUNTS.where(pk_equals(account_usage))
LOCK_ACCOUNT = Prepared(_READ_ACCOUNT.with_for_update(of=account_usage))
# On a server alone; SQLite has no locks of rows.
_LOCK_FREE = Prepared(
    _OPEN_ACCOUNTS.where(
        account_usage.c.account_id == any_(bindparam("account_ids", type_=ARRAY(BinaryText)))
    ).with_for_update(of=account_usage, skip_locked=True)
)
UNLIMITED = 2**62
# NULL for an account that was closed, so that the comparison below is never true.
_MAX_NOW = func.coalesce(plans.c.max_resumes, literal(UNLIMITED, BigInteger))
_COUNT_NOW = account_usage.c.resume_count
_ALLOWED_NOW = (
    # An account that is over its limit may replace resumes.
    select(case((_MAX_NOW < _COUNT_NOW, _COUNT_NOW), else_=_MAX_NOW))
    .join(accounts, accounts.c.plan == plans.c.name)
    .where(accounts.c.id == bindparam("account"), accounts.c.closed_at.is_(None))
    .correlate(account_usage)
    .scalar_subquery()
)
# The condition is the quota's guarantee, whatever was read before: after waiting for the row, a
# transaction still sees the account and its plan as they were before (pitfalls S20).
TAKE_PLACES = Prepared(
    update(account_usage)
    .where(
        account_usage.c.account_id == bindparam("account"),
        _COUNT_NOW + bindparam("places") <= _ALLOWED_NOW,
    )
    .values(
        resume_count=_COUNT_NOW + bindparam("places"),
        last_id_us=bindparam("last_id"),
    )
)
ADD_DOCUMENT = Prepared(
    insert(documents).values(
        account_id=bindparam("account_id"),
        id=bindparam("id"),
        crc32=bindparam("crc32"),
        document=text_of(bindparam("document", type_=LargeBinary)),
    )
)


def was_stored(connection: Connection, creation: Creation, result: Any) -> bool | None:
    """Return whether the transaction with this result was committed; None if that is unknown: it
    created no resume, or all of them may have been deleted since.

    The random IDs of its resumes prove it. Call this after the transaction has ended.
    """
    if not isinstance(result, list):  # it was refused, or skipped
        return None
    made = [done.id for done in result if isinstance(done, Created) and not done.replayed]
    account = LOCK_ACCOUNT.run(connection, account_id=creation.account_id).fetchone()
    if not made or account is None:
        return None
    these = resumes.c.account_id == creation.account_id, resumes.c.id.in_(made)
    if connection.execute(select(resumes.c.id).where(*these).limit(1)).first() is not None:
        return True
    _, _, last_id_us, *_ = account
    return False if last_id_us < identifiers.position_of(made[-1]) else None


Result = list[Outcome] | ResumesError


def apply_creations(connection: Connection, creations: Sequence[Creation]) -> list[Result]:
    """Apply all creations of a batch inside its transaction.

    On a server, those whose account cannot be locked at once are SKIPPED.
    """
    account_ids = [*dict.fromkeys(creation.account_id for creation in creations)]
    if connection.dialect.name == "sqlite":
        locked, missing = _lock(connection, account_ids), NotFound("Account not found")
        return _apply(connection, creations, locked, missing)
    rows = _LOCK_FREE.run(connection, account_ids=account_ids)
    return _apply(connection, creations, [_Account(*row) for row in rows], SKIPPED)


def apply_alone(connection: Connection, creations: Sequence[Creation]) -> list[Result]:
    """Apply creations of one account, for whose lock this waits."""
    accounts_found = _lock(connection, [creations[0].account_id])
    return _apply(connection, creations, accounts_found, NotFound("Account not found"))


def _lock(connection: Connection, account_ids: Iterable[str]) -> list["_Account"]:
    found = (LOCK_ACCOUNT.run(connection, account_id=each).fetchone() for each in account_ids)
    return [_Account(*row) for row in found if row is not None]


@dataclass(slots=True)
class _Rows:
    """The rows to insert; tuples are in the order of the table's columns."""

    resumes: list[tuple[Any, ...]] = field(default_factory=list)
    documents: list[tuple[Any, ...]] = field(default_factory=list)
    digests: dict[bytes, Duplicate] = field(default_factory=dict)
    idempotency: dict[str, dict[str, Any]] = field(default_factory=dict)
    items: list[tuple[Any, ...]] = field(default_factory=list)
    done_files: list[tuple[Any, ...]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of older versions by the resume that replaces them; both may be of this batch."""
    newer: dict[str, str] = field(default_factory=dict)
    """The id of the resume that replaces a version."""

    def replace(self, versions: Sequence[Version], by_id: str) -> tuple[str, ...]:
        """Replace the versions; return their ids."""
        old_ids = tuple(version.id for version in versions)
        self.replaced[by_id] = old_ids
        self.newer.update(dict.fromkeys(old_ids, by_id))
        return old_ids

    def newest(self, found: Duplicate) -> Duplicate:
        """Return the resume that has replaced this one, if one has."""
        while (newer_id := self.newer.get(found.id)) is not None:
            found = Duplicate(newer_id, is_newer=True)
        return found


@dataclass(slots=True)
class _Account:
    """An account, and what decided creates change in it."""

    id: str
    resume_count: int
    last_id_us: int
    max_resumes: int | None
    on_newer: str
    forget_key: str | None
    taken: int = 0
    rows: _Rows = field(default_factory=_Rows)
    versions: dict[bytes, list[Version]] = field(default_factory=dict)


def _apply(
    connection: Connection,
    creations: Sequence[Creation],
    locked: Sequence["_Account"],
    missing: Any,
) -> list[Any]:
    """Return the results of creations in accounts that are locked; `missing` for others."""
    by_account: dict[str, list[Creation]] = {account.id: [] for account in locked}
    for creation in creations:
        by_account.setdefault(creation.account_id, []).append(creation)
    forget_key = next((account.forget_key for account in locked), None)
    prior = _find_prior(connection, {each.id: by_account[each.id] for each in locked}, forget_key)
    results = {
        account.id: iter(_decide(connection, account, by_account[account.id], prior[account.id]))
        for account in locked
    }
    _take_places(connection, [account for account in locked if account.rows.resumes])
    _insert(connection, locked)
    for account in locked:
        if account.rows.replaced:
            replace(connection, account.id, account.rows.replaced)
    nothing = repeat(missing)
    return [next(results.get(creation.account_id, nothing)) for creation in creations]


def _take_places(connection: Connection, changed: Sequence[_Account]) -> None:
    """Raise LostRace if an account was closed, or its plan lowered, while its row was waited for."""
    rows = [
        {"account": account.id, "places": account.taken, "last_id": account.last_id_us}
        for account in changed
    ]
    if connection.dialect.name == "sqlite":
        if not all(TAKE_PLACES.run(connection, **row).rowcount for row in rows):
            raise LostRace
    elif rows:
        statement = TAKE_PLACES.in_arrays(connection.dialect, columns_of(rows))
        driver(connection).run_later(*statement, expected=len(rows))


def _decide(
    connection: Connection,
    account: _Account,
    creations: Sequence[Creation],
    before: "_PriorOutcomes",
) -> list[list[Outcome]]:
    """Return the outcomes of creates, in order; `account` has what they change."""
    allowed = UNLIMITED if account.max_resumes is None else account.max_resumes
    free = allowed - account.resume_count
    taken, last_id_us, rows, versions = (
        account.taken,
        account.last_id_us,
        account.rows,
        account.versions,
    )
    is_replacing = account.on_newer == OnNewer.REPLACE
    tails = identifiers.tails(sum(len(creation.resumes) for creation in creations))
    if is_replacing:
        persons = {new.resume.person for some in creations for new in some.resumes}
        unread = filter(None, persons.difference(versions))
        versions |= find_versions(connection, account.id, unread)
    results = []
    for creation in creations:
        now = timestamp(creation.now_us)
        claim = creation.claim
        done = before.items_of(claim)
        outcomes: list[Outcome] = []
        for new in creation.resumes:
            prior = done.get(new.item)
            outcome: Outcome | None
            # First, so that no repeat brings a file of theirs back.
            if next(before.are_forgotten, False):
                outcome = PersonErased()
            elif prior:
                outcome = before.repeat(prior, new, rows)
            else:
                outcome = before.find(new, rows, creation.now_us)
            older: Sequence[Version] = ()
            if is_replacing and outcome is None and (person := new.resume.person):
                older = versions.get(person, ())
                if claim is not None and (newer := _find_newer(older, claim)):
                    outcome = Duplicate(newer.id, is_newer=True)
                    rows.digests |= dict.fromkeys(new.digests, outcome)
            if outcome is None and not older and (creation.queue is not None or taken >= free):
                outcome = QuotaReached(max_resumes=allowed, message=creation.queue)
            if outcome is None:
                if new.label is None and older:
                    # The person stays in the group.
                    new = new._replace(label=older[-1].label)
                last_id_us = max(creation.now_us, last_id_us + 1)
                outcome = Created(identifiers.resume_id(last_id_us, next(tails)))
                _add_resume(rows, creation, outcome.id, new, now, is_replacing or None)
                taken += 1
                if is_replacing and (person := new.resume.person):
                    if older:
                        taken -= len(older)
                        outcome = Created(outcome.id, replaced=rows.replace(older, outcome.id))
                    arrival = claim.claim_id if claim else outcome.id
                    versions[person] = [Version(outcome.id, arrival, label=new.label)]
            outcomes.append(outcome)
        if claim is not None:
            _add_to_ledger(rows, creation, claim, outcomes, done, now)
        results.append(outcomes)
    account.taken, account.last_id_us = taken, last_id_us
    return results


class Rehearsal:
    """Decides on resumes for an account as their create would, each as if those before were stored."""

    def __init__(self, store: Store, account_id: str) -> None:
        """Raise NotFound for an account that does not exist, and what `Store.read` raises."""
        self._store = store
        found = store.fetch(_READ_ACCOUNT, account_id=account_id)
        if not found:
            raise NotFound("Account not found")
        self._account = _Account(*found[0])
        self._made: set[str] = set()

    def create(self, resume: NewResume, *, queue: str | None = None) -> Outcome:
        """Return the outcome of the resume's create. An id that only this rehearsal has made is empty."""
        creation = Creation(self._account.id, (resume,), self._store.clock(), queue=queue)
        with self._store.read() as connection:
            account = self._account
            prior = _find_prior(connection, {account.id: [creation]}, account.forget_key)
            ((outcome,),) = _decide(connection, account, [creation], prior[account.id])
        self._account.rows.resumes.clear()
        self._account.rows.documents.clear()
        if isinstance(outcome, Created):
            self._made.add(outcome.id)
            return Created("", replaced=tuple({*outcome.replaced} - self._made))
        if isinstance(outcome, Duplicate) and outcome.id in self._made:
            return Duplicate("", outcome.is_newer)
        return outcome


def _find_newer(versions: Iterable[Version], claim: ClaimedFile) -> Version | None:
    return next((version for version in versions if version.is_after(claim.claim_id)), None)


# Prior outcomes

RESUMES_OF_CLAIMS = Prepared(
    select(
        imported_files.c.claim_id,
        literal_column("0"),
        imported_files.c.outcome,
        imported_files.c.resume_id,
    ).where(
        params_equal(imported_files.c.account_id),
        imported_files.c.claim_id.in_(VALUES),
        imported_files.c.resume_id.is_not(None),
    )
)
ITEMS_OF_CLAIMS = Prepared(
    select(
        imported_items.c.claim_id,
        imported_items.c.item,
        imported_items.c.outcome,
        imported_items.c.resume_id,
    ).where(params_equal(imported_items.c.account_id), imported_items.c.claim_id.in_(VALUES))
)
RESUMES_OF_DIGESTS = Prepared(
    select(*imported_digests.c["digest", "resume_id", "is_older"]).where(
        params_equal(imported_digests.c.account_id), imported_digests.c.digest.in_(VALUES)
    )
)


@dataclass(slots=True)
class _PriorOutcomes:
    """The prior outcomes of one account's requests in a batch."""

    items: dict[str, dict[int, Outcome]] = field(default_factory=dict)
    digests: dict[bytes, Duplicate] = field(default_factory=dict)
    keys: dict[tuple[str, int], Sequence[Any]] = field(default_factory=dict)
    """The stored row of each Idempotency-Key, by key and the time of its request."""
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    are_forgotten: Iterator[bool] = field(default_factory=lambda: iter(()))
    """Whether the person of each resume was erased, in order; empty if none ever was."""

    def items_of(self, claim: ClaimedFile | None) -> dict[int, Outcome]:
        """Return the prior outcomes of this claim's items, by item: a claim is imported once."""
        return {} if claim is None else self.items.get(claim.claim_id, {})

    def repeat(self, outcome: Outcome, new: NewResume, rows: _Rows) -> Outcome:
        """Return a claim's prior outcome on this resume with what the ledger does not say."""
        if isinstance(outcome, Created):
            return self._created(outcome.id, rows)
        stored = None if new.digest is None else self.digests.get(new.digest)
        return rows.newest(stored) if stored is not None and stored.is_newer else outcome

    def _created(self, resume_id: str, rows: _Rows) -> Created:
        mine = rows.replaced.get(resume_id)
        return Created(resume_id, True, mine or self.replaced.get(resume_id, ()))

    def find(self, new: NewResume, rows: _Rows, now_us: int) -> Outcome | None:
        """Return the outcome of an earlier call or an earlier resume of this batch; None if new."""
        if (given := new.idempotency) is not None:
            mine = rows.idempotency.get(given.key)
            found = (
                (mine["body_sha256"], mine["resume_id"])
                if mine
                else self.keys.get((given.key, now_us))
            )
            if found is not None:
                is_same = found[0] == given.body_sha256
                return self._created(found[1], rows) if is_same else IdempotencyMismatch()
        for digest in new.digests:
            stored = rows.digests.get(digest) or self.digests.get(digest)
            if stored is not None:
                if new.original is not None and new.original not in self.digests:
                    rows.digests[new.original] = stored  # the analyzer wrote the same before
                return rows.newest(stored)
        return None


def _find_prior(
    connection: Connection, by_account: Mapping[str, Sequence[Creation]], forget_key: str | None
) -> dict[str, _PriorOutcomes]:
    """Return the prior outcomes of creations by account."""
    prior = {account_id: _PriorOutcomes() for account_id in by_account}
    # Claims of files of one resume, claims of bundles, and digests.
    files: dict[str, list[str]] = {account_id: [] for account_id in by_account}
    bundles: dict[str, list[str]] = {account_id: [] for account_id in by_account}
    digests: dict[str, list[bytes]] = {account_id: [] for account_id in by_account}
    keys: list[dict[str, Any]] = []
    times: list[int] = []
    for account_id, creations in by_account.items():
        for creation in creations:
            if creation.claim is not None and creation.resumes:
                claims = bundles if creation.resumes[0].item else files
                claims[account_id].append(creation.claim.claim_id)
            for new in creation.resumes:
                if of_new := new.digests:
                    digests[account_id].extend(of_new)
                if (given := new.idempotency) is not None:
                    since = kept_since(creation.now_us)
                    keys.append({"account_id": account_id, "key": given.key, "since": since})
                    times.append(creation.now_us)
    repeated: dict[str, list[str]] = {}
    for statement, wanted in ((RESUMES_OF_CLAIMS, files), (ITEMS_OF_CLAIMS, bundles)):
        for account_id, row in _look_up(connection, statement, wanted):
            claim_id, item, outcome, resume_id = row
            done: Outcome = Duplicate(resume_id)
            if outcome != FileOutcome.DUPLICATE:
                done = Created(resume_id, replayed=True)
                repeated.setdefault(account_id, []).append(resume_id)
            prior[account_id].items.setdefault(claim_id, {})[item] = done
    for account_id, row in _look_up(connection, RESUMES_OF_DIGESTS, digests):
        digest, resume_id, is_older = row
        prior[account_id].digests[digest] = Duplicate(resume_id, is_newer=bool(is_older))
    for used, now_us, rows in zip(keys, times, FIND_KEY.run_each(connection, keys), strict=True):
        for row in rows:
            prior[used["account_id"]].keys[used["key"], now_us] = row
            repeated.setdefault(used["account_id"], []).append(row[1])
    for account_id, resume_ids in repeated.items():
        prior[account_id].replaced = find_replaced(connection, account_id, resume_ids)
    if forget_key:
        parsed = [
            (account_id, new.resume)
            for account_id, creations in by_account.items()
            for creation in creations
            for new in creation.resumes
        ]
        subjects = ((each, subjects_of(new.document, new.name)) for each, new in parsed)
        are_forgotten = iter(find_forgotten(connection, forget_key, subjects))
        for account_id, some in groupby(parsed, key=lambda each: each[0]):
            prior[account_id].are_forgotten = iter([next(are_forgotten) for _ in some])
    return prior


def _look_up(
    connection: Connection, statement: Prepared, wanted: Mapping[str, Iterable[Any]]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the rows that are found for values by account, each with its account."""
    rows = [
        {"account_id": account_id, **values}
        for account_id, some in wanted.items()
        for values in chunks(some)
    ]
    for given, found in zip(rows, statement.run_each(connection, rows), strict=True):
        for row in found:
            yield given["account_id"], row


def _add_resume(
    rows: _Rows,
    creation: Creation,
    resume_id: str,
    new: NewResume,
    now: str,
    is_person_indexed: bool | None,
) -> None:
    parsed, account_id = new.resume, creation.account_id
    claim_id = creation.claim and creation.claim.claim_id
    rows.resumes.append(
        (
            account_id, resume_id, parsed.title, parsed.name, parsed.filename, now, now, new.label,
            parsed.person, claim_id, parsed.first_month, is_person_indexed,
        )
    )  # fmt: skip
    document = parsed.document
    rows.documents.append((account_id, resume_id, crc32(document), document))
    if digests := new.digests:
        rows.digests |= dict.fromkeys(digests, Duplicate(resume_id))
    if new.idempotency is not None:
        rows.idempotency[new.idempotency.key] = {
            "account_id": account_id,
            "key": new.idempotency.key,
            "body_sha256": new.idempotency.body_sha256,
            "resume_id": resume_id,
            "created_at": now,
        }


def _add_to_ledger(
    rows: _Rows,
    creation: Creation,
    claim: ClaimedFile,
    outcomes: Iterable[Outcome],
    done: dict[int, Outcome],
    now: str,
) -> None:
    verdicts = [] if creation.failed is None else [creation.failed]
    resume_id = creation.resume_id
    for new, outcome in zip(creation.resumes, outcomes, strict=True):
        verdict = _verdict(outcome)
        verdicts.append(verdict)
        if not isinstance(outcome, Created | Duplicate):
            continue
        if new.item == 0:
            resume_id = outcome.id
        elif new.item not in done:
            rows.items.append(
                (creation.account_id, claim.claim_id, new.item, verdict.outcome.value, outcome.id)
            )
    worst = min(verdicts, key=lambda verdict: WORST_FIRST.index(verdict.outcome))
    if worst.reason == ErrorCode.FORGOTTEN:
        claim = claim._replace(name=nameless(claim.name))
    if any(isinstance(outcome, PersonErased) for outcome in outcomes):
        claim = claim._replace(source=b"", items=None)
    if worst is _DONE and claim.items is None:
        row = import_ledger.done_row(creation.account_id, claim, resume_id, now=now)
        rows.done_files.append(row)
    else:
        if worst is not _DONE:
            # Only imported resumes have warnings.
            claim = claim._replace(items=import_ledger.find_analysis(claim.items))
        rows.files.append(
            import_ledger.file_values(
                creation.account_id, claim, worst, now=now, resume_id=resume_id
            )
        )


_DONE = Verdict(FileOutcome.DONE)


def _verdict(outcome: Outcome) -> Verdict:
    match outcome:
        case Created():
            return _DONE
        case Duplicate():
            return Verdict(FileOutcome.DUPLICATE, "duplicate", outcome.message)
        case QuotaReached():
            return Verdict(FileOutcome.HELD, outcome.code.value, outcome.message)
        case IdempotencyMismatch() | PersonErased():
            return Verdict(FileOutcome.FAILED, outcome.code.value, outcome.message)


def _insert(connection: Connection, changed: Sequence[_Account]) -> None:
    """Insert the rows of all accounts."""
    rows = [account.rows for account in changed]
    insert_into(resumes).run_rows(connection, _all(some.resumes for some in rows))
    ADD_DOCUMENT.run_rows(connection, _all(some.documents for some in rows))
    digests = [
        (account.id, digest, stored.id, stored.is_newer)
        for account in changed
        for digest, stored in account.rows.digests.items()
    ]
    insert_into(imported_digests).run_rows(connection, digests)
    ADD_KEY.run_many(connection, _all(some.idempotency.values() for some in rows))
    insert_into(imported_items).run_rows(connection, _all(some.items for some in rows))
    import_ledger.ADD_DONE_FILE.run_rows(connection, _all(some.done_files for some in rows))
    import_ledger.add_files(connection, _all(some.files for some in rows))


def _all(groups: Iterable[Iterable[Any]]) -> list[Any]:
    return [*chain.from_iterable(groups)]
