"""The create path: HTTP, the importer and the command line all store new resumes this way.

    bytes -> analyzer.parse -> create(account, resumes) -> outcomes

One transaction performs these steps in this order: lock the account; reject the resumes of erased
people; look up earlier outcomes (an imported item of a claim, a used Idempotency-Key, stored
content), so that a repeated request gets its first answer even if the account is full; apply the
quota, first come, first served; assign IDs that increase in commit order; insert the resumes and
the ledger's rows.
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
    StoreUnavailable,
)
from resumes.store import identifiers, import_ledger
from resumes.store.forgotten import FORGET_KEY, find_forgotten, subjects_of
from resumes.store.idempotency import ADD_KEY, FIND_KEY, kept_since
from resumes.store.import_ledger import WORST_FIRST, ClaimedFile, FileOutcome, Verdict, nameless
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
    """A client's Idempotency-Key, and the SHA-256 of the request body that was sent with it."""

    key: str
    body_sha256: bytes


class NewResume(NamedTuple):
    """A parsed resume to store.

    `digest` is the SHA-256 of the JSON value's bytes. With a digest, content that is already stored
    is a duplicate, and the stored resume keeps its label. `original` is the SHA-256 of the file
    that was analyzed. `item` is the number of the resume in the bundle, or 0 if the file is not a
    bundle.
    """

    resume: ParsedResume
    digest: bytes | None = None
    item: int = 0
    idempotency: IdempotencyKey | None = None
    label: str | None = None
    original: bytes | None = None

    @property
    def digests(self) -> Sequence[bytes]:
        """Return the digests that identify its content."""
        if self.original is None:
            return () if self.digest is None else (self.digest,)
        return [digest for digest in (self.original, self.digest) if digest is not None]


class Created(NamedTuple):
    """The outcome of a resume that is stored.

    `replayed` means that an earlier call stored it and this call repeats that one. `replaced`
    contains the IDs of the older versions that the resume replaced.
    """

    id: str
    replayed: bool = False
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same content, or a newer version of it if `is_newer`, is already stored under this ID."""

    id: str
    is_newer: bool = False

    @property
    def message(self) -> str:
        """Return a message that describes the outcome."""
        what = "A newer version of this resume" if self.is_newer else "The same content"
        return f"{what} is already stored as {self.id}"


Outcome = Created | Duplicate | QuotaReached | IdempotencyMismatch | PersonErased
"""The outcome for one resume. Errors are values because they do not stop the rest of the batch."""


class Creation(NamedTuple):
    """Resumes that one caller adds to one account.

    With a `claim`, the outcomes of the items and the file are recorded in the ledger. `failed` is
    the worst verdict on items that could not be read; it affects the file's outcome. `queue` is a
    message: if it is set, resumes that count against the quota are held with it, behind files that
    already wait. If `resumes` is empty, `resume_id` is the stored resume that the file duplicates.
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
    """Store the resumes, and return their outcomes in order; Created resumes are committed.

    If the quota does not allow all of them, only the first ones are stored. Raises NotFound if the
    account does not exist, and the same errors as `Store.write`.
    """
    creation = Creation(account_id, resumes, store.clock(), claim, failed)
    (outcomes,) = create_files(store, [creation], deadline_s=deadline_s)
    if isinstance(outcomes, ResumesError):
        raise outcomes
    return outcomes


async def create_async(
    store: Store, account_id: str, resume: NewResume, *, deadline_s: float = WRITE_DEADLINE_S
) -> Outcome:
    """Store one resume like `create`, but without blocking the event loop."""
    creation = Creation(account_id, (resume,), store.clock())
    outcomes: list[Outcome] = await store.commit_async(_write(creation, deadline_s))
    return outcomes[0]


async def find_early_outcome(
    store: Store, account_id: str, once: IdempotencyKey | None
) -> Created | QuotaReached | IdempotencyMismatch | None:
    """Return the outcome of a create request if it is the same for every resume, otherwise None.

    A caller can use this before it has parsed the resume; `create` makes the final decision. Raises
    NotFound if the account does not exist, and the same errors as `Store.fetch_async`.
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
    # A newer version replaces an older one, so it may fit even if the account is full.
    if max_resumes is None or count < max_resumes or on_newer == OnNewer.REPLACE:
        return None
    return QuotaReached(max_resumes=max_resumes)


def find_duplicate(store: Store, account_id: str, digest: bytes) -> Duplicate | None:
    """Return the resume that was imported with this digest, if it is still stored."""
    this = pk_equals(imported_digests, account_id, digest)
    rows = store.fetch(select(*imported_digests.c["resume_id", "is_older"]).where(this))
    return next((Duplicate(*row) for row in rows), None)


def create_files(
    store: Store, creations: Sequence[Creation], *, deadline_s: float = WRITE_DEADLINE_S
) -> list[list[Outcome] | NotFound | StoreUnavailable]:
    """Store the resumes of many files, of any accounts, in as few transactions as possible.

    Return one result per creation, in order: NotFound if its account does not exist,
    StoreUnavailable if its shard does not answer. Raises the same errors as `Store.write`; some
    resumes may be stored by then, but if the call is repeated, each claim gets its first outcome
    again.
    """
    results = store.commit([_write(creation, deadline_s) for creation in creations])
    returned = (NotFound, StoreUnavailable) if store.is_sharded else NotFound
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, returned):
            raise result
    return results


def _write(creation: Creation, deadline_s: float) -> Write:
    return Write(
        apply_creations,
        creation,
        deadline=time.monotonic() + deadline_s,
        account_id=creation.account_id,
        apply_shared=apply_shared,
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
# Only for PostgreSQL, because SQLite has no row locks.
_LOCK_FREE = Prepared(
    _OPEN_ACCOUNTS.where(
        account_usage.c.account_id == any_(bindparam("account_ids", type_=ARRAY(BinaryText)))
    ).with_for_update(of=account_usage, skip_locked=True)
)
UNLIMITED = 2**62
_MAX_NOW = func.coalesce(plans.c.max_resumes, literal(UNLIMITED, BigInteger))
_COUNT_NOW = account_usage.c.resume_count
# NULL for a closed account, so that the condition of TAKE_PLACES is never true.
_ALLOWED_NOW = (
    # An account that is over its limit may still replace resumes.
    select(case((_MAX_NOW < _COUNT_NOW, _COUNT_NOW), else_=_MAX_NOW))
    .join(accounts, accounts.c.plan == plans.c.name)
    .where(accounts.c.id == bindparam("account"), accounts.c.closed_at.is_(None))
    .correlate(account_usage)
    .scalar_subquery()
)
# This condition enforces the quota. The values that LOCK_ACCOUNT read may be outdated: if it waited
# for the row, it returned the account and the plan as they were before the wait (pitfalls S20).
TAKE_PLACES = Prepared(
    update(account_usage)
    .where(
        account_usage.c.account_id == bindparam("account"),
        _COUNT_NOW + bindparam("places") <= _ALLOWED_NOW,
    )
    .values(resume_count=_COUNT_NOW + bindparam("places"), last_id_us=bindparam("last_id"))
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
    """Return whether the transaction that had this result was committed, or None if unknown.

    The random IDs of the new resumes prove it. It is unknown if there are none, or if all of them
    may have been deleted since. Call this after the transaction has ended.
    """
    if not isinstance(result, list):  # an error, or SKIPPED
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

    On a server, they belong to one account, and this waits for the account's lock.
    """
    account_ids = dict.fromkeys(creation.account_id for creation in creations)
    found = (LOCK_ACCOUNT.run(connection, account_id=each).fetchone() for each in account_ids)
    locked = [_Account(*row) for row in found if row is not None]
    return _apply(connection, creations, locked, NotFound("Account not found"))


def apply_shared(connection: Connection, creations: Sequence[Creation]) -> list[Result]:
    """Apply creations of several accounts in one transaction of a server.

    Creations whose account cannot be locked immediately are SKIPPED.
    """
    account_ids = [*dict.fromkeys(creation.account_id for creation in creations)]
    rows = _LOCK_FREE.run(connection, account_ids=account_ids)
    return _apply(connection, creations, [_Account(*row) for row in rows], SKIPPED)


@dataclass(slots=True)
class _Rows:
    """The rows to insert. The values in a tuple have the order of the table's columns."""

    resumes: list[tuple[Any, ...]] = field(default_factory=list)
    documents: list[tuple[Any, ...]] = field(default_factory=list)
    digests: dict[bytes, Duplicate] = field(default_factory=dict)
    idempotency: dict[str, dict[str, Any]] = field(default_factory=dict)
    items: list[tuple[Any, ...]] = field(default_factory=list)
    done_files: list[tuple[Any, ...]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The IDs of replaced versions by the replacing resume's ID; both may belong to this batch."""
    newer: dict[str, str] = field(default_factory=dict)
    """The ID of the replacing resume, by the ID of the version that it replaces."""

    def replace(self, versions: Sequence[Version], by_id: str) -> tuple[str, ...]:
        """Record that the resume `by_id` replaces the versions, and return their IDs."""
        old_ids = tuple(version.id for version in versions)
        self.replaced[by_id] = old_ids
        self.newer.update(dict.fromkeys(old_ids, by_id))
        return old_ids

    def newest(self, found: Duplicate) -> Duplicate:
        """Return the newest resume that replaced `found` in this batch, or `found` if none did."""
        while (newer_id := self.newer.get(found.id)) is not None:
            found = Duplicate(newer_id, is_newer=True)
        return found


@dataclass(slots=True)
class _Account:
    """An account, and the changes to it that are already decided."""

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
    """Apply the creations in locked accounts; all other creations have the result `missing`."""
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
    """Add the new resumes to the accounts' counters.

    Raises LostRace if an account was closed, or its limit lowered, while this waited for its row.
    """
    rows = [
        {"account": account.id, "places": account.taken, "last_id": account.last_id_us}
        for account in changed
    ]
    dialect = connection.dialect
    if dialect.name == "sqlite":
        if not all(TAKE_PLACES.run(connection, **row).rowcount for row in rows):
            raise LostRace
    elif len(rows) == 1:
        driver(connection).run_later(*TAKE_PLACES.bound(dialect, rows[0]), expected=1)
    elif rows:
        statement = TAKE_PLACES.in_arrays(dialect, columns_of(rows))
        driver(connection).run_later(*statement, expected=len(rows))


def _decide(
    connection: Connection,
    account: _Account,
    creations: Sequence[Creation],
    before: "_PriorOutcomes",
) -> list[list[Outcome]]:
    """Return the outcomes of the creations in order, and record their changes in `account`."""
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
            # Checked first, so that a repeated import cannot bring back an erased person's file.
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
            if outcome is None and not older:
                outcome = hold(creation, free - taken, allowed)
            if outcome is None:
                if new.label is None and older:
                    # Without a label of its own, a newer version stays in the older one's group.
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


def hold(creation: Creation, free_places: int, allowed: int) -> QuotaReached | None:
    """Return why a resume that counts against the quota must be held, or None if it need not be.

    The reason is that earlier files of the account are held, or that the quota is reached.
    """
    if creation.queue is None and free_places > 0:
        return None
    return QuotaReached(max_resumes=allowed, message=creation.queue)


class Rehearsal:
    """Predicts the outcomes of creating resumes, each as if the ones before had been stored."""

    def __init__(self, store: Store, account_id: str) -> None:
        """Raise NotFound if the account does not exist, and the same errors as `Store.read`."""
        self._store = store
        found = store.fetch(_READ_ACCOUNT, account_id=account_id)
        if not found:
            raise NotFound("Account not found")
        self._account = _Account(*found[0])
        self._made: set[str] = set()

    def create(self, resume: NewResume, *, queue: str | None = None) -> Outcome:
        """Return the outcome that creating this resume would have.

        Its ID is empty if the resume exists only in this rehearsal.
        """
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
    """The prior outcomes that are relevant to one account's creations in a batch."""

    items: dict[str, dict[int, Outcome]] = field(default_factory=dict)
    digests: dict[bytes, Duplicate] = field(default_factory=dict)
    keys: dict[tuple[str, int], Sequence[Any]] = field(default_factory=dict)
    """The stored row of each Idempotency-Key, by the key and the time of the new request."""
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    are_forgotten: Iterator[bool] = field(default_factory=lambda: iter(()))
    """Whether each resume's person was erased, in order. Empty if no person was ever erased."""

    def items_of(self, claim: ClaimedFile | None) -> dict[int, Outcome]:
        """Return the claim's prior outcomes by item number: a claim is imported only once."""
        return {} if claim is None else self.items.get(claim.claim_id, {})

    def repeat(self, outcome: Outcome, new: NewResume, rows: _Rows) -> Outcome:
        """Return a claim's prior outcome for this resume, with details that the ledger lacks."""
        if isinstance(outcome, Created):
            return self._created(outcome.id, rows)
        stored = None if new.digest is None else self.digests.get(new.digest)
        return rows.newest(stored) if stored is not None and stored.is_newer else outcome

    def _created(self, resume_id: str, rows: _Rows) -> Created:
        mine = rows.replaced.get(resume_id)
        return Created(resume_id, True, mine or self.replaced.get(resume_id, ()))

    def find(self, new: NewResume, rows: _Rows, now_us: int) -> Outcome | None:
        """Return the outcome if an earlier call or resume of the batch determines it, else None."""
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
                    rows.digests[new.original] = stored  # another file had the same resume
                return rows.newest(stored)
        return None


def _find_prior(
    connection: Connection, by_account: Mapping[str, Sequence[Creation]], forget_key: str | None
) -> dict[str, _PriorOutcomes]:
    """Return the prior outcomes for these creations, by account."""
    prior = {account_id: _PriorOutcomes() for account_id in by_account}
    # The claims of files with a single resume, the claims of bundles, and the digests, by account.
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
    """Look up the values of each account, and yield each row found with its account's ID."""
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
