"""Resumes on their way in: by the one path that clients, importers and the terminal share; and repeats."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import text
from sqlmodel import Session

from resumes.errors import IdempotencyMismatch, NotFound, QuotaReached, StoreUnavailable
from resumes.store import (
    Store,
    accounts,
    creation,
    import_history,
    open_store,
    plans,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created, Creation, Duplicate, NewResume, create
from resumes.store.idempotency import KEPT, SLICE_KEYS, prune_async
from resumes.store.import_ledger import Analysis, FileOutcome, Items, Verdict
from resumes.store.store import WRITE_DEADLINE_S
from resumes.store.write_queue import Write, was_committed
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    MakeAccount,
    add_resumes,
    count_rows,
    damage,
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
    outcome, _ = create(store, ana.id, [new, a_resume("Bo")])
    entry, other = stored_resumes.list_page(store, ana.id).entries
    assert outcome == Created(entry.id)
    assert (entry.name, entry.filename) == ("Zoë 山田", "Zoë山田Resume.pdf")
    found = stored_resumes.StoredResume(entry, new.resume.document.decode())
    assert stored_resumes.get_resume(store, ana.id, entry.id) == found
    assert stored_resumes.get_entry(store, ana.id, other.id) == other
    with store.read() as connection:
        kind, of_bytes = ("typeof", "blob") if store.path else ("pg_typeof", "bytea")
        documents = connection.execute(text(f"SELECT DISTINCT {kind}(document) FROM documents"))
        digests = connection.execute(text(f"SELECT {kind}(digest) FROM imported_digests"))
        assert (documents.scalar_one(), digests.scalar_one()) == ("text", of_bytes)


def test_the_first_month_is_kept_as_it_was_parsed(store: Store, ana: AccountInfo) -> None:
    for first_month in (None, 0, 1):
        parsed = a_resume().resume._replace(first_month=first_month)
        (created,) = made_ids(create(store, ana.id, [NewResume(parsed)]))
        assert stored_resumes.get_resume(store, ana.id, created).first_month == first_month


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
    # A lowered limit deletes nothing, and refuses until what is stored fits.
    limit(store, 1)
    for resume_id in made_ids(outcomes):
        assert isinstance(create(store, ana.id, [a_resume()])[0], QuotaReached)
        stored_resumes.delete_resume(store, ana.id, resume_id)
    assert isinstance(create(store, ana.id, [a_resume()])[0], Created)
    assert accounts.list_wrong(store) == []


def test_parallel_creates_of_two_processes_at_the_edge_of_the_quota_never_exceed_it(
    store: Store, url: str, ana: AccountInfo
) -> None:
    limit(store, 10)
    with open_store(url) as other, ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(create, one, ana.id, [a_resume()]) for one in (store, other) * 20]
        outcomes = [outcome for call in calls for outcome in call.result()]
    assert sum(isinstance(outcome, QuotaReached) for outcome in outcomes) == 30
    assert listed_ids(store, ana) == sorted(made_ids(outcomes))


def taken(store: Store, account: AccountInfo, counts: Sequence[int]) -> list[int]:
    """Whether so many places were taken, for each count in turn: 1, else 0."""

    def take(count: int, session: Session) -> int:
        taken = creation.TAKE_PLACES.run(
            session.connection(), account=account.id, places=count, last_id=2**60
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
    accounts.delete_account(store, "ana", with_resumes=True, should_continue=lambda gone: False)
    for account_id in ("f" * 16, ana.id):
        for new in (a_resume("New"), a_resume(with_digest=True)):
            with pytest.raises(NotFound, match="Account not found"):
                create(store, account_id, [new])
        with pytest.raises(NotFound, match=r"\AAccount not found\Z"):
            asyncio.run(creation.find_early_outcome(store, account_id, None))
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
    limit(store, 0)
    create(store, ana.id, [a_resume("Ada", with_digest=True)], claim=a_claim("1" * 24))
    limit(store, 5)
    first = create_one(store, ana, claim=a_claim("2" * 24))  # a refused file occupies nothing
    assert create_one(store, an_account("bo")) != first
    stored_resumes.delete_resume(store, ana.id, first)
    assert create_one(store, ana) != first


def test_a_file_whose_resume_is_stored_is_known_from_then_on(
    store: Store, ana: AccountInfo
) -> None:
    stored, new = create_one(store, ana), a_resume("Ada", with_digest=True)
    analyzed = [new._replace(original=bytes([number]) * 32) for number in (1, 2)]
    assert create(store, ana.id, analyzed) == [Duplicate(stored)] * 2
    for file in analyzed:
        assert file.original is not None
        assert creation.find_duplicate(store, ana.id, file.original) == Duplicate(stored)
    assert create(store, ana.id, [a_resume("Bo")._replace(original=b"\1" * 32)]) == [
        Duplicate(stored)
    ]


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
    # So is a file that was a duplicate before it was read.
    known, claim = Verdict(FileOutcome.DUPLICATE, "duplicate"), a_claim("1" * 24)
    unread = Creation(ana.id, (), store.clock(), claim, known, resume_id=stored)
    assert creation.create_files(store, [unread]) == [[]]
    assert create(store, ana.id, [a_resume()], claim=claim) == [Duplicate(stored)]
    assert listed_ids(store, ana) == []


# Ids


def test_s15_ids_rise_in_a_burst_and_when_the_newest_went_or_the_clock_goes_back(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    burst = add_resumes(store, ana, 500)
    clock.advance(-3_600)
    later = add_resumes(store, ana, 2)
    assert burst + later == sorted(burst + later)
    assert int(later[-1][:16], 16) == 1_800_000_000_000_000 + 501
    created = stored_resumes.get_entry(store, ana.id, later[0]).created_at
    assert created == "2027-01-15T07:00:00.000Z"  # by the clock, not by the id
    stored_resumes.delete_resume(store, ana.id, later[-1])
    (next_one,) = add_resumes(store, ana, 1)
    assert next_one[:16] > later[-1][:16]


# Files


def files_of(
    store: Store, resumes: Sequence[tuple[str, NewResume]]
) -> list[list[creation.Outcome] | NotFound | StoreUnavailable]:
    """What became of a file for each account's ID and resume, all at once."""
    files = [
        Creation(account_id, [new], store.clock(), a_claim(f"{number:024x}"))
        for number, (account_id, new) in enumerate(resumes)
    ]
    return creation.create_files(store, files)


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
    store: Store, ana: AccountInfo, names: list[str], failed: Verdict | None, expected: FileOutcome
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
    owners = (first, gone, second, gone)
    results = files_of(store, [(account_id, a_resume()) for account_id in owners])
    for answer in (results[1], results[3]):
        assert isinstance(answer, NotFound)
        assert answer.message == "Account not found"
    assert [accounts.get_account(store, name).resume_count for name in ("ana", "bo")] == [1, 1]


@pytest.mark.parametrize("count", [3, 64, 65, 200])  # 64 are looked up together
def test_i1_a_batch_of_files_knows_what_is_stored_or_comes_twice_and_answers_alike_again(
    store: Store, ana: AccountInfo, an_account: MakeAccount, count: int
) -> None:
    create_one(store, an_account("bo"), "Person 1")
    stored = create_one(store, ana, "stored")
    batch = [a_resume(f"Person {number}", with_digest=True) for number in range(count)]
    batch[0] = batch[-1] = a_resume("stored", with_digest=True)
    batch.append(batch[1])
    files = [(ana.id, new) for new in batch]

    first = files_of(store, files)

    assert first[0] == first[-2] == [Duplicate(stored)]
    made = [made_ids(outcomes)[0] for outcomes in first[1:-2] if isinstance(outcomes, list)]
    assert first[-1] == [Duplicate(made[0])]
    assert accounts.get_account(store, "ana").resume_count == 1 + len(made) == count - 1
    again = files_of(store, files)
    assert again[1:-2] == [[Created(one, replayed=True)] for one in made]
    assert (again[0], again[-2:]) == (first[0], first[-2:])
    outcomes = [row.outcome for row in import_history.list_files(store, limit=500)]
    assert outcomes.count(FileOutcome.DUPLICATE) == 3
    assert outcomes.count(FileOutcome.DONE) == count - 2


def test_the_ledger_has_each_file_as_it_ended_with_why_and_its_source_until_it_is_done(
    store: Store, ana: AccountInfo
) -> None:
    limit(store, 2)
    failed = Verdict(FileOutcome.FAILED, "invalid_json", "no", "title", 7)
    items = Items(total=1, done=1, duplicate=0, held=0, failed=0)
    ada = a_resume("Ada", with_digest=True, idempotency="once")
    analysis = Analysis("0" * 64, 1.5)
    analyzed = Items(total=2, done=1, duplicate=0, held=0, failed=1, analysis=analysis)
    cases: list[tuple[list[NewResume], Items | None, Verdict | None]] = [
        ([ada], None, None),
        ([], analyzed, failed),
        ([a_resume("Bo")], items, None),
        ([a_resume("Ada", with_digest=True)], None, None),
        ([a_resume("Cy", idempotency="once")], None, None),
        ([a_resume("Di")], None, None),
    ]
    claims = [a_claim(f"{number}" * 24, items=json.dumps(found.as_json()) if found else None)
              for number, (_, found, _) in enumerate(cases)]  # fmt: skip
    creation.create_files(store, [Creation(ana.id, new, store.clock(), claim, why)
                                  for claim, (new, _, why) in zip(claims, cases, strict=True)])  # fmt: skip

    rows = import_history.list_files(store)[::-1]

    stored = min(listed_ids(store, ana))
    duplicate = f"The same content is already stored as {stored}"
    mismatch = "Idempotency-Key was already used with a different body"
    full = "Maximum resume limit reached. Your plan allows 2 resumes"
    assert [(row.outcome, row.reason, row.message) for row in rows] == [
        (FileOutcome.DONE, None, None),
        (FileOutcome.FAILED, "invalid_json", "no"),
        (FileOutcome.DONE, None, None),
        (FileOutcome.DUPLICATE, "duplicate", duplicate),
        (FileOutcome.FAILED, "idempotency_mismatch", mismatch),
        (FileOutcome.HELD, "quota_reached", full),
    ]
    places = [(row.path, row.byte_offset) for row in rows]
    assert places == [(None, None), ("title", 7), *[(None, None)] * 4]
    assert [row.items for row in rows] == [None, None, items, None, None, None]
    assert [row.analysis for row in rows] == [None, analysis, None, None, None, None]
    assert {(row.name, row.size_bytes) for row in rows} == {("ada.json", 100)}
    limit(store, None)
    create(store, ana.id, [a_resume("Di")], claim=claims[-1])
    *rows, last = import_history.list_files(store)[::-1]
    assert (last.outcome, last.reason, last.message) == (FileOutcome.DONE, None, None)
    sources = [import_history.find_source(store, row) for row in (*rows, last)]
    assert sources == [None, b"{", None, b"{", b"{", None]


# Whether a transaction took effect of which nobody heard


def test_s2_whether_a_creation_was_stored_is_told_by_an_id_that_it_made(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    stored, newest = add_resumes(store, ana, 2)
    stored_resumes.delete_resume(store, ana.id, newest)
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
        (mine, [Created("0" * 24)], None),
        (mine, [Created(newest)], None),
        (mine, [*nothing, lost], False),
        (mine, [], None),
    ]

    def ask(session: Session) -> list[bool | None]:
        connection = session.connection()
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

    def ask(session: Session) -> list[bool | None]:
        connection = session.connection()
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


# Idempotency keys, which count for 24 hours

KEPT_S = KEPT.total_seconds()


def keyed(
    store: Store, account: AccountInfo, key: str = "k", name: str = "Ada"
) -> creation.Outcome:
    """What became of a create with this key."""
    (outcome,) = create(store, account.id, [a_resume(name, idempotency=key)])
    return outcome


def made(outcome: creation.Outcome) -> str:
    """The id of a resume that was made just now."""
    assert isinstance(outcome, Created)
    assert not outcome.replayed
    return outcome.id


def let_pass(store: Store, clock: SteppingClock, seconds: float) -> None:
    """So much time passes for keys; a server's own clock stands, and they get older instead."""
    clock.advance(seconds)
    if store.path is None and count_rows(store, "idempotency"):
        older = f"(created_at::timestamptz - interval '{seconds} seconds') AT TIME ZONE 'UTC'"
        pattern = '\'YYYY-MM-DD"T"HH24\\:MI\\:SS.MS"Z"\''
        damage(store, f"UPDATE idempotency SET created_at = to_char({older}, {pattern})")


def keys_in(store: Store) -> list[tuple[str, str]]:
    """The rows of keys, by account and key."""
    with store.read() as connection:
        rows = connection.execute(
            text("SELECT name, key FROM idempotency JOIN accounts ON id = account_id ORDER BY 1, 2")
        )
        return [(row.name, row.key) for row in rows]


def test_a_key_counts_for_24_hours_from_its_first_use_and_then_anew_for_any_body(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    assert KEPT_S == 24 * 3_600
    first = made(keyed(store, ana))
    clock.advance(-3_600)  # it counts also when the clock goes back, and without its resume
    stored_resumes.delete_resume(store, ana.id, first)
    assert keyed(store, ana) == Created(first, replayed=True)
    clock.advance(3_600)
    let_pass(store, clock, KEPT_S - 60)
    assert keyed(store, ana) == Created(first, replayed=True)
    assert isinstance(keyed(store, ana, name="Bo"), IdempotencyMismatch)
    let_pass(store, clock, 60)
    second = made(keyed(store, ana, name="Bo"))
    assert second != first
    let_pass(store, clock, KEPT_S - 60)
    assert keyed(store, ana, name="Bo") == Created(second, replayed=True)
    assert keys_in(store) == [("ana", "k")]


def test_the_keys_of_an_account_are_its_own_and_go_with_it_and_a_refusal_takes_none(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    limit(store, 1)
    assert made(keyed(store, ana)) != made(keyed(store, bo))
    assert isinstance(keyed(store, bo, "refused"), QuotaReached)
    accounts.delete_account(store, "ana", with_resumes=True)
    assert keys_in(store) == [("bo", "k")]


def test_keys_that_count_no_more_are_pruned_whoever_they_are_of_and_however_many(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    old = [a_resume(idempotency=f"old-{number}") for number in range(SLICE_KEYS + 1)]
    create(store, ana.id, old)
    keyed(store, bo, "old")
    let_pass(store, clock, 60)
    keyed(store, ana, "young")
    let_pass(store, clock, KEPT_S - 60)

    assert asyncio.run(prune_async(store)) == SLICE_KEYS + 2

    assert keys_in(store) == [("ana", "young")]
    assert count_rows(store, "resumes") == SLICE_KEYS + 3
    store.write_queue.close()
    assert asyncio.run(prune_async(store)) == 0  # and nothing is written for nothing
    let_pass(store, clock, KEPT_S)
    with pytest.raises(StoreUnavailable):
        asyncio.run(prune_async(store))


def test_a_key_that_is_used_anew_while_it_is_pruned_stays(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    keyed(store, ana)
    let_pass(store, clock, KEPT_S)

    async def scenario() -> int:
        go_on, holder = await asyncio.to_thread(hold_writer, store)
        again = asyncio.create_task(
            creation.create_async(store, ana.id, a_resume("Bo", idempotency="k"))
        )
        await asyncio.to_thread(wait_until, lambda: store.write_queue.waiting == 1)
        pruning = asyncio.create_task(prune_async(store))
        await asyncio.to_thread(wait_until, lambda: store.write_queue.waiting == 2)
        go_on.set()
        await asyncio.to_thread(holder.join)
        made(await again)
        return await pruning

    assert asyncio.run(scenario()) == 0
    assert keys_in(store) == [("ana", "k")]


@pytest.mark.parametrize("ahead_s", [KEPT_S + 60, -KEPT_S - 60])
def test_a_machine_whose_clock_is_wrong_neither_forgets_nor_doubles_what_has_a_key(
    store: Store, url: str, ana: AccountInfo, ahead_s: float
) -> None:
    if store.path is not None:
        pytest.skip("a store in a file has one machine, with one clock")
    wrong = SteppingClock()
    wrong.advance(ahead_s)
    with open_store(url, clock=wrong) as other:
        first = made(keyed(store, ana))
        assert asyncio.run(prune_async(other)) == 0
        assert keyed(other, ana) == Created(first, replayed=True)
        second = made(keyed(other, ana, "theirs"))
        assert asyncio.run(prune_async(store)) == 0
        assert keyed(store, ana, "theirs") == Created(second, replayed=True)
    assert listed_ids(store, ana) == sorted([first, second])
