"""Imports: what became of each file, in which order it is shown, what importers are asked for, and
which importers there are."""

import json
from typing import Any

import pytest

from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.store import (
    Store,
    accounts,
    creation,
    import_history,
    import_ledger,
    import_requests,
    importers,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created, Duplicate
from resumes.store.import_history import FileCount, count_files, list_by_outcome
from resumes.store.import_ledger import (
    IN_PROGRESS,
    MAX_PROBLEMS,
    FileOutcome,
    Item,
    Items,
    Problem,
    Verdict,
    parse_items,
)
from resumes.store.import_requests import RequestKind
from resumes.store.importers import ImporterFinding, ImporterState, SeenImporter
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import NOW, MakeAccount, a_file, an_importer, damage, made_ids

pytestmark = pytest.mark.engines

FAILED, HELD, DUPLICATE, DONE = (
    FileOutcome.FAILED,
    FileOutcome.HELD,
    FileOutcome.DUPLICATE,
    FileOutcome.DONE,
)


def listed(store: Store, **filters: Any) -> str:
    """The first digits of the ids of files, the newest first."""
    return "".join(row.claim_id[0] for row in import_history.list_files(store, **filters))


def sorted_out(store: Store, **filters: Any) -> str:
    """The first digits of the ids of files, what asks for something first."""
    return "".join(file.claim_id[0] for file in list_by_outcome(store, **filters)[0])


def do(store: Store, account: AccountInfo, digit: str, **options: Any) -> str:
    """The id of the resume of a file that is done."""
    new = [a_resume(**options)]
    (made,) = made_ids(creation.create(store, account.id, new, claim=a_claim(digit * 24)))
    return made


# One file


def test_a_file_that_failed_is_recorded_with_its_reason_and_source_and_once_it_is_done_without(
    store: Store, ana: AccountInfo
) -> None:
    items = Items(total=3, done=2, duplicate=0, held=0, failed=1)
    claim = a_claim(name="bad.json", root="/srv/inbox", items=json.dumps(items.as_json()))
    verdict = Verdict(FAILED, "invalid_json", "Invalid JSON", byte_offset=17)
    import_ledger.record(store, ana.id, claim, verdict)
    (row,) = import_history.list_files(store)
    assert (row.account_id, row.account, row.name, row.outcome) == (
        ana.id, "ana", "bad.json", FAILED,
    )  # fmt: skip
    assert (row.reason, row.byte_offset, row.is_under_way) == ("invalid_json", 17, False)
    assert (row.root, row.items) == ("/srv/inbox", items)
    assert import_history.find_source(store, row) == b"{"

    do(store, ana, "0")

    (row,) = import_history.list_files(store)
    assert (row.outcome, row.reason, row.root, row.items) == (DONE, None, None, None)
    assert import_history.find_source(store, row) is None
    assert (listed(store, outcome=FAILED), listed(store, outcome=DONE)) == ("", "0")


def test_a_file_is_looked_for_in_one_account_or_in_all(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    import_ledger.record(store, ana.id, a_claim("1" * 24), IN_PROGRESS)
    import_ledger.record(store, "f" * 16, a_claim("3" * 24), Verdict(FAILED))  # it is gone
    for account_id in (None, ana.id):
        found = import_history.get_file(store, "1" * 24, account_id=account_id)
        assert (found.account, found.is_under_way) == ("ana", True)
    for claim_id, account_id in (("1" * 24, bo.id), ("3" * 24, None)):
        with pytest.raises(NotFound, match=claim_id):
            import_history.get_file(store, claim_id, account_id=account_id)


def test_the_items_of_a_claim_say_which_resumes_they_became(store: Store, ana: AccountInfo) -> None:
    new = [a_resume(f"P {number}", item=number) for number in (3, 5, 7)]
    new[1:1] = [a_resume(name, item=4, idempotency="one") for name in ("P 4", "Refused")]
    made = made_ids(creation.create(store, ana.id, new, claim=a_claim()))
    items = [Item(item, DONE, id_) for item, id_ in zip((3, 4, 5, 7), made, strict=True)]
    assert import_ledger.find_items(store, ana.id, "0" * 24) == items
    assert import_ledger.find_items(store, ana.id, "0" * 24, limit=2) == items[:2]
    assert import_ledger.find_items(store, ana.id, "1" * 24) == []


def test_the_one_resume_of_a_file_has_no_number_and_is_remembered_when_it_is_deleted(
    store: Store, ana: AccountInfo
) -> None:
    new = a_resume(with_digest=True)
    assert new.digest is not None
    assert creation.find_duplicate(store, ana.id, new.digest) is None
    (made,) = made_ids(creation.create(store, ana.id, [new], claim=a_claim()))
    assert creation.find_duplicate(store, ana.id, new.digest) == Duplicate(made)
    again = creation.create(store, ana.id, [new], claim=a_claim("1" * 24))
    assert again == [Duplicate(made)]
    stored_resumes.delete_resume(store, ana.id, made)
    gone = Item(0, DONE, made, is_deleted=True)
    assert import_ledger.find_items(store, ana.id, "0" * 24) == [gone]
    duplicate = Item(0, DUPLICATE, made, is_deleted=True)
    assert import_ledger.find_items(store, ana.id, "1" * 24) == [duplicate]
    # Its claim is imported once, though its content is not stored any more.
    replayed = creation.create(store, ana.id, [new], claim=a_claim())
    assert replayed == [Created(made, replayed=True)]
    import_ledger.record(store, ana.id, a_claim(), Verdict(FAILED, "internal_error"))
    assert import_ledger.find_items(store, ana.id, "0" * 24) == [gone]
    assert creation.create(store, ana.id, [new], claim=a_claim()) == replayed
    assert stored_resumes.list_page(store, ana.id).entries == []


@pytest.mark.parametrize("is_of_1_0", [False, True])
def test_the_file_of_a_resume_is_found_also_when_it_was_held_for_long(
    store: Store, ana: AccountInfo, clock: SteppingClock, is_of_1_0: bool
) -> None:
    made = {}
    for waited_s in (1, 1, 100_000):
        claim_id = f"{clock.now_us:016x}{'ab' * 4}"
        clock.advance(waited_s)
        (resume_id,) = made_ids(
            creation.create(store, ana.id, [a_resume()], claim=a_claim(claim_id))
        )
        made[resume_id] = claim_id
    bundle = [a_resume(f"P {item}", item=item) for item in (1, 2)]
    for resume_id in made_ids(creation.create(store, ana.id, bundle, claim=a_claim())):
        made[resume_id] = "0" * 24
    if is_of_1_0:
        damage(store, "UPDATE resumes SET claim_id = NULL")
    assert {one: import_ledger.find_claim(store, ana.id, one) for one in made} == made
    (other,) = made_ids(creation.create(store, ana.id, [a_resume()]))
    assert import_ledger.find_claim(store, ana.id, other) is None


def test_a_resume_knows_its_file_whatever_the_ledger_forgets(
    store: Store, ana: AccountInfo
) -> None:
    bundle = [a_resume(f"P {item}", item=item) for item in (1, 2)]
    made = made_ids(creation.create(store, ana.id, bundle, claim=a_claim()))
    made += made_ids(creation.create(store, ana.id, [a_resume()], claim=a_claim("1" * 24)))
    import_ledger.forget_items(store, ana.id, "0" * 24)
    damage(store, "DELETE FROM imported_files")
    found = [import_ledger.find_claim(store, ana.id, one) for one in made]
    assert found == ["0" * 24, "0" * 24, "1" * 24]
    stored_resumes.delete_resume(store, ana.id, made[0])
    assert import_ledger.find_claim(store, ana.id, made[0]) is None


# Lists


def test_files_are_listed_newest_first_whoever_they_are_of(
    store: Store, an_account: MakeAccount
) -> None:
    owners = [an_account(name) for name in ("ana", "bo", "cy")]
    for number in range(1, 16):
        a_file(store, owners[number % 3], f"{number:x}" * 24)
    assert listed(store) == "fedcba987654321"
    assert listed(store, limit=4) == "fedc"
    assert listed(store, account_id=owners[0].id) == "fc963"
    seen: list[str] = []
    while page := import_history.list_files(store, limit=4, before=seen[-1] if seen else None):
        seen += [row.claim_id for row in page]
    assert "".join(one[0] for one in seen) == "fedcba987654321"
    assert {row.account for row in import_history.list_files(store, limit=4)} == {"ana", "bo", "cy"}


def test_files_are_listed_and_counted_by_outcome_and_reason(
    store: Store, an_account: MakeAccount
) -> None:
    assert count_files(store) == [FileCount(DONE, None, 0)]
    ana, bo = an_account("ana"), an_account("bo")
    a_file(store, ana, "1" * 24)
    a_file(store, bo, "2" * 24, reason="too_large")
    a_file(store, ana, "3" * 24, HELD, reason="quota_reached")
    a_file(store, ana, "4" * 24, reason="too_large")
    do(store, bo, "5")
    of_ana: dict[str, Any] = {"account_id": ana.id}
    too_large: dict[str, Any] = {"reason": "too_large"}
    for filters, newest_first, by_outcome in (
        ({}, "54321", "42135"),
        ({"outcome": FAILED}, "421", "421"),
        ({"outcome": FAILED} | of_ana, "41", "41"),
        (of_ana, "431", "413"),
        ({"outcome": HELD}, "3", "3"),
        ({"outcome": DUPLICATE}, "", ""),
        ({"outcome": DONE}, "5", "5"),
        (too_large, "42", "42"),
        ({"outcome": HELD} | too_large, "", ""),
        ({"outcome": DONE} | too_large, "", ""),
    ):
        assert listed(store, **filters) == newest_first, filters
        assert sorted_out(store, **filters) == by_outcome, filters
    assert listed(store, reason="too_large", before="4" * 24) == "2"
    assert sorted_out(store, outcome=FAILED, after="failed:" + "4" * 24) == "21"
    assert sorted_out(store, outcome=FAILED, after="held:" + "4" * 24) == ""

    failed, of_reason, held = (
        FileCount(FAILED, "invalid_json", 1),
        FileCount(FAILED, "too_large", 2),
        FileCount(HELD, "quota_reached", 1),
    )
    done = FileCount(DONE, None, 1)
    assert sorted(count_files(store, not_done_only=True)) == [failed, of_reason, held]
    assert count_files(store)[0] == done
    assert sorted(count_files(store)[1:]) == [failed, of_reason, held]
    assert count_files(store, account_id=bo.id) == [done, FileCount(FAILED, "too_large", 1)]
    # A file that comes to another end meanwhile is not lost.
    _, after = list_by_outcome(store, limit=1)
    do(store, ana, "1", name="Bo")
    assert sorted_out(store, after=after) == "2351"
    assert failed not in count_files(store)
    accounts.delete_account(store, "bo", with_resumes=True)
    assert count_files(store)[0] == done


def test_page_after_page_shows_what_failed_then_held_then_duplicates_then_done_once(
    store: Store, ana: AccountInfo
) -> None:
    assert list_by_outcome(store) == ([], None)
    outcomes = (DONE, FAILED, DUPLICATE, HELD, FAILED, DONE, HELD, DUPLICATE)
    for number, outcome in enumerate(outcomes, 1):
        a_file(store, ana, f"{number}" * 24, outcome)
    for size in range(1, 9):
        seen = ""
        after: str | None = None
        for _ in range(8 // size + 1):
            page, after = list_by_outcome(store, after=after, limit=size)
            seen += "".join(file.claim_id[0] for file in page)
            if after is None:
                break
        assert (seen, after) == ("52748361", None)
    for text in ("", "failed", "failed:", "lost:" + "1" * 24, "1" * 24):
        with pytest.raises(InvalidArgument, match="Invalid position"):
            list_by_outcome(store, after=text)


# What became of a file's resumes

PROBLEM = Problem(3, "line 4", "failed", "invalid_json", "Invalid JSON", None, 12)
AS_JSON: dict[str, Any] = {
    "item": 3, "place": "line 4", "outcome": "failed", "reason": "invalid_json",
    "message": "Invalid JSON", "path": None, "byteOffset": 12,
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "total": 1, "done": 0, "duplicate": 0, "held": 0, "failed": 1, "problems": [AS_JSON],
}  # fmt: skip


def test_what_became_of_a_file_s_resumes_survives_the_ledger() -> None:
    assert parse_items(json.dumps(WHOLE)) == Items(1, 0, 0, 0, 1, (PROBLEM,))
    later = {"warnings": 2, "skipped": 3}  # than 1.0.0
    assert Items(1, 0, 0, 0, 1, (PROBLEM,), 2, 3).as_json() == WHOLE | later
    assert parse_items(json.dumps(WHOLE | later | {"unknown": 1})).skipped == 3
    least = {"item": 0, "place": "line 1", "outcome": "held"}
    (problem,) = parse_items(json.dumps(WHOLE | {"problems": [least]})).problems
    assert problem == Problem(0, "line 1", "held")
    many = Items(99, 0, 0, 0, 99, tuple(Problem(at, "", "failed") for at in range(99)))
    kept = parse_items(json.dumps(many.as_json())).problems
    assert [problem.item for problem in kept] == list(range(MAX_PROBLEMS))


# What importers are asked for


def asked(store: Store, *, root: str | None = None) -> list[tuple[str, str]]:
    """The first digit of the files that something is asked for, and what."""
    found = import_requests.list_requests(store, root=root)
    return sorted((one.claim_id[0], one.action) for one in found)


def test_to_ask_twice_is_to_ask_once_and_to_retry_a_held_file_is_to_release_it(
    store: Store, ana: AccountInfo
) -> None:
    assert import_requests.list_requests(store) == []
    failed = a_file(store, ana, "1" * 24)
    held = a_file(store, ana, "2" * 24, HELD)
    assert import_requests.find_request(store, ana.id, failed.claim_id) is None
    for files in ([failed, failed], [failed], [held]):
        import_requests.request_files(store, files, RequestKind.RETRY)
    assert asked(store) == [("1", RequestKind.RETRY), ("2", RequestKind.RELEASE)]
    (request, _) = import_requests.list_requests(store)
    assert (request.requested_at, request.root) == (NOW, "/srv/inbox")
    assert import_requests.find_request(store, ana.id, failed.claim_id) == request


@pytest.mark.parametrize(
    ("action", "outcome", "message"),
    [
        (RequestKind.RELEASE, FAILED, "it failed. Retry it with `resumes imports retry"),
        (RequestKind.RELEASE, DONE, "it is already imported. Only held files can be released"),
        (RequestKind.RETRY, DUPLICATE, "it is a duplicate. Only failed or held files"),
    ],
)
def test_a_file_that_the_action_does_not_fit_is_refused_and_so_are_those_with_it(
    store: Store, ana: AccountInfo, action: RequestKind, outcome: FileOutcome, message: str
) -> None:
    held = a_file(store, ana, "1" * 24, HELD)
    other = a_file(store, ana, "2" * 24, outcome)
    with pytest.raises(Conflict, match=f"Cannot {action} {other.claim_id}: {message}"):
        import_requests.request_files(store, [held, other], action)
    assert asked(store) == []


def test_a_file_that_comes_to_another_end_meanwhile_is_not_asked_for(
    store: Store, ana: AccountInfo
) -> None:
    still, seen_failed = a_file(store, ana, "1" * 24), a_file(store, ana, "2" * 24)
    creation.create(store, ana.id, [a_resume()], claim=a_claim("2" * 24))
    with pytest.raises(Conflict, match="its outcome has just changed"):
        import_requests.request_files(store, [still, seen_failed], RequestKind.RETRY)
    assert asked(store) == []


def test_all_that_failed_or_are_held_can_be_asked_for_of_an_account_or_a_reason_alone(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    a_file(store, ana, "1" * 24)
    a_file(store, bo, "2" * 24, HELD)
    a_file(store, bo, "3" * 24, reason="too_large")
    a_file(store, ana, "4" * 24, DUPLICATE)
    a_file(store, ana, "5" * 24, DONE)
    request_all = import_requests.request_all_files
    retry, release = RequestKind.RETRY, RequestKind.RELEASE
    assert request_all(store, retry, account_id=ana.id, reason="too_large") == 0
    assert request_all(store, retry, reason="too_large") == 1
    assert asked(store) == [("3", retry)]
    assert request_all(store, retry, account_id=ana.id) == 1
    assert asked(store) == [("1", retry), ("3", retry)]
    assert request_all(store, retry) == 2  # once more, which is once
    assert request_all(store, release) == 1
    assert asked(store) == [("1", retry), ("2", release), ("3", retry)]


def test_more_than_fit_into_one_transaction_are_asked_for(store: Store, ana: AccountInfo) -> None:
    count = import_requests.SLICE_REQUESTS + 1
    failed = Verdict(FAILED, "invalid_json")
    claims = [a_claim(f"{number:024x}") for number in range(count)]
    creation.create_files(
        store, [creation.Creation(ana.id, (), store.clock(), claim, failed) for claim in claims]
    )
    assert import_requests.request_all_files(store, RequestKind.RETRY) == count
    found = import_requests.list_requests(store, limit=2 * count)
    assert [one.claim_id for one in found] == [claim.claim_id for claim in claims]


def test_what_was_taken_up_is_asked_for_no_more_and_the_longest_wait_is_dated(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    assert import_requests.find_oldest(store) is None
    for digit in "213":
        failed = a_file(store, ana, digit * 24)
        import_requests.request_files(store, [failed], RequestKind.RETRY)
        clock.advance(60)
    assert import_requests.find_oldest(store) == NOW
    _, second = import_requests.list_requests(store, limit=2)
    for _ in range(2):
        import_requests.drop_requests(store, [second])
        assert [digit for digit, _ in asked(store)] == ["1", "3"]
    import_requests.drop_requests(store, import_requests.list_requests(store))
    assert asked(store) == []


@pytest.mark.parametrize("is_done", [False, True])
def test_a_request_that_cannot_be_met_is_gone_and_the_file_says_why_unless_it_is_done(
    store: Store, ana: AccountInfo, clock: SteppingClock, is_done: bool
) -> None:
    import_requests.request_files(store, [a_file(store, ana, "1" * 24)], RequestKind.RETRY)
    if is_done:
        creation.create(store, ana.id, [a_resume()], claim=a_claim("1" * 24))
    clock.advance(60)
    import_requests.refuse_request(store, ana.id, "1" * 24, "The file is gone")
    assert asked(store) == []
    file = import_history.get_file(store, "1" * 24)
    if is_done:
        assert file.message is None
    else:
        assert (file.outcome, file.reason) == (FAILED, "invalid_json")
        assert (file.message, file.finished_at) == ("The file is gone", "2027-01-15T08:01:00.000Z")


def test_an_importer_sees_what_is_asked_for_its_own_folder_and_what_nobody_watches(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    assert import_requests.list_unwatched_roots(store) == []
    for number, root in enumerate(("/srv/inbox", "/srv/moved", None, "/srv/live"), 1):
        a_file(store, ana, f"{number}" * 24, root=root)
    import_requests.request_all_files(store, RequestKind.RETRY)
    importers.register(store, an_importer("a" * 24, root="/srv/live"))

    def strays(**more: int) -> list[str]:
        found = import_requests.list_strays(store, root="/srv/inbox", **more)
        return [one.claim_id[0] for one in found]

    assert [digit for digit, _ in asked(store, root="/srv/inbox")] == ["1", "3"]
    assert [digit for digit, _ in asked(store)] == ["1", "2", "3", "4"]
    assert strays() == ["2"]
    assert strays(limit=0) == []
    assert import_requests.list_unwatched_roots(store) == ["/srv/inbox", "/srv/moved"]
    clock.advance(60)
    assert strays() == ["4", "2"]
    unwatched = [None, "/srv/inbox", "/srv/live", "/srv/moved"]
    assert import_requests.list_unwatched_roots(store) == unwatched


# Importers


def alive(store: Store) -> list[str]:
    """The first digit of the ids of the importers."""
    return [seen.id[0] for seen in importers.list_importers(store)]


def test_an_importer_is_listed_once_as_it_said_last_and_live_for_a_minute(
    store: Store, clock: SteppingClock
) -> None:
    findings = (
        ImporterFinding("events", ImporterState.POLLING, "The folder tells of no changes."),
    )
    importer = an_importer(state=ImporterState.POLLING, findings=findings)
    importers.register(store, importer)
    (seen,) = importers.list_importers(store)
    assert seen == SeenImporter(**dict(importer), age_s=0)
    clock.advance(10)
    now = an_importer(waiting=None)
    importers.register(store, now)
    # Whatever the clock does.
    for step_s, age_s, is_live in ((0, 0, True), (59, 59, True), (1, 60, False), (-3_660, 0, True)):
        clock.advance(step_s)
        (seen,) = importers.list_importers(store)
        assert seen == SeenImporter(**dict(now), age_s=age_s)
        assert seen.is_live == is_live


@pytest.mark.parametrize("sign", [1, -1])  # silent for a day, or of a clock that was ahead by one
def test_an_importer_is_forgotten_after_a_day(
    store: Store, clock: SteppingClock, sign: int
) -> None:
    importers.register(store, an_importer("1" * 24))
    clock.advance(sign * 24 * 3_600)
    assert alive(store) == ["1"]
    clock.advance(sign)
    assert alive(store) == []
    importers.register(store, an_importer("2" * 24))
    clock.advance(-sign * 3_600)
    assert alive(store) == ["2"]


def test_importers_are_listed_by_folder_the_last_seen_first_until_they_leave(
    store: Store, clock: SteppingClock
) -> None:
    for importer_id, root in (("1" * 24, "/b"), ("2" * 24, "/a"), ("3" * 24, "/b")):
        importers.register(store, an_importer(importer_id, root=root))
        clock.advance(1)
    assert alive(store) == ["2", "3", "1"]
    importers.leave(store, "3" * 24)
    importers.leave(store, "4" * 24)
    assert alive(store) == ["2", "1"]
