"""What the service promises, as dictionaries: accounts with what they hold, plans and keys.

The model is asked what a request comes to, and told what was done.
"""

import copy
import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from resumes.clock import timestamp
from resumes.store import Store, stored_resumes
from resumes.store.entry import Entry
from tests.stateful.requests import Answer, Body
from tests.support.store.builders import entries_of

ONCE_FOR = timedelta(hours=24)
"""How long an Idempotency-Key is remembered."""

ONCE_FOR_US = ONCE_FOR // timedelta(microseconds=1)

BAD_KEY = "Invalid API key"
NO_LISTING = "API access requires a business plan"
OTHER_BODY = "Idempotency-Key was already used with a different body"
NOT_FOUND = "Resume not found"
NO_HEADER = "Missing required field: header (must be an object)"


@dataclass(slots=True)
class Plan:
    """How many resumes an account may hold, None without a limit, and whether it may list them."""

    most: int | None
    lists: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A resume that is stored, and the times between which it was created."""

    body: Body
    since_us: int
    until_us: int
    is_updated: bool = False
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Once:
    """What an Idempotency-Key was used for."""

    raw: bytes
    resume_id: str
    at_us: int
    for_us: float = ONCE_FOR_US
    """How long it is remembered, by the clock of the installation."""

    may_be_removed: bool = False
    """Whether it had expired at some time. If the clock is set back, nobody knows whether it is there."""

    def is_expired(self, now_us: int) -> bool:
        """Whether the key is free again."""
        return now_us - self.at_us >= self.for_us


@dataclass(eq=False, slots=True)
class Account:
    """An account from its creation to its end; one of the same name later is another."""

    name: str
    id: str
    plan: str
    is_open: bool = True
    former: list[str] = field(default_factory=list)
    """Names that it had, whose folders are its own until another account takes them."""

    resumes: dict[str, Stored] = field(default_factory=dict)
    """By id, in the order in which they were created."""

    last_id: str = ""
    once: dict[str, Once] = field(default_factory=dict)
    contents: dict[int, str] = field(default_factory=dict)
    """Of imported resumes that are stored: their ids, by the numbers of their bodies."""

    imported: dict[str, Body] = field(default_factory=dict)
    """Every resume that was made of a file, also those that are gone."""

    unexplained: set[str] = field(default_factory=set)
    """Those of them whose file has not come to its end yet."""

    history: set[str] = field(default_factory=set)
    """The claims that it had in the file that it came from: of files of another account."""

    returned: set[str] = field(default_factory=set)
    """Resumes that came back with an older state of the account: who had gone on past them before
    does not see them."""

    def add(self, resume_id: str, stored: Stored, *, is_imported: bool = False) -> None:
        """The resume was created, after all others of the account."""
        assert resume_id > self.last_id, f"{resume_id} comes after {self.last_id}"
        self.last_id = resume_id
        self.resumes[resume_id] = stored
        if is_imported:
            self.contents[stored.body.number] = resume_id
            self.imported[resume_id] = stored.body
            self.unexplained.add(resume_id)

    def update(self, resume_id: str, body: Body) -> None:
        """The resume has this content, in its place; that of its file is still known as its own."""
        stored = self.resumes[resume_id]
        self.resumes[resume_id] = dataclasses.replace(stored, body=body, is_updated=True)

    def label(self, resume_id: str, label: str | None) -> None:
        """The resume has this label, and is as it was otherwise."""
        self.resumes[resume_id] = dataclasses.replace(self.resumes[resume_id], label=label)

    def with_label(self, label: str) -> list[str]:
        """The ids of the resumes that have the label, in their order."""
        return [id_ for id_, stored in self.resumes.items() if stored.label == label]

    def remove(self, resume_id: str) -> None:
        """The resume is gone; its content may be imported again."""
        del self.resumes[resume_id]
        self.contents = {number: id_ for number, id_ in self.contents.items() if id_ != resume_id}

    def after(self, cursor: str, limit: int) -> tuple[list[str], str | None]:
        """The ids of the page behind a cursor, and the cursor of the next one."""
        ids = [one for one in self.resumes if one > cursor]
        return ids[:limit], ids[limit - 1] if len(ids) > limit else None

    def nth(self, number: int) -> str:
        """The id of one of its resumes; without any one that no resume has."""
        ids = list(self.resumes)
        return ids[number % len(ids)] if ids else "0" * 24


@dataclass(eq=False, slots=True)
class Key:
    """A key; None as `expires_us` is never."""

    account: Account
    id: str
    secret: str
    expires_us: int | None = None
    is_revoked: bool = False
    successor: "Key | None" = None
    """The key that it was rotated to."""

    def counts(self, now_us: int) -> bool:
        """Whether a request with it is let in."""
        is_expired = self.expires_us is not None and now_us >= self.expires_us
        return self.account.is_open and not self.is_revoked and not is_expired

    def can_be_rotated(self, now_us: int) -> bool:
        """Whether it counts, and none counts that it was rotated to."""
        is_rotated = self.successor is not None and self.successor.counts(now_us)
        return self.counts(now_us) and not is_rotated

    def put_back(self, was: "Key", account: Account) -> None:
        """It is as it was, in this account."""
        self.account, self.expires_us, self.is_revoked = account, was.expires_us, was.is_revoked
        self.successor = was.successor


@dataclass(eq=False, slots=True)
class Chain:
    """A client that follows the cursor, and after the last page goes on with the last id it saw."""

    account: Account
    limit: int | None
    cursor: str
    first: str = ""
    """Where it began."""

    seen: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Export:
    """An account as a file, with what it was when that was written."""

    path: Path
    account: Account
    plan: str
    last_id: str
    resumes: dict[str, Stored]
    contents: dict[int, str]
    imported: dict[str, Body]
    keys: dict[Key, Key]
    """The keys that came along, as each was."""

    def as_account(self, name: str, account_id: str) -> Account:
        """The account that comes of it."""
        return Account(
            name,
            account_id,
            self.plan,
            resumes=dict(self.resumes),
            last_id=self.last_id,
            contents=dict(self.contents),
            imported=dict(self.imported),
            returned=set(self.resumes),
        )


@dataclass(frozen=True, slots=True)
class Backup:
    """A store of one moment in a file: plans, accounts and keys as they were, by who they are."""

    path: Path
    plans: dict[str, Plan]
    accounts: dict[Account, Account]
    keys: dict[Key, Key]

    def put_back(self, account: Account, last_id: str) -> None:
        """The account is as it was, but for its ids, which go on above this one."""
        was = self.accounts[account]
        account.plan, account.is_open = was.plan, was.is_open
        account.name, account.former = was.name, list(was.former)
        account.resumes = dict(was.resumes)
        account.last_id = max(was.last_id, last_id)
        account.once = dict(was.once)
        account.contents = dict(was.contents)
        account.imported = dict(was.imported)
        account.unexplained = set(was.unexplained)
        account.returned |= set(was.resumes)

    def put_back_key(self, key: Key) -> None:
        """The key is as it was."""
        was = self.keys[key]
        key.put_back(was, was.account)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a request must come to; the id of a resume is None where it is a new one."""

    status: int
    error: str | None = None
    resume_id: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether a resume is created."""
        return self.status == 201 and self.resume_id is None


BAD = Expected(401, BAD_KEY)


def _copied(account: Account) -> Account:
    names = [field.name for field in dataclasses.fields(account)]
    return Account(**{name: copy.copy(getattr(account, name)) for name in names})


@dataclass(slots=True)
class Model:
    """The whole service. `accounts` has those that are open or being deleted, by name."""

    plans: dict[str, Plan] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)

    def note_expired(self, now_us: int) -> None:
        """The service may have removed the Idempotency-Keys that have expired by now, or not yet."""
        for account in self.accounts.values():
            for once, used in account.once.items():
                if used.is_expired(now_us):
                    account.once[once] = dataclasses.replace(used, may_be_removed=True)

    def is_certain(self, key: Key, once: str | None, now_us: int) -> bool:
        """Whether it is known if a create with this Idempotency-Key is a repeat."""
        used = None if once is None else key.account.once.get(once)
        return used is None or used.is_expired(now_us) or not used.may_be_removed

    def back_up(self, path: Path, keys: Iterable[Key], now_us: int) -> Backup:
        """Everything as it is now."""
        self.note_expired(now_us)
        return Backup(
            path,
            dict(self.plans),
            {account: _copied(account) for account in self.accounts.values()},
            {key: copy.copy(key) for key in keys},
        )

    def plan_of(self, account: Account) -> Plan:
        """The plan that the account is on."""
        return self.plans[account.plan]

    def free_places(self, account: Account) -> int | None:
        """How many more resumes the account may have; None without a limit."""
        most = self.plan_of(account).most
        return None if most is None else max(0, most - len(account.resumes))

    def find_open(self, name: str) -> Account | None:
        """The account of this name, unless there is none or it is being deleted."""
        account = self.accounts.get(name)
        return account if account is not None and account.is_open else None

    def owner_of(self, folder: str) -> Account | None:
        """Whose the files in the folder of this name are; None if nobody's."""
        named = self.find_open(folder)
        had = (one for one in self.accounts.values() if one.is_open and folder in one.former)
        return named or next(had, None)

    def take_name(self, name: str) -> None:
        """No account has had the name."""
        for account in self.accounts.values():
            account.former = [former for former in account.former if former != name]

    def rename(self, account: Account, new: str) -> None:
        """The account has another name, and had its present one."""
        self.take_name(new)
        del self.accounts[account.name]
        account.former.append(account.name)
        account.name = new
        self.accounts[new] = account

    def creates(self, key: Key, body: Body, once: str | None, now_us: int) -> Expected:
        """What a create comes to."""
        if not key.counts(now_us):
            return BAD
        if body.view is None:
            return Expected(400, NO_HEADER)
        used = None if once is None else key.account.once.get(once)
        if used is not None and not used.is_expired(now_us):
            if used.raw != body.raw:
                return Expected(422, OTHER_BODY)
            return Expected(201, resume_id=used.resume_id)
        if self.free_places(key.account) == 0:
            most = self.plan_of(key.account).most
            noun = "resume" if most == 1 else "resumes"
            told = f"Maximum resume limit reached. Your plan allows {most} {noun}"
            return Expected(403, told)
        return Expected(201)

    def lists(self, key: Key, now_us: int) -> Expected:
        """What listing comes to."""
        if not key.counts(now_us):
            return BAD
        if not self.plan_of(key.account).lists:
            return Expected(403, NO_LISTING)
        return Expected(200)

    def shows(self, key: Key, resume_id: str, now_us: int) -> Expected:
        """What showing one resume comes to."""
        listing = self.lists(key, now_us)
        if listing.status == 200 and resume_id not in key.account.resumes:
            return Expected(404, NOT_FOUND)
        return listing

    def updates(self, key: Key, resume_id: str, body: Body, now_us: int) -> Expected:
        """What updating one resume comes to, on any plan and in a full account."""
        if not key.counts(now_us):
            return BAD
        if body.view is None:
            return Expected(400, NO_HEADER)
        return self.deletes(key, resume_id, now_us)

    def deletes(self, key: Key, resume_id: str, now_us: int) -> Expected:
        """What deleting one resume comes to, on any plan."""
        if not key.counts(now_us):
            return BAD
        if resume_id not in key.account.resumes:
            return Expected(404, NOT_FOUND)
        return Expected(200)


def list_entries(store: Store, account: Account) -> list[Entry]:
    """All resumes of the account, in the order of their ids."""
    read = partial(stored_resumes.list_page, store, account.id, limit=stored_resumes.MAX_LIMIT)
    return [*entries_of(read)]


def check(answer: Answer, expected: Expected) -> None:
    """The answer has the status, and the error if it is one."""
    told = (answer.status, answer.json.get("error"))
    assert told == (expected.status, expected.error), f"{told}, not {expected}"
    if expected.error is not None:
        check_shape(answer)


def check_shape(answer: Answer) -> None:
    """An error has the shape of all errors."""
    assert answer.json["error"]
    assert answer.json["status"] == answer.status
    assert answer.json["requestId"] == answer.headers["x-request-id"]
    assert answer.status != 401 or answer.headers["www-authenticate"] == "Bearer"


def check_page(answer: Answer, account: Account, ids: list[str], cursor: str | None) -> None:
    """The page lists these resumes, in this order, and the cursor leads on."""
    entries = answer.json["resumes"]
    assert [entry["id"] for entry in entries] == ids
    assert answer.json["pagination"]["cursor"] == cursor
    for entry in entries:
        stored = account.resumes[entry["id"]]
        labelled = set() if stored.label is None else {"label"}
        assert entry.keys() == {"id", "title", "filename", "createdAt", "updatedAt"} | labelled
        assert entry.get("label") == stored.label
        assert entry["title"] == stored.body.title
        assert entry["filename"] == f"{''.join(stored.body.name.split())}Resume.pdf"
        assert timestamp(stored.since_us) <= entry["createdAt"] <= timestamp(stored.until_us)
        assert (entry["updatedAt"] > entry["createdAt"]) == stored.is_updated


def check_view(told: object, account: Account, resume_id: str) -> None:
    """What is shown is what was sent, with sections in their order."""
    view = account.resumes[resume_id].body.view
    if view is not None:
        assert isinstance(told, dict)
        assert told == view
        assert json.dumps(told["sections"]) == json.dumps(view["sections"])
