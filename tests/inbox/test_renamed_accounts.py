"""Files of an account that is renamed: none is lost, and none goes to another account (decision 0022)."""

import pytest

from resumes.errors import Conflict
from resumes.store import accounts, import_requests
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from resumes.watched_folder import find_filed
from tests.support.inbox.builders import Inbox, Moment, die, during, killing_at
from tests.support.resumes import a_document


def test_files_in_the_old_folder_and_in_the_new_one_go_to_the_account(inbox: Inbox) -> None:
    importer = inbox.importer()
    importer.round()
    accounts.rename_account(inbox.store, "ana", "bea")
    accounts.rename_account(inbox.store, "bea", "cleo")
    for folder in ("ana", "bea", "cleo"):
        inbox.drop(f"{folder}/{folder}.json", a_document(folder))

    inbox.rounds(importer, 2, pause_s=5)

    assert set(inbox.outcomes().values()) == {"done"}
    assert sorted(inbox.names("cleo")) == ["ana", "bea", "cleo"]
    for row in inbox.rows():
        found = find_filed(row, inbox.root)
        assert found is not None
        assert found.parent.name == "cleo"


def test_a_file_that_was_filed_under_a_former_name_is_found(inbox: Inbox) -> None:
    inbox.drop("direct.json")
    inbox.importer(account="ana").round()
    for new in ("bea", "cleo"):
        accounts.rename_account(inbox.store, accounts.list_accounts(inbox.store)[0].name, new)

    (row,) = inbox.rows()
    assert find_filed(row, inbox.root) == inbox.filed("_done")[0]
    inbox.drop("other.json", a_document("Bo"))
    inbox.importer(account="ana").round()
    assert len(inbox.names("cleo")) == 2


def test_held_and_failed_files_are_released_and_retried(inbox: Inbox) -> None:
    inbox.limit(1)
    inbox.drop_aged("1", "2", "3")
    inbox.drop("ana/bad.json", b"{")
    importer = inbox.importer()
    inbox.rounds(importer, 2, pause_s=10)
    assert inbox.counts("held", "failed") == [2, 1]
    accounts.rename_account(inbox.store, "ana", "bea")
    inbox.drop("bea/4.json", a_document("4"))
    inbox.rounds(importer, 2, pause_s=5)
    assert inbox.counts("held") == [3]

    inbox.limit(None)
    (bad,) = inbox.filed("_failed")
    bad.write_bytes(a_document("5"))
    failed = inbox.rows(outcome=FileOutcome.FAILED)
    import_requests.request_files(inbox.store, failed, RequestKind.RETRY)
    inbox.rounds(importer, 4, pause_s=5)

    assert sorted(inbox.names("bea"), key="5".__eq__) == ["1", "2", "3", "4", "5"]
    assert inbox.counts("held", "failed") == [0, 0]
    assert all(find_filed(row, inbox.root) for row in inbox.rows())


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ, Moment.COMMITTED])
def test_a_file_whose_importer_was_killed_before_is_imported_once(
    inbox: Inbox, moment: Moment
) -> None:
    inbox.drop("ana/cv.json", a_document("Ada"))
    die(inbox.importer(observe=killing_at(moment)))
    accounts.rename_account(inbox.store, "ana", "bea")

    inbox.rounds(inbox.importer(), 3, pause_s=5)

    assert inbox.names("bea") == ["Ada"]
    assert inbox.is_tidy()


def test_an_account_that_takes_the_name_gets_the_files_that_come_then(inbox: Inbox) -> None:
    importer = inbox.importer()
    inbox.drop("ana/1.json", a_document("1"))
    importer.round()
    accounts.rename_account(inbox.store, "ana", "bea")
    inbox.drop("ana/2.json", a_document("2"))
    inbox.rounds(importer, 2, pause_s=5)
    with pytest.raises(Conflict):
        accounts.create_account(inbox.store, "ana")

    accounts.create_account(inbox.store, "ana", takes_folder=True)
    inbox.drop("ana/3.json", a_document("3"))
    inbox.rounds(importer, 2, pause_s=5)

    assert (inbox.names("bea"), inbox.names("ana")) == (["1", "2"], ["3"])


def test_files_that_wait_in_a_folder_go_to_the_account_that_has_it_when_they_are_taken(
    inbox: Inbox,
) -> None:
    def rename() -> None:
        if accounts.find_account(inbox.store, "bea") is None:
            accounts.rename_account(inbox.store, "ana", "bea")
            accounts.create_account(inbox.store, "ana", plan="ana", takes_folder=True)

    for number in range(30):
        inbox.drop(f"ana/{number}.json", a_document(str(number)))
    importer = inbox.importer(observe=during(Moment.READ, rename), batch_files=5)
    inbox.rounds(importer, 12)

    before, after = inbox.names("bea"), inbox.names("ana")
    assert len(before) + len(after) == 30
    assert 0 < len(before) < 30


def test_a_dry_run_knows_former_names(inbox: Inbox) -> None:
    accounts.rename_account(inbox.store, "ana", "bea")
    inbox.drop("ana/cv.json")
    summary = inbox.drain(dry_run=True)
    assert (summary.done, summary.waiting) == (1, 0)
