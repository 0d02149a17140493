"""Versions of a person's resume: a create replaces the older ones in an account that says so."""

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resumes import analyzer
from resumes.errors import Conflict, NotFound, QuotaReached
from resumes.store import (
    Store,
    accounts,
    creation,
    identifiers,
    plans,
    search,
    stored_resumes,
    versions,
)
from resumes.store.accounts import AccountInfo
from resumes.store.creation import (
    Created,
    Creation,
    Duplicate,
    IdempotencyKey,
    NewResume,
    create,
    create_files,
)
from resumes.store.import_history import get_file
from resumes.store.import_ledger import ClaimedFile, FileOutcome, find_items
from resumes.store.stored_resumes import Sort
from resumes.store.versions import OnNewer
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_document
from tests.support.store.builders import (
    MakeAccount,
    count_rows,
    entries_of,
    execute,
    find_flaws,
    index_all,
    listed_ids,
)

pytestmark = pytest.mark.engines


def a_version(
    name: str = "Ada",
    text: str = "First",
    *,
    with_digest: bool = True,
    item: int = 0,
    key: str | None = None,
) -> NewResume:
    """A version of the resume of this person, which has this text; `key` is an Idempotency-Key."""
    sections = {"summaries": {"column": 0, "items": [{"text": text}]}}
    header = {"name": name, "email": f"{name}@example.com"}
    body = a_document(header=header, sections=sections)
    digest = hashlib.sha256(body).digest()
    used = None if key is None else IdempotencyKey(key, digest)
    return NewResume(analyzer.parse(body), digest if with_digest else None, item, used)


def made(
    store: Store, account: AccountInfo, *new: NewResume, claim: ClaimedFile | None = None
) -> list[Created]:
    """What was made of these, which all were created."""
    outcomes = create(store, account.id, new, claim=claim)
    assert all(isinstance(outcome, Created) for outcome in outcomes)
    return outcomes  # type: ignore[return-value]


def a_claim_at(seconds: float, *, clock: SteppingClock) -> str:
    """The ID of a claim of a file that was found so many seconds after now."""
    return identifiers.resume_id(clock.now_us + int(seconds * 1_000_000), "0" * 8)


@pytest.fixture
def ana(store: Store, an_account: MakeAccount) -> AccountInfo:
    """An account that replaces older versions."""
    account = an_account("ana")
    accounts.set_options(store, "ana", {"on_newer": "replace"})
    return account


def texts(store: Store, account: AccountInfo) -> list[str]:
    """The texts of all resumes, oldest first."""
    documents = [
        json.loads(stored_resumes.get_resume(store, account.id, resume_id).document)
        for resume_id in listed_ids(store, account)
    ]
    return [document["sections"]["summaries"]["items"][0]["text"] for document in documents]


def test_a_newer_version_replaces_the_older_ones_with_all_that_is_kept_of_them(
    store: Store, ana: AccountInfo
) -> None:
    accounts.set_options(store, "ana", {"on_newer": "keep"})
    first, second, other = made(store, ana, a_version(), a_version(text="Second"), a_version("Bo"))
    assert [outcome.replaced for outcome in (first, second, other)] == [(), (), ()]
    index_all(store)
    accounts.set_options(store, "ana", {"on_newer": "replace"})

    (third,) = made(store, ana, a_version(text="Third"))

    assert third.replaced == (first.id, second.id)
    assert listed_ids(store, ana) == [other.id, third.id]
    assert texts(store, ana) == ["First", "Third"]
    index_all(store)
    assert search.find_page(store, ana.id, "second").page.rows == []
    assert [entry.id for entry in search.find_page(store, ana.id, "ada").page.entries] == [third.id]
    assert accounts.get_account(store, "ana").resume_count == 2
    assert {table: count_rows(store, table) for table in ("documents", "search_entries")} == {
        "documents": 2, "search_entries": 2,
    }  # fmt: skip
    assert find_flaws(store) == []


def test_of_several_versions_in_one_batch_the_last_one_stays(
    store: Store, ana: AccountInfo
) -> None:
    versions = [a_version(text=text) for text in ("First", "Second", "Third", "First")]
    first, second, third, again = create(store, ana.id, versions)
    assert isinstance(first, Created)
    assert isinstance(second, Created)
    assert isinstance(third, Created)
    assert isinstance(again, Duplicate)
    assert (first.replaced, second.replaced, third.replaced) == ((), (first.id,), (second.id,))
    assert again == Duplicate(third.id, is_newer=True)
    assert again.message == f"A newer version of this resume is already stored as {third.id}"
    assert listed_ids(store, ana) == [third.id]
    assert create(store, ana.id, versions) == [
        Duplicate(third.id, is_newer=True), Duplicate(third.id, is_newer=True),
        Duplicate(third.id), Duplicate(third.id, is_newer=True),
    ]  # fmt: skip
    assert find_flaws(store) == []


def test_an_account_that_keeps_keeps_and_no_account_replaces_resumes_of_another(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    bo = an_account("bo")
    for account in (bo, ana, bo):
        create(store, account.id, [a_version(with_digest=False)])
    assert (len(listed_ids(store, ana)), len(listed_ids(store, bo))) == (1, 2)


# Repeats


def test_s26_a_file_that_was_dropped_before_the_stored_version_does_not_replace_it(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    claims = [a_claim_at(-seconds, clock=clock) for seconds in (3, 2, 1)]
    files = [a_claim(claim_id) for claim_id in claims]
    (middle,) = made(store, ana, a_version(text="Middle"), claim=files[1])
    assert create(store, ana.id, [a_version(text="Old")], claim=files[0]) == [
        Duplicate(middle.id, is_newer=True)
    ]
    assert get_file(store, claims[0]).outcome is FileOutcome.DUPLICATE
    assert "A newer version" in str(get_file(store, claims[0]).message)
    (newest,) = made(store, ana, a_version(text="New"), claim=files[2])
    assert newest.replaced == (middle.id,)
    # A retry, or the recovery of a process that was killed, of any of them.
    assert create(store, ana.id, [a_version(text="Middle")], claim=files[1]) == [
        Created(middle.id, replayed=True)
    ]
    assert create(store, ana.id, [a_version(text="Old")], claim=files[0]) == [
        Duplicate(newest.id, is_newer=True)
    ]
    assert create(store, ana.id, [a_version(text="New")], claim=files[2]) == [
        Created(newest.id, replayed=True, replaced=(middle.id,))
    ]
    # Dropped again, the content is still that of an older file.
    again = a_claim(a_claim_at(5, clock=clock))
    assert create(store, ana.id, [a_version(text="Old")], claim=again) == [
        Duplicate(newest.id, is_newer=True)
    ]
    assert texts(store, ana) == ["New"]
    bundle = [a_version("Bo", item=1), a_version(text="Older", item=2)]
    outcomes = create(store, ana.id, bundle, claim=a_claim(a_claim_at(-9, clock=clock)))
    assert outcomes[1] == Duplicate(newest.id, is_newer=True)
    assert create(store, ana.id, [a_version("Bo")]) == [Duplicate(listed_ids(store, ana)[-1])]
    assert [item.is_deleted for item in find_items(store, ana.id, claims[1])] == [True]


def test_an_idempotency_key_gets_its_first_answer_even_if_its_resume_was_replaced(
    store: Store, ana: AccountInfo
) -> None:
    def send(text: str, key: str) -> Created:
        return made(store, ana, a_version(text=text, with_digest=False, key=key))[0]

    first, second = send("First", "a"), send("Second", "b")
    assert second.replaced == (first.id,)
    assert send("Second", "b") == Created(second.id, replayed=True, replaced=(first.id,))
    assert send("First", "a") == Created(first.id, replayed=True)
    assert listed_ids(store, ana) == [second.id]
    third = Creation(ana.id, [a_version(text="Third", with_digest=False, key="c")], store.clock())
    done, again = create_files(store, [third, third])
    (newest,) = listed_ids(store, ana)
    assert done == [Created(newest, replaced=(second.id,))]
    assert again == [Created(newest, replayed=True, replaced=(second.id,))]


def test_an_updated_resume_replaces_those_of_the_person_that_it_is_of_now(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    ada, bo = made(store, ana, a_version("Ada"), a_version("Bo"))
    clock.advance(60)
    updated = a_version("Bo", "Updated").resume
    assert stored_resumes.update_resume(store, ana.id, ada.id, updated).replaced == [bo.id]
    assert texts(store, ana) == ["Updated"]
    assert accounts.get_account(store, "ana").resume_count == 1
    # A file that was dropped before the update is older.
    claim = a_claim(a_claim_at(-30, clock=clock))
    assert create(store, ana.id, [a_version("Bo", "Late")], claim=claim) == [
        Duplicate(ada.id, is_newer=True)
    ]
    assert find_flaws(store) == []


# Queues


def test_in_a_queue_only_what_needs_no_place_is_stored(store: Store, ana: AccountInfo) -> None:
    (ada,) = made(store, ana, a_version("Ada"))
    claims = [a_claim(identifiers.resume_id(store.clock() + number)) for number in range(1, 4)]

    def offer(new: NewResume, claim: ClaimedFile) -> creation.Outcome:
        queued = Creation(ana.id, (new,), store.clock(), claim, queue="Wait")
        (outcomes,) = create_files(store, [queued])
        assert isinstance(outcomes, list)
        return outcomes[0]

    second = offer(a_version("Ada", "Second"), claims[0])
    assert isinstance(second, Created)
    assert second.replaced == (ada.id,)
    held = offer(a_version("Bo"), claims[1])
    assert isinstance(held, QuotaReached)
    assert held.message == "Wait"
    assert offer(a_version("Ada"), claims[2]) == Duplicate(second.id, is_newer=True)
    row = get_file(store, claims[1].claim_id)
    assert (row.outcome, row.message) == (FileOutcome.HELD, "Wait")


def test_a_rehearsal_tells_what_would_become_of_each_resume_and_stores_none(
    store: Store, ana: AccountInfo
) -> None:
    with pytest.raises(NotFound, match=r"\AAccount not found\Z"):
        creation.Rehearsal(store, "f" * 16)
    rehearsal, (ada,) = creation.Rehearsal(store, ana.id), made(store, ana, a_version())
    second, third = a_version(text="Second"), a_version(text="Third")
    assert rehearsal.create(second) == Created("", replaced=(ada.id,))
    assert rehearsal.create(second) == Duplicate("")
    assert rehearsal.create(third) == Created("")
    assert rehearsal.create(second) == Duplicate("", is_newer=True)
    assert rehearsal.create(a_version("Bo")) == Created("")
    assert texts(store, ana) == ["First"]


# Turning it on


def test_an_account_does_not_replace_before_all_persons_are_known(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account("ana")
    create(store, account.id, [a_version()])
    execute(store, "UPDATE resumes SET person = NULL")
    with pytest.raises(Conflict, match='Not all resumes of account "ana" are indexed yet'):
        accounts.set_options(store, "ana", {"on_newer": "replace"})
    assert accounts.get_account(store, "ana").on_newer == OnNewer.KEEP
    index_all(store)
    accounts.set_options(store, "ana", {"on_newer": "replace"})
    (newer,) = made(store, account, a_version(text="Second"))
    assert len(newer.replaced) == 1


# Lists of the newest


def list_latest(store: Store, account: AccountInfo, **options: Any) -> list[str]:
    """The ids of all pages of each person's newest."""
    read = partial(stored_resumes.list_page, store, account.id, is_latest=True, **options)
    return [entry.id for entry in entries_of(read)]


@pytest.mark.parametrize("indexed", [0, 3, 5, 7])
def test_only_the_newest_resume_of_each_person_is_listed_in_every_order(
    store: Store, an_account: MakeAccount, indexed: int
) -> None:
    mine, other = an_account("ana"), an_account("bo")
    names = ("Ada", "Bo", "Ada", "Cy", "Bo", "Ada")
    ids = []
    for at, name in enumerate(names):
        ids += [made(store, mine, a_version(name, str(at))._replace(label="ab"[at % 2]))[0].id]
        if at + 1 == indexed:
            index_all(store)
    (unknown,) = made(store, mine, NewResume(analyzer.parse(a_document(header={"name": "Ada"}))))
    made(store, other, *map(a_version, ("Ada", "Bo", "Cy")))
    newest = [*ids[3:], unknown.id]
    assert list_latest(store, mine) == newest
    assert list_latest(store, mine, limit=1) == newest
    assert list_latest(store, mine, limit=3, is_newest_first=True) == newest[::-1]
    assert list_latest(store, mine, label="b") == [ids[3], ids[5]]
    page = stored_resumes.list_page(store, mine.id, limit=4, is_latest=True)
    assert page.cursor is None
    by_name = stored_resumes.list_sorted(store, mine.id, Sort.NAME, is_latest=True, limit=3)
    assert [entry.id for entry in by_name.entries] == [ids[5], unknown.id, ids[4]]

    if indexed == 7:
        index_all(store)
    of_ada, of_bo = [ids[5], ids[2], ids[0]], [ids[4], ids[1]]
    expected = dict.fromkeys(of_ada, 3) | dict.fromkeys(of_bo, 2)
    assert versions.count_versions(store, mine.id, ids) == expected
    for people in (of_ada, of_bo):
        listed = stored_resumes.list_versions(store, mine.id, people[-1])
        assert [entry.id for entry in listed] == people
    assert stored_resumes.list_versions(store, mine.id, ids[3]) == []

    stored_resumes.delete_resume(store, mine.id, ids[5])
    assert list_latest(store, mine) == [ids[2], ids[3], ids[4], unknown.id]
    stored_resumes.update_resume(store, mine.id, ids[4], a_version("Cy").resume)
    assert list_latest(store, mine) == [ids[1], ids[2], ids[4], unknown.id]
    index_all(store)
    assert list_latest(store, mine) == [ids[1], ids[2], ids[4], unknown.id]


def test_a_search_for_the_newest_finds_no_other(store: Store, an_account: MakeAccount) -> None:
    account = an_account("ana")
    for text in ("Red", "Blue", "Red"):
        for name, its in (("Ada", text), (f"Bo{text}", "Red")):
            made(store, account, a_version(name, its, with_digest=False))
    (last,) = made(store, account, a_version("Cy", "Blue"))
    index_all(store)

    def find(text: str, **options: Any) -> list[str]:
        read = partial(
            search.find_page, store, account.id, text, is_latest=True, timeout_s=60, **options
        )
        return [entry.id for entry in entries_of(lambda **at: read(**at).page)]

    all_ids = listed_ids(store, account)
    assert find("blue") == [last.id]
    assert find("red") == [all_ids[3], all_ids[4], all_ids[5]]
    for limit in (1, 2):
        assert find('"red"', limit=limit) == find("red")
        assert find("red", limit=limit, is_newest_first=True) == find("red")[::-1]
    late = search.find_page(
        store, account.id, "red", limit=1, is_latest=True, timeout_s=0, is_newest_first=True
    )
    assert late.page.cursor is not None
    made(store, account, a_version("Cy", "Not yet indexed"))
    assert find("blue") == []


def test_a_page_of_the_newest_ends_early_after_many_that_are_not(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_resumes, "SCANNED_ROWS", 3)
    stored_resumes.page_of.cache_clear()
    try:
        account = an_account("ana")
        versions = [a_version("Ada", str(number)) for number in range(7)]
        made(store, account, *versions, a_version("Bo"))
        ids = listed_ids(store, account)
        first = stored_resumes.list_page(store, account.id, is_latest=True)
        assert (first.rows, first.cursor) == ([], ids[2])
        assert list_latest(store, account) == ids[6:]
        newest = stored_resumes.list_page(store, account.id, is_latest=True, is_newest_first=True)
        assert ([entry.id for entry in newest.entries], newest.cursor) == (ids[:5:-1], ids[5])
        # Exactly so many resumes as a page looks through.
        stored_resumes.delete_resumes(store, account.id, ids[:5])
        assert stored_resumes.list_page(store, account.id, is_latest=True).cursor is None
    finally:
        stored_resumes.page_of.cache_clear()


# Against a model


class Sent(NamedTuple):
    """A resume on its way in. `claimed` is when its file was dropped, None if a client sent it."""

    person: str | None
    text: int
    claimed: int | None


@dataclass
class Model:
    """An account that replaces, in plain terms."""

    limit: int
    stored: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    """Person and arrival by id."""
    contents: dict[bytes, str] = field(default_factory=dict)
    ledger: dict[str, str | None] = field(default_factory=dict)
    """The resume of each claim that has one."""

    def expect(
        self, new: NewResume, person: str | None, claim_id: str | None
    ) -> tuple[str, ...] | str | None:
        """The ids of what a new resume replaces; the id of what is stored already; None if full."""
        if claim_id is not None and (known := self.ledger.get(claim_id)):
            return known
        if new.digest is not None and new.digest in self.contents:
            return self.contents[new.digest]
        mine = {
            id_: arrival
            for id_, (whose, arrival) in self.stored.items()
            if person and whose == person
        }
        if claim_id is not None and (later := [id_ for id_ in mine if mine[id_] > claim_id]):
            assert new.digest is not None
            self.contents[new.digest] = later[0]
            return later[0]
        if not mine and len(self.stored) >= self.limit:
            return None
        return tuple(mine)

    def take(
        self, new: NewResume, person: str | None, claim_id: str | None, outcome: creation.Outcome
    ) -> None:
        expected = self.expect(new, person, claim_id)
        if expected is None:
            assert isinstance(outcome, QuotaReached)
            return
        assert isinstance(outcome, Created | Duplicate)
        if isinstance(expected, str):
            # A duplicate is told of what is stored now.
            assert outcome.id in (expected, self.contents.get(new.digest or b""))
            assert isinstance(outcome, Duplicate) or outcome.replayed
        else:
            assert isinstance(outcome, Created)
            assert not outcome.replayed
            assert set(outcome.replaced) == set(expected)
            assert all(outcome.id > other for other in self.stored)
            for old_id in expected:
                del self.stored[old_id]
            for content, stored in self.contents.items():
                self.contents[content] = outcome.id if stored in expected else stored
            self.stored[outcome.id] = person, claim_id or outcome.id
            if new.digest is not None:
                self.contents[new.digest] = outcome.id
        if claim_id is not None:
            self.ledger[claim_id] = outcome.id

    def delete(self, resume_id: str) -> None:
        del self.stored[resume_id]
        self.contents = {each: at for each, at in self.contents.items() if at != resume_id}


PEOPLE = st.sampled_from(["Ada", "Bo", "Cy", None])
BATCHES = st.lists(
    st.builds(Sent, PEOPLE, st.integers(0, 4), st.none() | st.integers(0, 40)),
    min_size=1,
    max_size=6,
)
STEPS = st.lists(BATCHES | st.sampled_from(["delete", "limit", "index"]), max_size=15)
NUMBERS = itertools.count()


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_it_does_what_the_model_does_whatever_comes_in_any_order(
    store: Store, clock: SteppingClock, steps: Sequence[Sequence[Sent] | str]
) -> None:
    plan, name = f"p{(number := next(NUMBERS))}", f"a{number}"
    plans.set_plan_limits(store, plans.PlanChange(plan, 3))
    account = accounts.create_account(store, name, plan=plan)
    accounts.set_options(store, name, {"on_newer": "replace"})
    model = Model(3)
    began_us = clock.now_us
    for step in steps:
        clock.advance(1)
        if step == "delete":
            for resume_id in [*model.stored][:1]:
                stored_resumes.delete_resume(store, account.id, resume_id)
                model.delete(resume_id)
        elif step == "limit":
            model.limit = 5 - model.limit
            plans.set_plan_limits(store, plans.PlanChange(plan, model.limit))
        elif step == "index":
            index_all(store)
        else:
            assert not isinstance(step, str)
            send(store, account, model, began_us, step)
        assert listed_ids(store, account) == sorted(model.stored)
        people = [person for person, _ in model.stored.values() if person is not None]
        assert len(people) == len(set(people))
        assert accounts.get_account(store, name).resume_count == len(model.stored)
    index_all(store)
    assert find_flaws(store) == []
    accounts.delete_account(store, name, with_resumes=True)


def send(
    store: Store, account: AccountInfo, model: Model, began_us: int, batch: Sequence[Sent]
) -> None:
    """Create from a batch as the importer and clients do at once, and compare the outcomes."""
    creations, whose = [], []
    for person, text, claimed in batch:
        header = {"name": person, **({"email": f"{person}@x.org"} if person else {})}
        body = a_document(header=header, title=str(text))
        digest = None if claimed is None else hashlib.sha256(body).digest()
        new = NewResume(analyzer.parse(body), digest=digest)
        claim = None
        if claimed is not None:
            # A claim is one file.
            tail = f"{['Ada', 'Bo', 'Cy', None].index(person)}{text}".ljust(8, "0")
            claim = a_claim(identifiers.resume_id(began_us + claimed * 500_000, tail))
        creations.append(Creation(account.id, (new,), store.clock(), claim))
        whose.append(person)
    results = create_files(store, creations)
    for made, person, outcomes in zip(creations, whose, results, strict=True):
        assert isinstance(outcomes, list)
        claim_id = None if made.claim is None else made.claim.claim_id
        model.take(made.resumes[0], person, claim_id, outcomes[0])
