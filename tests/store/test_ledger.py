"""The ledger: what became of each file that an importer took, and in which order it is shown."""

import json
from typing import Any

import pytest

from resumes.errors import InvalidArgument, NotFound
from resumes.store import Store, accounts, creation, import_history, import_ledger, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created, Duplicate
from resumes.store.import_history import (
    FileCount,
    Position,
    count_files,
    list_by_outcome,
    parse_place,
)
from resumes.store.import_ledger import (
    MAX_PROBLEMS,
    SO_FAR,
    FileOutcome,
    Item,
    Items,
    Problem,
    Verdict,
    parse_items,
)
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import MakeAccount, a_file, made_ids

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
    return "".join(file.claim_id[0] for file in list_by_outcome(store, **filters).files)


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


def test_recording_for_an_account_that_is_gone_does_nothing(store: Store) -> None:
    import_ledger.record(store, "f" * 16, a_claim(), Verdict(FAILED))
    assert import_history.list_files(store) == []


def test_a_file_whose_resumes_are_being_imported_says_so(store: Store, ana: AccountInfo) -> None:
    import_ledger.record(store, ana.id, a_claim("1" * 24), SO_FAR)
    assert import_history.get_file(store, "1" * 24).is_under_way


def test_a_file_is_looked_for_in_one_account_or_in_all(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    a_file(store, ana, "1" * 24)
    for account_id in (None, ana.id):
        assert import_history.get_file(store, "1" * 24, account_id=account_id).account == "ana"
    for claim_id, account_id in (("1" * 24, bo.id), ("3" * 24, None)):
        with pytest.raises(NotFound, match=claim_id):
            import_history.get_file(store, claim_id, account_id=account_id)


def test_the_items_of_a_claim_say_which_resumes_they_became(store: Store, ana: AccountInfo) -> None:
    new = [a_resume(f"P {number}", item=number) for number in (3, 5, 7)]
    made = made_ids(creation.create(store, ana.id, new, claim=a_claim()))
    items = [Item(item, DONE, id_) for item, id_ in zip((3, 5, 7), made, strict=True)]
    assert import_ledger.find_items(store, ana.id, "0" * 24) == items
    assert import_ledger.find_items(store, ana.id, "0" * 24, limit=2) == items[:2]
    assert import_ledger.find_items(store, ana.id, "1" * 24) == []


def test_the_one_resume_of_a_file_has_no_number_and_is_remembered_when_it_is_deleted(
    store: Store, ana: AccountInfo
) -> None:
    new = a_resume(with_digest=True)
    (made,) = made_ids(creation.create(store, ana.id, [new], claim=a_claim()))
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


def test_stored_content_is_found_by_its_digest(store: Store, ana: AccountInfo) -> None:
    new = a_resume(with_digest=True)
    assert new.digest is not None
    assert import_ledger.find_stored(store, ana.id, new.digest) is None
    (made,) = made_ids(creation.create(store, ana.id, [new]))
    assert import_ledger.find_stored(store, ana.id, new.digest) == made


def test_the_file_of_a_resume_is_found_also_when_it_was_held_for_long(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    made = {}
    for waited_s in (1, 1, 100_000):
        claim_id = f"{clock.now_us:016x}{'ab' * 4}"
        clock.advance(waited_s)
        (resume_id,) = made_ids(
            creation.create(store, ana.id, [a_resume()], claim=a_claim(claim_id))
        )
        made[resume_id] = claim_id
    of_several = [a_resume(f"P {item}", item=item) for item in (1, 2)]
    for resume_id in made_ids(creation.create(store, ana.id, of_several, claim=a_claim())):
        made[resume_id] = "0" * 24
    assert {one: import_ledger.find_claim(store, ana.id, one) for one in made} == made
    (other,) = made_ids(creation.create(store, ana.id, [a_resume()]))
    assert import_ledger.find_claim(store, ana.id, other) is None


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
    filters: dict[str, dict[str, Any]] = {
        "421": {"outcome": FAILED},
        "41": {"outcome": FAILED, "account_id": ana.id},
        "3": {"outcome": HELD},
        "5": {"outcome": DONE},
        "42": {"reason": "too_large"},
        "2": {"reason": "too_large", "before": "4" * 24},
    }
    for expected, some in filters.items():
        assert listed(store, **some) == expected
    for outcome in (HELD, DONE):
        assert listed(store, reason="too_large", outcome=outcome) == ""
    assert listed(store, outcome=DUPLICATE) == ""

    failed, too_large, held = (
        FileCount(FAILED, "invalid_json", 1),
        FileCount(FAILED, "too_large", 2),
        FileCount(HELD, "quota_reached", 1),
    )
    assert sorted(count_files(store, not_done_only=True)) == [failed, too_large, held]
    assert sorted(count_files(store)[1:]) == [failed, too_large, held]
    assert count_files(store)[0] == FileCount(DONE, None, 1)
    assert count_files(store, account_id=bo.id) == [
        FileCount(DONE, None, 1),
        FileCount(FAILED, "too_large", 1),
    ]
    do(store, ana, "1", name="Bo")
    assert failed not in count_files(store)
    accounts.delete_account(store, "bo", with_resumes=True)
    assert count_files(store)[0] == FileCount(DONE, None, 1)


def some_of_each(store: Store, account: AccountInfo) -> None:
    """Eight files, two of each outcome, mixed as they come."""
    outcomes = (DONE, FAILED, DUPLICATE, HELD, FAILED, DONE, HELD, DUPLICATE)
    for number, outcome in enumerate(outcomes, 1):
        a_file(store, account, f"{number}" * 24, outcome)


def test_page_after_page_shows_what_failed_then_held_then_duplicates_then_done_once(
    store: Store, ana: AccountInfo
) -> None:
    page = list_by_outcome(store)
    assert (page.files, page.next) == ([], None)
    some_of_each(store, ana)
    for size in range(1, 9):
        seen, after = "", None
        for _ in range(8 // size + 1):
            page = list_by_outcome(store, after=after, limit=size)
            seen += "".join(file.claim_id[0] for file in page.files)
            after = page.next
            if after is None:
                break
        assert (seen, after) == ("52748361", None)


def test_what_asks_for_something_comes_first_over_all_accounts_or_of_some_files_alone(
    store: Store, an_account: MakeAccount
) -> None:
    ana, ben = an_account("ana"), an_account("ben")
    some_of_each(store, ana)
    a_file(store, ben, "9" * 24, HELD, reason="too_large")
    a_file(store, ben, "a" * 24, FAILED, reason="too_large")
    for filters, expected in (
        ({}, "a529748361"),
        ({"account_id": ben.id}, "a9"),
        ({"outcome": FAILED}, "a52"),
        ({"outcome": DONE}, "61"),
        ({"reason": "too_large"}, "a9"),
        ({"reason": "too_large", "outcome": HELD}, "9"),
        ({"outcome": FAILED, "after": Position(FAILED, "5" * 24)}, "2"),
        ({"outcome": FAILED, "after": Position(HELD, "5" * 24)}, ""),
    ):
        assert sorted_out(store, **filters) == expected, filters
    # A file that comes to another end meanwhile is not lost.
    after = list_by_outcome(store, limit=3).next
    a_file(store, ana, "2" * 24, DONE)
    assert sorted_out(store, after=after) == "974836" + "21"


def test_a_place_is_read_back_from_its_text(store: Store, ana: AccountInfo) -> None:
    file = a_file(store, ana, "1" * 24)
    place = Position(file.outcome, file.claim_id)
    assert str(place) == "failed:" + "1" * 24
    assert parse_place(str(place)) == place
    for text in ("", "failed", "failed:", "lost:" + "1" * 24, "1" * 24):
        with pytest.raises(InvalidArgument, match="Invalid position"):
            parse_place(text)


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


@pytest.mark.parametrize("text", ["", "not json", "[1,2]", "7", "null", "{}", "[" * 5_000])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_items(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("total", None), ("done", "1"), ("duplicate", -1), ("held", 1.5), ("failed", True),
        ("problems", {}), ("problems", [7]), ("problems", [{}]),
    ],
)  # fmt: skip
def test_counts_and_problems_are_what_they_have_to_be(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        parse_items(json.dumps(WHOLE | {name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("item", "0"), ("place", None), ("outcome", "zz"), ("outcome", []), ("reason", 7),
        ("message", []), ("path", {}), ("byteOffset", "5"),
    ],
)  # fmt: skip
def test_each_field_of_a_problem_is_what_it_has_to_be(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        parse_items(json.dumps(WHOLE | {"problems": [AS_JSON | {name: value}]}))
