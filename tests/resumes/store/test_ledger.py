import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from resumes.errors import NotFound
from resumes.store import Store, creating, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.items import Items
from resumes.store.ledger import SO_FAR, FileOutcome, FileVerdict, Item, Verdict
from resumes.store.statements import Prepared, driver
from tests.resumes.builders import a_claim, a_resume

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def failed(
    account: AccountInfo, claim_id: str = "0" * 24, *, reason: str = "invalid_json"
) -> FileVerdict:
    verdict = Verdict(FileOutcome.FAILED, reason, "Invalid JSON", byte_offset=17)
    return FileVerdict(account.id, a_claim(claim_id, name="bad.json"), verdict)


def held(account: AccountInfo, claim_id: str) -> FileVerdict:
    return FileVerdict(account.id, a_claim(claim_id), Verdict(FileOutcome.HELD, "quota_reached"))


def listed(store: Store, **filters: Any) -> list[str]:
    """The first digit of the ids of listed files."""
    return [row.claim_id[0] for row in ledger.list_files(store, **filters)]


def test_a_file_that_failed_is_recorded_with_its_reason(
    store: Store, an_account: MakeAccount
) -> None:
    ledger.record(store, failed(an_account()))
    (row,) = ledger.list_files(store)
    assert (row.account, row.name, row.outcome) == ("ana", "bad.json", FileOutcome.FAILED)
    assert (row.reason, row.byte_offset) == ("invalid_json", 17)


def test_recording_again_replaces_the_claims_outcome(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    ledger.record(store, failed(account))
    creating.create(store, account.id, [a_resume()], claim=a_claim())
    (row,) = ledger.list_files(store)
    assert (row.outcome, row.reason) == (FileOutcome.DONE, None)


def test_recording_for_an_account_that_is_gone_does_nothing(
    store: Store, an_account: MakeAccount
) -> None:
    ledger.record(store, FileVerdict("f" * 16, a_claim(), Verdict(FileOutcome.FAILED)))
    assert ledger.list_files(store) == []


def test_the_items_of_a_claim_say_which_resume_they_became(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    (outcome,) = creating.create(store, account.id, [a_resume(item=3)], claim=a_claim())
    assert isinstance(outcome, creating.Created)
    assert ledger.find_items(store, account.id, "0" * 24) == [Item(3, FileOutcome.DONE, outcome.id)]
    assert ledger.find_items(store, account.id, "1" * 24) == []


def test_the_first_items_of_many_can_be_had_alone(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    new = [a_resume(item=number) for number in range(5)]
    creating.create(store, account.id, new, claim=a_claim())
    assert [one.item for one in ledger.find_items(store, account.id, "0" * 24, limit=2)] == [0, 1]
    assert len(ledger.find_items(store, account.id, "0" * 24)) == 5


def test_a_file_whose_resumes_are_being_imported_says_so(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ledger.record(store, FileVerdict(account.id, a_claim("1" * 24), SO_FAR))
    ledger.record(store, failed(account, "2" * 24))
    assert ledger.get_file(store, "1" * 24).is_under_way
    assert not ledger.get_file(store, "2" * 24).is_under_way


def test_stored_content_is_found_by_its_digest(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    new = a_resume(with_digest=True)
    assert new.digest is not None
    assert ledger.find_stored(store, account.id, new.digest) is None
    (outcome,) = creating.create(store, account.id, [new])
    assert isinstance(outcome, creating.Created)
    assert ledger.find_stored(store, account.id, new.digest) == outcome.id


def test_the_source_is_kept_for_files_that_are_not_done(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ledger.record(store, failed(account, "1" * 24))
    creating.create(store, account.id, [a_resume()], claim=a_claim("2" * 24))
    with store.read() as connection:
        rows = connection.execute(text("SELECT source FROM imported_files ORDER BY claim_id"))
        assert list(rows.scalars()) == [b"{", None]


def test_files_are_listed_newest_first_and_by_account(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    for account, claim_id in ((ana, "1" * 24), (bo, "3" * 24), (ana, "2" * 24)):
        ledger.record(store, failed(account, claim_id))
    assert listed(store) == ["3", "2", "1"]
    assert listed(store, account_id=ana.id) == ["2", "1"]
    assert listed(store, limit=1) == ["3"]


def test_the_newest_of_many_accounts_are_the_newest_of_all(
    store: Store, an_account: MakeAccount
) -> None:
    owners = [an_account(name) for name in ("ana", "bo", "cy")]
    for number in range(1, 16):
        ledger.record(store, failed(owners[number % 3], f"{number:x}" * 24))
    assert listed(store, limit=4) == ["f", "e", "d", "c"]
    assert listed(store, limit=4, before="c" * 24) == ["b", "a", "9", "8"]
    assert {row.account for row in ledger.list_files(store, limit=4)} == {"ana", "bo", "cy"}


def test_going_on_with_the_last_id_shows_every_file_once(
    store: Store, an_account: MakeAccount
) -> None:
    for number in range(7):
        ledger.record(store, failed(an_account(f"a{number}"), f"{number}" * 24))
    seen: list[str] = []
    while page := ledger.list_files(store, limit=2, before=seen[-1] if seen else None):
        seen += [row.claim_id for row in page]
    assert seen == [f"{number}" * 24 for number in reversed(range(7))]


def test_files_are_listed_by_outcome_and_reason(store: Store, an_account: MakeAccount) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    ledger.record(store, failed(ana, "1" * 24))
    ledger.record(store, failed(bo, "2" * 24, reason="too_large"))
    ledger.record(store, held(ana, "3" * 24))
    ledger.record(store, failed(ana, "4" * 24, reason="too_large"))
    creating.create(store, bo.id, [a_resume()], claim=a_claim("5" * 24))
    assert listed(store, outcome=FileOutcome.FAILED) == ["4", "2", "1"]
    assert listed(store, outcome=FileOutcome.FAILED, account_id=ana.id) == ["4", "1"]
    assert listed(store, outcome=FileOutcome.HELD) == ["3"]
    assert listed(store, outcome=FileOutcome.DUPLICATE) == []
    assert listed(store, outcome=FileOutcome.DONE) == ["5"]
    assert listed(store, reason="too_large") == ["4", "2"]
    assert listed(store, reason="too_large", before="4" * 24) == ["2"]
    assert listed(store, reason="quota_reached") == ["3"]
    assert listed(store, reason="too_large", outcome=FileOutcome.HELD) == []
    assert listed(store, reason="too_large", outcome=FileOutcome.DONE) == []


def plan(store: Store, statement: Prepared) -> str:
    """How the engine goes about a statement."""
    with store.read() as connection:
        sql, names, constants = statement._for(connection)
        values = [constants.get(name) for name in names]
        steps = driver(connection).execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
    return "\n".join(step[-1] for step in steps)


@pytest.mark.sqlite("how it goes about a statement")
@pytest.mark.parametrize(
    ("statement", "way"),
    [
        (ledger.NEWEST_IDS, "PRIMARY KEY (account_id=? AND claim_id>? AND claim_id<?)"),
        (ledger.NEWEST_IDS_OF_OUTCOME, "COVERING INDEX ix_imported_files_not_done"),
        (ledger.NEWEST_IDS_OF_REASON, "COVERING INDEX ix_imported_files_not_done"),
        (ledger.FILE, "PRIMARY KEY (account_id=? AND claim_id=?)"),
    ],
)
def test_no_list_reads_more_than_its_range_or_sorts(
    store: Store, statement: Prepared, way: str
) -> None:
    steps = plan(store, statement)
    assert way in steps
    assert "SCAN" not in steps
    assert "TEMP B-TREE" not in steps


def test_a_file_that_is_done_after_all_leaves_the_list_of_what_is_not(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ledger.record(store, held(account, "1" * 24))
    creating.create(store, account.id, [a_resume()], claim=a_claim("1" * 24))
    assert listed(store, outcome=FileOutcome.HELD) == []
    assert listed(store, outcome=FileOutcome.DONE) == ["1"]


def test_a_file_says_where_it_was_dropped_and_what_it_held(
    store: Store, an_account: MakeAccount
) -> None:
    items = Items(total=3, done=2, duplicate=0, held=0, failed=1)
    claim = a_claim("1" * 24)._replace(root="/srv/inbox", items=json.dumps(items.as_json()))
    account = an_account()
    ledger.record(store, FileVerdict(account.id, claim, Verdict(FileOutcome.FAILED)))
    ledger.record(store, failed(account, "2" * 24))
    one_of_one, several = ledger.list_files(store)
    assert (several.root, several.items, several.account_id) == ("/srv/inbox", items, account.id)
    assert (one_of_one.root, one_of_one.items) == (None, None)


def test_a_file_is_looked_for_in_one_account_or_in_all(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    ledger.record(store, failed(ana, "1" * 24))
    assert ledger.get_file(store, "1" * 24).account == "ana"
    assert ledger.get_file(store, "1" * 24, account_id=ana.id).account == "ana"
    with pytest.raises(NotFound):
        ledger.get_file(store, "1" * 24, account_id=bo.id)


def test_the_source_of_a_file_that_is_not_done_is_found(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ledger.record(store, failed(account, "1" * 24))
    creating.create(store, account.id, [a_resume()], claim=a_claim("2" * 24))
    assert ledger.find_source(store, ledger.get_file(store, "1" * 24)) == b"{"
    assert ledger.find_source(store, ledger.get_file(store, "2" * 24)) is None


def test_a_file_is_found_by_its_claim_whoever_owns_it(
    store: Store, an_account: MakeAccount
) -> None:
    for name, claim_id in (("ana", "1" * 24), ("bo", "2" * 24)):
        ledger.record(store, failed(an_account(name), claim_id))
    row = ledger.get_file(store, "2" * 24)
    assert (row.account, row.claim_id, row.outcome) == ("bo", "2" * 24, FileOutcome.FAILED)
    with pytest.raises(NotFound, match="3" * 24):
        ledger.get_file(store, "3" * 24)
