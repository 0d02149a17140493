import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, text

from resumes.errors import (
    IdempotencyMismatch,
    NotFound,
    QuotaReached,
    ResumesError,
    StoreUnavailable,
)
from resumes.store import Store, accounts, counters, creating, ledger, listing, plans, schema
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, Creation, Duplicate, NewResume, create
from resumes.store.engine import WRITE_DEADLINE_S
from resumes.store.items import Items
from resumes.store.ledger import FileOutcome, Verdict
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import Busy
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def ids(store: Store, account: AccountInfo) -> list[str]:
    return [entry.id for entry in listing.list_page(store, account.id, limit=100).entries]


def limit(store: Store, max_resumes: int | None) -> None:
    plans.set_plan_limits(store, plans.PlanChange("business", max_resumes))


def created_id(outcome: creating.Outcome) -> str:
    assert isinstance(outcome, Created)
    return outcome.id


def test_what_is_created_is_listed(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    (outcome,) = create(store, account.id, [a_resume("Ada Example")])
    (entry,) = listing.list_page(store, account.id).entries
    assert outcome == Created(entry.id)
    assert (entry.name, entry.filename) == ("Ada Example", "AdaExampleResume.pdf")


def test_an_unknown_account_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        create(store, "f" * 16, [a_resume()])


def test_a_batch_over_the_quota_takes_what_fits_in_order_and_says_which_did_not(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    limit(store, 2)
    outcomes = create(store, account.id, [a_resume(f"Person {n}") for n in range(4)])
    assert [type(outcome) for outcome in outcomes] == [Created, Created, QuotaReached, QuotaReached]
    assert [e.name for e in listing.list_page(store, account.id).entries] == [
        "Person 0",
        "Person 1",
    ]
    assert counters.list_wrong(store) == []


def test_the_quota_refusal_states_the_number(store: Store, an_account: MakeAccount) -> None:
    account = an_account(plan="free")
    *_, refused = create(store, account.id, [a_resume() for _ in range(6)])
    assert isinstance(refused, QuotaReached)
    assert refused.message == "Maximum resume limit reached. Your plan allows 5 resumes"


def test_a_lowered_plan_deletes_nothing_and_refuses_until_it_fits(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    create(store, account.id, [a_resume() for _ in range(3)])
    limit(store, 2)
    assert isinstance(create(store, account.id, [a_resume()])[0], QuotaReached)
    for resume_id in ids(store, account)[:2]:
        listing.delete_resume(store, account.id, resume_id)
    assert isinstance(create(store, account.id, [a_resume()])[0], Created)


def test_an_unlimited_plan_takes_everything(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    limit(store, None)
    assert all(
        isinstance(outcome, Created)
        for outcome in create(store, account.id, [a_resume() for _ in range(1_200)])
    )


def test_parallel_creates_at_the_edge_of_the_quota_never_exceed_it(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    limit(store, 10)
    outcomes: list[creating.Outcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.extend(create(store, account.id, [a_resume()])))
        for _ in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, Created) for outcome in outcomes) == 10
    assert len(ids(store, account)) == 10


def test_s6_a_retry_at_a_full_account_gets_its_first_answer(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    limit(store, 1)
    (first,) = create(store, account.id, [a_resume(idempotency="once")])
    (again,) = create(store, account.id, [a_resume(idempotency="once")])
    assert again == Created(created_id(first), replayed=True)


def test_s6_a_duplicate_at_a_full_account_is_a_duplicate_not_held(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    limit(store, 1)
    (first,) = create(store, account.id, [a_resume(with_digest=True)])
    (again,) = create(store, account.id, [a_resume(with_digest=True)])
    assert again == Duplicate(created_id(first))


def test_s6_the_counter_falls_only_if_a_row_went(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    (resume_id,) = [created_id(o) for o in create(store, account.id, [a_resume()])]
    listing.delete_resume(store, account.id, resume_id)
    with pytest.raises(NotFound):
        listing.delete_resume(store, account.id, resume_id)
    assert accounts.get_account(store, "ana").resume_count == 0


def test_an_idempotency_key_with_another_body_is_a_mismatch(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    create(store, account.id, [a_resume("Ada Example", idempotency="once")])
    (other,) = create(store, account.id, [a_resume("Bo Example", idempotency="once")])
    assert isinstance(other, IdempotencyMismatch)
    assert len(ids(store, account)) == 1


def test_two_uses_of_a_key_in_one_batch_make_one_resume(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    first, second = create(store, account.id, [a_resume(idempotency="k")] * 2)
    assert second == Created(created_id(first), replayed=True)


def test_repeats_inside_a_batch_are_duplicates(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    first, second = create(store, account.id, [a_resume(with_digest=True)] * 2)
    assert second == Duplicate(created_id(first))


def test_the_same_content_in_two_accounts_is_two_resumes(
    store: Store, an_account: MakeAccount
) -> None:
    for name in ("ana", "bo"):
        (outcome,) = create(store, an_account(name).id, [a_resume(with_digest=True)])
        assert isinstance(outcome, Created)


def test_deleting_a_resume_frees_its_content_for_the_importer(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    (first,) = create(store, account.id, [a_resume(with_digest=True)])
    listing.delete_resume(store, account.id, created_id(first))
    assert isinstance(create(store, account.id, [a_resume(with_digest=True)])[0], Created)


def test_i1_an_item_of_a_claim_is_imported_once_even_if_its_resume_was_deleted(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    (first,) = create(store, account.id, [a_resume(with_digest=True)], claim=a_claim())
    listing.delete_resume(store, account.id, created_id(first))
    (again,) = create(store, account.id, [a_resume(with_digest=True)], claim=a_claim())
    assert again == Created(created_id(first), replayed=True)
    assert ids(store, account) == []


def test_i1_a_refused_file_occupies_no_digest(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    limit(store, 0)
    create(store, account.id, [a_resume(with_digest=True)], claim=a_claim("1" * 24))
    limit(store, 5)
    (outcome,) = create(store, account.id, [a_resume(with_digest=True)], claim=a_claim("2" * 24))
    assert isinstance(outcome, Created)


@pytest.mark.parametrize(
    ("names", "failed", "expected"),
    [
        (["a"], None, FileOutcome.DONE),
        (["stored"], None, FileOutcome.DUPLICATE),
        (["a", "stored"], None, FileOutcome.DONE),
        (["a"], Verdict(FileOutcome.FAILED, "invalid_json"), FileOutcome.FAILED),
        (["a", "b", "c"], Verdict(FileOutcome.FAILED, "invalid_json"), FileOutcome.HELD),
    ],
)
def test_a_file_of_several_items_is_held_else_failed_else_duplicate_else_done(
    store: Store,
    an_account: MakeAccount,
    names: list[str],
    failed: Verdict | None,
    expected: FileOutcome,
) -> None:
    account = an_account()
    create(store, account.id, [a_resume("stored", with_digest=True)])
    limit(store, 3)
    batch = [a_resume(name, with_digest=True, item=n) for n, name in enumerate(names)]
    create(store, account.id, batch, claim=a_claim(), failed=failed)
    (row,) = ledger.list_files(store)
    assert row.outcome is expected


def test_many_files_of_many_accounts_go_in_one_transaction(
    store: Store, an_account: MakeAccount
) -> None:
    first, second = an_account("ana"), an_account("bo")
    results = creating.create_files(
        store,
        [
            Creation(first.id, [a_resume("A")], store.clock(), a_claim("1" * 24)),
            Creation("f" * 16, [a_resume("B")], store.clock(), a_claim("2" * 24)),
            Creation(second.id, [a_resume("C")], store.clock(), a_claim("3" * 24)),
        ],
    )
    assert isinstance(results[1], NotFound)
    assert [len(ids(store, account)) for account in (first, second)] == [1, 1]


def test_s15_an_id_is_never_used_again_after_its_resume_went(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    (newest,) = ids_of(create(store, account.id, [a_resume()]))
    listing.delete_resume(store, account.id, newest)
    (next_one,) = ids_of(create(store, account.id, [a_resume()]))
    assert next_one[:16] > newest[:16]


def test_s15_ids_rise_in_a_burst_and_when_the_clock_goes_back(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    burst = ids_of(create(store, account.id, [a_resume() for _ in range(500)]))
    clock.advance(-3_600)
    later = ids_of(create(store, account.id, [a_resume() for _ in range(2)]))
    assert burst + later == sorted(burst + later)
    assert int(later[-1][:16], 16) == 1_800_000_000_000_000 + 501


def test_s15_created_at_is_the_clock_not_the_id(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    create(store, account.id, [a_resume()])
    clock.advance(-60)
    create(store, account.id, [a_resume()])
    created = [entry.created_at for entry in listing.list_page(store, account.id).entries]
    assert created == ["2027-01-15T08:00:00.000Z", "2027-01-15T07:59:00.000Z"]


def ids_of(outcomes: list[creating.Outcome]) -> list[str]:
    return [created_id(outcome) for outcome in outcomes]


def test_documents_keep_their_text(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    new: NewResume = a_resume("Zoë 山田")
    (resume_id,) = ids_of(create(store, account.id, [new]))
    assert listing.get_resume(store, account.id, resume_id).document == new.resume.document.decode()


def test_documents_are_kept_as_text_and_digests_as_bytes(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    create(store, account.id, [a_resume("Zoë 山田", with_digest=True)])
    with store.read() as connection:
        kind, of_bytes = ("typeof", "blob") if store.path else ("pg_typeof", "bytea")
        documents = connection.execute(text(f"SELECT {kind}(document) FROM documents"))
        digests = connection.execute(text(f"SELECT {kind}(digest) FROM imported_digests"))
        assert (documents.scalar_one(), digests.scalar_one()) == ("text", of_bytes)


# Many files at once


def files_of(
    store: Store, account: AccountInfo, resumes: Sequence[NewResume]
) -> list[list[creating.Outcome] | ResumesError]:
    """What became of a file for each resume, all in one transaction."""
    return creating.create_files(
        store,
        [
            Creation(account.id, [new], store.clock(), a_claim(f"{number:024x}"))
            for number, new in enumerate(resumes)
        ],
    )


@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_i1_a_batch_of_files_that_is_done_again_gets_its_first_answers(
    store: Store, an_account: MakeAccount, count: int
) -> None:
    account = an_account()
    batch = [a_resume(f"Person {number}", with_digest=True) for number in range(count)]
    made = [
        outcomes[0] for outcomes in files_of(store, account, batch) if isinstance(outcomes, list)
    ]
    again = files_of(store, account, batch)
    assert again == [[Created(created_id(one), replayed=True)] for one in made]
    assert accounts.get_account(store, "ana").resume_count == count
    assert {row.outcome for row in ledger.list_files(store)} == {FileOutcome.DONE}


@pytest.mark.parametrize("count", [64, 65, 200])
def test_files_of_a_content_that_is_stored_are_duplicates_wherever_they_stand_in_a_batch(
    store: Store, an_account: MakeAccount, count: int
) -> None:
    account = an_account()
    (stored,) = ids_of(create(store, account.id, [a_resume("stored", with_digest=True)]))
    batch = [a_resume(f"Person {number}", with_digest=True) for number in range(count)]
    batch[0] = batch[-1] = a_resume("stored", with_digest=True)
    results = files_of(store, account, batch)
    assert results[0] == results[-1] == [Duplicate(stored)]
    assert accounts.get_account(store, "ana").resume_count == count - 1


def test_equal_files_of_one_batch_are_duplicates_of_the_first(
    store: Store, an_account: MakeAccount
) -> None:
    first, second = files_of(store, an_account(), [a_resume(with_digest=True)] * 2)
    assert isinstance(first, list)
    assert second == [Duplicate(created_id(first[0]))]
    outcomes = [row.outcome for row in ledger.list_files(store)]
    assert outcomes == [FileOutcome.DUPLICATE, FileOutcome.DONE]


def test_files_that_are_done_and_others_are_in_the_ledger_as_they_came_to_their_ends(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    failed = Verdict(FileOutcome.FAILED, "invalid_json", "no", "title", 7)
    claims = [a_claim(str(number) * 24)._replace(root="/srv/inbox") for number in range(3)]
    creating.create_files(
        store,
        [
            Creation(account.id, [a_resume("A")], store.clock(), claims[0]),
            Creation(account.id, (), store.clock(), claims[1], failed),
            Creation(account.id, [a_resume("B")], store.clock(), claims[2]),
        ],
    )
    last, refused, first = ledger.list_files(store)
    assert (first.outcome, refused.outcome, last.outcome) == (
        FileOutcome.DONE,
        FileOutcome.FAILED,
        FileOutcome.DONE,
    )
    assert (refused.reason, refused.message, refused.path, refused.byte_offset) == (
        "invalid_json",
        "no",
        "title",
        7,
    )
    assert {(row.name, row.size_bytes, row.root) for row in (first, refused, last)} == {
        ("ada.json", 100, "/srv/inbox")
    }
    assert [ledger.find_source(store, row) for row in (first, refused, last)] == [None, b"{", None]


def test_a_file_that_is_done_after_all_keeps_nothing_of_why_it_was_not(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    limit(store, 0)
    create(store, account.id, [a_resume()], claim=a_claim())
    (held,) = ledger.list_files(store)
    assert held.outcome is FileOutcome.HELD
    assert ledger.find_source(store, held) == b"{"
    limit(store, 1)
    create(store, account.id, [a_resume()], claim=a_claim())
    (done,) = ledger.list_files(store)
    assert (done.outcome, done.reason, done.message) == (FileOutcome.DONE, None, None)
    assert ledger.find_source(store, done) is None


def test_a_file_of_several_that_is_done_keeps_what_became_of_its_items(
    store: Store, an_account: MakeAccount
) -> None:
    items = Items(total=1, done=1, duplicate=0, held=0, failed=0)
    claim = a_claim()._replace(items=json.dumps(items.as_json()))
    create(store, an_account().id, [a_resume()], claim=claim)
    (row,) = ledger.list_files(store)
    assert (row.outcome, row.items) == (FileOutcome.DONE, items)


def test_the_source_of_a_file_that_is_done_is_not_read(
    store: Store, an_account: MakeAccount
) -> None:
    def read() -> bytes:
        raise AssertionError("nobody needs it")

    create(store, an_account().id, [a_resume()], claim=a_claim()._replace(source=read))
    assert len(ledger.list_files(store)) == 1


# Whether a transaction took effect of which nobody heard


def proof_of(
    store: Store,
    creations: Sequence[Creation],
    results: Sequence[list[creating.Outcome] | ResumesError],
) -> bool | None:
    """What the rows say of a transaction that came to these results."""

    def ask(connection: Connection, _: Sequence[str]) -> list[bool | None]:
        return [creating.were_stored(connection, creations, results)]

    verdict: bool | None = store.write(ask, "")
    return verdict


def test_s2_whether_a_batch_was_stored_is_told_by_an_id_that_it_made(
    store: Store, an_account: MakeAccount
) -> None:
    account, other = an_account("ana"), an_account("bo")
    (stored,) = ids_of(create(store, account.id, [a_resume()]))
    none = "f" * 24
    mine, theirs = (Creation(one.id, [a_resume()], store.clock()) for one in (account, other))

    assert proof_of(store, [mine], [[Created(stored)]]) is True
    assert proof_of(store, [mine], [[Created(none)]]) is False
    assert proof_of(store, [theirs], [[Created(stored)]]) is False


def test_s2_what_a_batch_did_not_make_proves_nothing(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    (stored,) = ids_of(create(store, account.id, [a_resume()]))
    mine = Creation(account.id, [a_resume()], store.clock())
    before: list[creating.Outcome] = [
        Duplicate(stored),
        QuotaReached(max_resumes=5),
        Created(stored, replayed=True),
    ]

    assert proof_of(store, [mine, mine], [NotFound("Account not found"), before]) is None
    assert proof_of(store, [], []) is None
    made = [*before, Created("f" * 24)]
    assert proof_of(store, [mine, mine], [NotFound("Account not found"), made]) is False


def test_s2_files_of_several_accounts_are_told_by_the_first_that_made_a_resume(
    store: Store, an_account: MakeAccount
) -> None:
    first, second = an_account("ana"), an_account("bo")
    (stored,) = ids_of(create(store, second.id, [a_resume()]))
    files = [
        creating._Files(one.id, [Creation(one.id, [a_resume()], store.clock())])
        for one in (first, second)
    ]

    def ask(connection: Connection, results: Sequence[Any]) -> list[bool | None]:
        return [creating._files_were_stored(connection, files, one) for one in results]

    nothing, made = [[Duplicate(stored)]], [[Created(stored)]]
    assert store.write(ask, [nothing, nothing]) is None
    assert store.write(ask, [nothing, made]) is True
    assert store.write(ask, [nothing, [[Created("f" * 24)]]]) is False
    assert store.write(ask, [[[Created("f" * 24)]], made]) is False


def test_a_coroutine_creates_as_others_do(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account(plan="free")
    clock.advance(1)
    outcomes = [
        asyncio.run(creating.create_soon(store, account.id, a_resume(f"Person {number}")))
        for number in range(6)
    ]
    assert ids(store, account) == ids_of(outcomes[:5])
    assert isinstance(outcomes[5], QuotaReached)
    entries = listing.list_page(store, account.id).entries
    assert [entry.name for entry in entries] == [f"Person {number}" for number in range(5)]
    assert entries[0].created_at == "2027-01-15T08:00:01.000Z"


def test_the_ledger_says_why_a_file_is_not_done_in_the_words_of_the_outcome(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account(plan="free")
    first = a_resume("Ada", with_digest=True, idempotency="once")
    (stored,) = ids_of(create(store, account.id, [first]))
    other_body = a_resume("Bo", idempotency="once")
    create(store, account.id, [a_resume("Ada", with_digest=True)], claim=a_claim("1" * 24))
    create(store, account.id, [other_body], claim=a_claim("2" * 24))
    create(store, account.id, [a_resume() for _ in range(4)])
    create(store, account.id, [a_resume()], claim=a_claim("3" * 24))

    told = {
        row.claim_id: (row.outcome, row.reason, row.message) for row in ledger.list_files(store)
    }

    assert told == {
        "1" * 24: (FileOutcome.DUPLICATE, "duplicate", f"The same content is stored as {stored}"),
        "2" * 24: (
            FileOutcome.FAILED,
            "idempotency_mismatch",
            "Idempotency-Key was already used with a different body",
        ),
        "3" * 24: (
            FileOutcome.HELD,
            "quota_reached",
            "Maximum resume limit reached. Your plan allows 5 resumes",
        ),
    }


@pytest.mark.timing
def test_creating_waits_no_longer_than_it_is_told_to(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    creation = Creation(account.id, [a_resume()], store.clock())
    began_s = time.monotonic()
    with Busy(store).held():
        with pytest.raises(StoreUnavailable):
            create(store, account.id, [a_resume()], deadline_s=0.05)
        with pytest.raises(StoreUnavailable):
            creating.create_files(store, [creation], deadline_s=0.05)
        with pytest.raises(StoreUnavailable):
            asyncio.run(creating.create_soon(store, account.id, a_resume(), deadline_s=0.05))
    assert time.monotonic() - began_s < WRITE_DEADLINE_S
    assert ids(store, account) == []


def test_i1_an_item_that_was_a_duplicate_stays_one_when_its_claim_is_done_again(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    (stored,) = ids_of(create(store, account.id, [a_resume("A", with_digest=True)]))
    batch = [a_resume("A", with_digest=True, item=1), a_resume("B", with_digest=True, item=2)]
    first = create(store, account.id, batch, claim=a_claim())
    listing.delete_resume(store, account.id, stored)

    again = create(store, account.id, batch, claim=a_claim())

    assert first[0] == again[0] == Duplicate(stored)
    assert again[1] == Created(created_id(first[1]), replayed=True)


def test_every_caller_of_an_account_that_is_gone_is_told_so(
    store: Store, an_account: MakeAccount
) -> None:
    gone, there = "f" * 16, an_account()
    creations = [Creation(one, [a_resume()], store.clock()) for one in (gone, there.id, gone)]
    first, made, last = creating.create_files(store, creations)
    assert isinstance(made, list)
    for answer in (first, last):
        assert isinstance(answer, NotFound)
        assert answer.message == "Account not found"


def taken(store: Store, account: AccountInfo, counts: Sequence[int]) -> list[int]:
    """Whether so many places were taken, for each count in turn: 1, else 0."""

    def take(connection: Connection, counts: Sequence[int]) -> list[int]:
        return [
            creating.TAKE_PLACES.run(
                connection, account=account.id, places=count, last_id=2**60
            ).rowcount
            for count in counts
        ]

    return [store.write(take, count) for count in counts]


def test_no_place_beyond_the_plan_is_taken_whatever_was_read_before(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    create(store, account.id, [a_resume()])
    plans.set_plan_limits(store, plans.PlanChange("business", 3))
    assert taken(store, account, [3, 2, 1]) == [0, 1, 0]
    assert accounts.get_account(store, "ana").resume_count == 3


def test_places_are_taken_of_one_account_alone(store: Store, an_account: MakeAccount) -> None:
    ana = an_account("ana")
    an_account("bo")
    create(store, ana.id, [a_resume(), a_resume()])
    assert accounts.get_account(store, "ana").resume_count == 2
    assert accounts.get_account(store, "bo").resume_count == 0


def test_in_an_account_that_is_being_deleted_nothing_is_created_and_nothing_repeated(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    create(store, account.id, [a_resume(with_digest=True)])

    def close(connection: Connection, ids: Sequence[str]) -> list[None]:
        table = schema.accounts
        closed = table.update().where(table.c.id == ids[0])
        connection.execute(closed.values(closed_at="2027-01-15T08:00:00.000Z"))
        return [None]

    store.write(close, account.id)
    for new in (a_resume("New"), a_resume(with_digest=True)):
        with pytest.raises(NotFound, match="Account not found"):
            create(store, account.id, [new])
    assert taken(store, account, [1]) == [0]
