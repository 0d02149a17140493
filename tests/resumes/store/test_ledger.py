from collections.abc import Callable

import pytest
from sqlalchemy import text

from resumes.errors import NotFound
from resumes.store import Store, creating, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome, FileVerdict, Item, Verdict
from tests.resumes.builders import a_claim, a_resume

MakeAccount = Callable[..., AccountInfo]


def failed(account: AccountInfo, claim_id: str = "0" * 24) -> FileVerdict:
    verdict = Verdict(FileOutcome.FAILED, "invalid_json", "Invalid JSON", byte_offset=17)
    return FileVerdict(account.id, a_claim(claim_id, name="bad.json"), verdict)


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
    assert [row.claim_id[0] for row in ledger.list_files(store)] == ["3", "2", "1"]
    assert [row.claim_id[0] for row in ledger.list_files(store, account_id=ana.id)] == ["2", "1"]
    assert len(ledger.list_files(store, limit=1)) == 1


def test_a_file_is_found_by_its_claim_whoever_owns_it(
    store: Store, an_account: MakeAccount
) -> None:
    for name, claim_id in (("ana", "1" * 24), ("bo", "2" * 24)):
        ledger.record(store, failed(an_account(name), claim_id))
    row = ledger.get_file(store, "2" * 24)
    assert (row.account, row.claim_id, row.outcome) == ("bo", "2" * 24, FileOutcome.FAILED)
    with pytest.raises(NotFound, match="3" * 24):
        ledger.get_file(store, "3" * 24)
