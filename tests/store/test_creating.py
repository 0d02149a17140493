"""Resumes on their way in: by the one path that clients, importers and the terminal share."""

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import Connection, text

from resumes.errors import (
    IdempotencyMismatch,
    NotFound,
    QuotaReached,
    StoreUnavailable,
)
from resumes.store import Store, accounts, creation, import_history, plans, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import (
    Created,
    Creation,
    Duplicate,
    NewResume,
    create,
    create_async,
    create_files,
)
from resumes.store.import_ledger import FileOutcome, Items, Verdict
from resumes.store.store import WRITE_DEADLINE_S
from resumes.store.write_queue import Write, was_committed
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    Busy,
    MakeAccount,
    add_resumes,
    hold_writer,
    listed_ids,
    made_ids,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines


def limit(store: Store, max_resumes: int | None) -> None:
    plans.set_plan_limits(store, plans.PlanChange("business", max_resumes))


def create_one(store: Store, account: AccountInfo, name: str = "Ada", **options: object) -> str:
    """The id of a resume that was made, of a content that is known from now on."""
    (made,) = made_ids(create(store, account.id, [a_resume(name, with_digest=True)], **options))  # type: ignore[arg-type]
    return made


def test_what_is_created_is_listed_with_its_text(store: Store, ana: AccountInfo) -> None:
    new: NewResume = a_resume("Zoë 山田", with_digest=True)
    (outcome,) = create(store, ana.id, [new])
    (entry,) = stored_resumes.list_page(store, ana.id).entries
    assert outcome == Created(entry.id)
    assert (entry.name, entry.filename) == ("Zoë 山田", "Zoë山田Resume.pdf")
    assert (
        stored_resumes.get_resume(store, ana.id, entry.id).document == new.resume.document.decode()
    )
    with store.read() as connection:
        kind, of_bytes = ("typeof", "blob") if store.path else ("pg_typeof", "bytea")
        documents = connection.execute(text(f"SELECT {kind}(document) FROM documents"))
        digests = connection.execute(text(f"SELECT {kind}(digest) FROM imported_digests"))
        assert (documents.scalar_one(), digests.scalar_one()) == ("text", of_bytes)


# The quota


def test_a_batch_over_the_quota_takes_what_fits_in_order_and_says_which_did_not(
    store: Store, ana: AccountInfo
) -> None:
    limit(store, 2)
    outcomes = create(store, ana.id, [a_resume(f"Person {n}") for n in range(4)])
    assert [type(outcome) for outcome in outcomes] == [Created, Created, QuotaReached, QuotaReached]
    names = [entry.name for entry in stored_resumes.list_page(store, ana.id).entries]
    assert names == ["Person 0", "Person 1"]
    assert isinstance(outcomes[3], QuotaReached)
    assert outcomes[3].message == "Maximum resume limit reached. Your plan allows 2 resumes"
    assert accounts.list_wrong(store) == []


def test_a_lowered_plan_deletes_nothing_and_refuses_until_it_fits(
    store: Store, ana: AccountInfo
) -> None:
    made = add_resumes(store, ana, 3)
    limit(store, 2)
    assert isinstance(create(store, ana.id, [a_resume()])[0], QuotaReached)
    for resume_id in made[:2]:
        stored_resumes.delete_resume(store, ana.id, resume_id)
    assert isinstance(create(store, ana.id, [a_resume()])[0], Created)


def test_an_unlimited_plan_takes_everything(store: Store, ana: AccountInfo) -> None:
    limit(store, None)
    assert len(add_resumes(store, ana, 1_200)) == 1_200


def test_parallel_creates_at_the_edge_of_the_quota_never_exceed_it(
    store: Store, ana: AccountInfo
) -> None:
    limit(store, 10)
    outcomes: list[creation.Outcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.extend(create(store, ana.id, [a_resume()])))
        for _ in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, Created) for outcome in outcomes) == 10
    assert len(listed_ids(store, ana)) == 10


def taken(store: Store, account: AccountInfo, counts: Sequence[int]) -> list[int]:
    """Whether so many places were taken, for each count in turn: 1, else 0."""

    def take(count: int, connection: Connection) -> int:
        taken = creation.TAKE_PLACES.run(
            connection, account=account.id, places=count, last_id=2**60
        )
        return int(taken.rowcount)

    return [store.write(partial(take, count)) for count in counts]


def test_no_place_beyond_the_plan_is_taken_whatever_was_read_before(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    an_account("bo")
    create(store, ana.id, [a_resume()])
    limit(store, 3)
    assert taken(store, ana, [3, 2, 1]) == [0, 1, 0]
    assert accounts.get_account(store, "ana").resume_count == 3
    assert accounts.get_account(store, "bo").resume_count == 0


def test_an_unknown_account_and_one_that_is_being_deleted_take_nothing(
    store: Store, ana: AccountInfo
) -> None:
    create_one(store, ana)
    add_resumes(store, ana, 600)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda gone: False)
    for account_id in ("f" * 16, ana.id):
        for new in (a_resume("New"), a_resume(with_digest=True)):
            with pytest.raises(NotFound, match="Account not found"):
                create(store, account_id, [new])
    assert taken(store, ana, [1]) == [0]


# Repeats


def test_s6_a_repeat_at_a_full_account_gets_its_first_answer(
    store: Store, ana: AccountInfo
) -> None:
    limit(store, 2)
    (first,) = made_ids(create(store, ana.id, [a_resume(idempotency="once")]))
    assert create(store, ana.id, [a_resume(idempotency="once")]) == [Created(first, replayed=True)]
    stored = create_one(store, ana)
    assert create(store, ana.id, [a_resume("Ada", with_digest=True)]) == [Duplicate(stored)]


def test_s6_the_counter_falls_only_if_a_row_went(store: Store, ana: AccountInfo) -> None:
    (resume_id,) = add_resumes(store, ana, 1)
    stored_resumes.delete_resume(store, ana.id, resume_id)
    with pytest.raises(NotFound):
        stored_resumes.delete_resume(store, ana.id, resume_id)
    assert accounts.get_account(store, "ana").resume_count == 0


def test_repeats_inside_a_batch_are_known(store: Store, ana: AccountInfo) -> None:
    first, second = create(store, ana.id, [a_resume(idempotency="k")] * 2)
    assert isinstance(first, Created)
    assert second == Created(first.id, replayed=True)
    (other,) = create(store, ana.id, [a_resume("Bo Example", idempotency="k")])
    assert isinstance(other, IdempotencyMismatch)
    first, second = create(store, ana.id, [a_resume(with_digest=True)] * 2)
    assert isinstance(first, Created)
    assert second == Duplicate(first.id)
    assert len(listed_ids(store, ana)) == 2


def test_a_content_counts_in_its_account_while_its_resume_is_there(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    first = create_one(store, ana)
    assert create_one(store, an_account("bo")) != first
    stored_resumes.delete_resume(store, ana.id, first)
    assert create_one(store, ana) != first


def test_i1_an_item_of_a_claim_is_imported_once_whatever_became_of_its_resume(
    store: Store, ana: AccountInfo
) -> None:
    stored = create_one(store, ana, "A")
    batch = [a_resume(name, with_digest=True, item=n) for n, name in enumerate("AB", 1)]
    duplicate, made = create(store, ana.id, batch, claim=a_claim())
    assert duplicate == Duplicate(stored)
    assert isinstance(made, Created)
    for resume_id in (stored, made.id):
        stored_resumes.delete_resume(store, ana.id, resume_id)

    again = create(store, ana.id, batch, claim=a_claim())

    assert again == [Duplicate(stored), Created(made.id, replayed=True)]
    assert listed_ids(store, ana) == []


def test_i1_a_refused_file_occupies_no_digest(store: Store, ana: AccountInfo) -> None:
    limit(store, 0)
    create(store, ana.id, [a_resume("Ada", with_digest=True)], claim=a_claim("1" * 24))
    limit(store, 5)
    create_one(store, ana, claim=a_claim("2" * 24))


# Ids


def test_s15_ids_rise_in_a_burst_and_when_the_newest_went_or_the_clock_goes_back(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    burst = add_resumes(store, ana, 500)
    clock.advance(-3_600)
    later = add_resumes(store, ana, 2)
    assert burst + later == sorted(burst + later)
    assert int(later[-1][:16], 16) == 1_800_000_000_000_000 + 501
    stored_resumes.delete_resume(store, ana.id, later[-1])
    (next_one,) = add_resumes(store, ana, 1)
    assert next_one[:16] > later[-1][:16]


def test_s15_created_at_is_the_clock_not_the_id(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    add_resumes(store, ana, 1)
    clock.advance(-60)
    add_resumes(store, ana, 1)
    created = [entry.created_at for entry in stored_resumes.list_page(store, ana.id).entries]
    assert created == ["2027-01-15T08:00:00.000Z", "2027-01-15T07:59:00.000Z"]


def test_a_coroutine_creates_as_others_do(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account(plan="free")
    clock.advance(1)
    outcomes = [
        asyncio.run(create_async(store, account.id, a_resume(f"Person {number}")))
        for number in range(6)
    ]
    entries = stored_resumes.list_page(store, account.id).entries
    assert [entry.id for entry in entries] == made_ids(outcomes[:5])
    assert isinstance(outcomes[5], QuotaReached)
    assert [entry.name for entry in entries] == [f"Person {number}" for number in range(5)]
    assert entries[0].created_at == "2027-01-15T08:00:01.000Z"


@pytest.mark.timing
def test_creating_waits_no_longer_than_it_is_told_to(store: Store, ana: AccountInfo) -> None:
    creation = Creation(ana.id, [a_resume()], store.clock())
    began_s = time.monotonic()
    with Busy(store).held():
        with pytest.raises(StoreUnavailable):
            create(store, ana.id, [a_resume()], deadline_s=0.05)
        with pytest.raises(StoreUnavailable):
            create_files(store, [creation], deadline_s=0.05)
        with pytest.raises(StoreUnavailable):
            asyncio.run(create_async(store, ana.id, a_resume(), deadline_s=0.05))
    assert time.monotonic() - began_s < WRITE_DEADLINE_S
    assert listed_ids(store, ana) == []


# Files


def files_of(
    store: Store, account: AccountInfo, resumes: Sequence[NewResume]
) -> list[list[creation.Outcome] | NotFound]:
    """What became of a file for each resume, all at once."""
    return creation.create_files(
        store,
        [
            Creation(account.id, [new], store.clock(), a_claim(f"{number:024x}"))
            for number, new in enumerate(resumes)
        ],
    )


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
    ana: AccountInfo,
    names: list[str],
    failed: Verdict | None,
    expected: FileOutcome,
) -> None:
    create_one(store, ana, "stored")
    limit(store, 3)
    batch = [a_resume(name, with_digest=True, item=n) for n, name in enumerate(names, 1)]
    create(store, ana.id, batch, claim=a_claim(), failed=failed)
    (row,) = import_history.list_files(store)
    assert row.outcome is expected


def test_files_of_many_accounts_go_together_and_each_caller_has_its_answer(
    store: Store, an_account: MakeAccount
) -> None:
    first, second, gone = an_account("ana").id, an_account("bo").id, "f" * 16
    results = creation.create_files(
        store,
        [
            Creation(account_id, [a_resume()], store.clock(), a_claim(f"{number:024x}"))
            for number, account_id in enumerate((first, gone, second, gone))
        ],
    )
    for answer in (results[1], results[3]):
        assert isinstance(answer, NotFound)
        assert answer.message == "Account not found"
    assert [accounts.get_account(store, name).resume_count for name in ("ana", "bo")] == [1, 1]


@pytest.mark.parametrize("count", [1, 64, 65, 200])  # 64 are looked up together
def test_i1_a_batch_of_files_that_is_done_again_gets_its_first_answers(
    store: Store, ana: AccountInfo, count: int
) -> None:
    batch = [a_resume(f"Person {number}", with_digest=True) for number in range(count)]
    first = files_of(store, ana, batch)
    made = [made_ids(outcomes)[0] for outcomes in first if isinstance(outcomes, list)]
    assert files_of(store, ana, batch) == [[Created(one, replayed=True)] for one in made]
    assert accounts.get_account(store, "ana").resume_count == count
    assert {row.outcome for row in import_history.list_files(store)} == {FileOutcome.DONE}


@pytest.mark.parametrize("count", [2, 64, 65, 200])
def test_files_of_a_content_that_is_stored_are_duplicates_wherever_they_stand_in_a_batch(
    store: Store, ana: AccountInfo, an_account: MakeAccount, count: int
) -> None:
    create_one(store, an_account("bo"), "Person 1")
    stored = create_one(store, ana, "stored")
    batch = [a_resume(f"Person {number}", with_digest=True) for number in range(count)]
    batch[0] = batch[-1] = a_resume("stored", with_digest=True)
    results = files_of(store, ana, batch)
    assert results[0] == results[-1] == [Duplicate(stored)]
    assert accounts.get_account(store, "ana").resume_count == count - 1


def test_equal_files_of_one_batch_are_duplicates_of_the_first(
    store: Store, ana: AccountInfo
) -> None:
    first, second = files_of(store, ana, [a_resume(with_digest=True)] * 2)
    assert isinstance(first, list)
    assert second == [Duplicate(*made_ids(first))]
    outcomes = [row.outcome for row in import_history.list_files(store)]
    assert outcomes == [FileOutcome.DUPLICATE, FileOutcome.DONE]


def test_files_that_are_done_and_others_are_in_the_ledger_as_they_came_to_their_ends(
    store: Store, ana: AccountInfo
) -> None:
    failed = Verdict(FileOutcome.FAILED, "invalid_json", "no", "title", 7)
    items = Items(total=1, done=1, duplicate=0, held=0, failed=0)
    claims = [a_claim(str(number) * 24, root="/srv/inbox") for number in range(2)]
    several = a_claim("2" * 24, items=json.dumps(items.as_json()))
    creation.create_files(
        store,
        [
            Creation(ana.id, [a_resume("A")], store.clock(), claims[0]),
            Creation(ana.id, (), store.clock(), claims[1], failed),
            Creation(ana.id, [a_resume("B")], store.clock(), several),
        ],
    )
    last, refused, first = import_history.list_files(store)
    outcomes = (first.outcome, refused.outcome, last.outcome)
    assert outcomes == (FileOutcome.DONE, FileOutcome.FAILED, FileOutcome.DONE)
    why = (refused.reason, refused.message, refused.path, refused.byte_offset)
    assert why == ("invalid_json", "no", "title", 7)
    for row in (first, refused):
        assert (row.name, row.size_bytes, row.root) == ("ada.json", 100, "/srv/inbox")
    assert (first.items, last.items) == (None, items)
    assert [import_history.find_source(store, row) for row in (first, refused, last)] == [
        None,
        b"{",
        None,
    ]


def test_a_file_that_is_done_after_all_keeps_nothing_of_why_it_was_not(
    store: Store, ana: AccountInfo
) -> None:
    limit(store, 0)
    create(store, ana.id, [a_resume()], claim=a_claim())
    (held,) = import_history.list_files(store)
    assert held.outcome is FileOutcome.HELD
    assert import_history.find_source(store, held) == b"{"
    limit(store, 1)
    create(store, ana.id, [a_resume()], claim=a_claim())
    (done,) = import_history.list_files(store)
    assert (done.outcome, done.reason, done.message) == (FileOutcome.DONE, None, None)
    assert import_history.find_source(store, done) is None


def test_the_ledger_says_why_a_file_is_not_done_in_the_words_of_the_outcome(
    store: Store, ana: AccountInfo
) -> None:
    limit(store, 1)
    first = a_resume("Ada", with_digest=True, idempotency="once")
    (stored,) = made_ids(create(store, ana.id, [first]))
    for digit, new in enumerate(
        (a_resume("Ada", with_digest=True), a_resume("Bo", idempotency="once"), a_resume()), 1
    ):
        create(store, ana.id, [new], claim=a_claim(f"{digit}" * 24))

    told = [(row.outcome, row.reason, row.message) for row in import_history.list_files(store)]

    assert told[::-1] == [
        (FileOutcome.DUPLICATE, "duplicate", f"The same content is already stored as {stored}"),
        (
            FileOutcome.FAILED,
            "idempotency_mismatch",
            "Idempotency-Key was already used with a different body",
        ),
        (
            FileOutcome.HELD,
            "quota_reached",
            "Maximum resume limit reached. Your plan allows 1 resume",
        ),
    ]


# Whether a transaction took effect of which nobody heard


def test_s2_whether_a_creation_was_stored_is_told_by_an_id_that_it_made(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    (stored,) = add_resumes(store, ana, 1)
    mine, theirs = (
        Creation(one.id, [a_resume()], store.clock()) for one in (ana, an_account("bo"))
    )
    lost = Created("f" * 24)
    gone = NotFound("Account not found")
    nothing = [Duplicate(stored), QuotaReached(max_resumes=5), Created(stored, replayed=True)]
    cases: list[tuple[Creation, object, bool | None]] = [
        (mine, [Created(stored)], True),
        (mine, [lost], False),
        (theirs, [Created(stored)], False),
        (mine, gone, None),
        (mine, nothing, None),
        (mine, [*nothing, lost], False),
        (mine, [], None),
    ]

    def ask(connection: Connection) -> list[bool | None]:
        return [creation.was_stored(connection, made, result) for made, result, _ in cases]

    assert store.write(ask) == [verdict for *_, verdict in cases]


def test_s2_whether_files_were_stored_is_told_by_an_id_of_any_of_them(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_resumes(store, ana, 1)
    writes: list[Write] = []
    really_submit = store.write_queue.submit

    def submit(write: Write) -> None:
        writes.append(write)
        really_submit(write)

    refused, made = (
        Creation(ana.id, new, store.clock(), a_claim(digit * 24), Verdict(FileOutcome.FAILED, "x"))
        for digit, new in (("1", []), ("2", [a_resume()]))
    )
    with monkeypatch.context() as patched:
        patched.setattr(store.write_queue, "submit", submit)
        told = creation.create_files(store, [refused, made])

    lost: list[object] = [[], [Created("f" * 24)]]
    nothing: list[object] = [[], []]

    def ask(connection: Connection) -> list[bool | None]:
        return [was_committed(connection, writes, results) for results in (told, lost, nothing)]

    assert store.write(ask) == [True, False, None]


# How long it is waited for


@pytest.mark.parametrize("way", ["create", "create_files", "create_async"])
def test_a_create_waits_no_longer_than_it_is_told(store: Store, ana: AccountInfo, way: str) -> None:
    new = a_resume()

    def create_within(deadline_s: float) -> object:
        match way:
            case "create":
                return create(store, ana.id, [new], deadline_s=deadline_s)
            case "create_files":
                files = [Creation(ana.id, [new], store.clock(), a_claim())]
                return creation.create_files(store, files, deadline_s=deadline_s)
            case _:
                soon = creation.create_async(store, ana.id, new, deadline_s=deadline_s)
                return asyncio.run(soon)

    go_on, holder = hold_writer(store)
    with ThreadPoolExecutor() as threads:
        # As long as the other would wait that is told nothing, but for a little.
        waiting = threads.submit(create, store, ana.id, [new], deadline_s=WRITE_DEADLINE_S - 1)
        wait_until(lambda: store.write_queue.waiting == 1)
        with pytest.raises(StoreUnavailable, match="busy"):
            create_within(0.01)
        was_first = not waiting.done()
        go_on.set()
        holder.join()
        assert was_first
        assert len(made_ids(waiting.result())) == 1
