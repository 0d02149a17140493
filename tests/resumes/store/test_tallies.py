from collections.abc import Callable

import pytest
from sqlalchemy import text

from resumes.store import Store, accounts, creating
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from resumes.store.statements import Prepared, driver
from resumes.store.tallies import FILES_NOT_DONE, FileTally, tally_files, tally_not_done
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import a_file

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def test_an_empty_ledger_has_no_files(store: Store) -> None:
    assert tally_files(store) == [FileTally(FileOutcome.DONE, None, 0)]


def test_files_are_counted_by_outcome_and_reason_over_all_accounts(
    store: Store, an_account: MakeAccount
) -> None:
    ana, ben = an_account("ana"), an_account("ben")
    creating.create(store, ana.id, [a_resume()], claim=a_claim("0" * 24))
    a_file(store, ana, "1" * 24)
    a_file(store, ben, "2" * 24)
    a_file(store, ben, "3" * 24, FileOutcome.HELD, reason="quota_reached")

    tallies = tally_files(store)

    assert tallies[0] == FileTally(FileOutcome.DONE, None, 1)
    assert sorted(tallies[1:]) == [
        FileTally(FileOutcome.FAILED, "invalid_json", 2),
        FileTally(FileOutcome.HELD, "quota_reached", 1),
    ]


def test_one_account_s_files_are_counted_alone(store: Store, an_account: MakeAccount) -> None:
    ana, ben = an_account("ana"), an_account("ben")
    creating.create(store, ana.id, [a_resume()], claim=a_claim("0" * 24))
    creating.create(store, ben.id, [a_resume()], claim=a_claim("1" * 24))
    a_file(store, ana, "2" * 24)
    a_file(store, ben, "3" * 24)
    failed = FileTally(FileOutcome.FAILED, "invalid_json", 1)

    assert tally_files(store, account_id=ana.id) == [FileTally(FileOutcome.DONE, None, 1), failed]
    assert tally_not_done(store, account_id=ana.id) == [failed]
    assert tally_not_done(store) == [failed._replace(files=2)]


def test_a_file_that_is_done_after_all_is_counted_once(
    store: Store, an_account: MakeAccount
) -> None:
    ana = an_account("ana")
    a_file(store, ana, "1" * 24)
    creating.create(store, ana.id, [a_resume()], claim=a_claim("1" * 24))

    assert tally_files(store) == [FileTally(FileOutcome.DONE, None, 1)]


def test_an_account_that_is_deleted_takes_its_files_along(
    store: Store, an_account: MakeAccount
) -> None:
    a_file(store, an_account("ana"), "1" * 24)
    accounts.delete_account(store, "ana")

    assert tally_files(store) == [FileTally(FileOutcome.DONE, None, 0)]


@pytest.mark.sqlite("how it goes about a statement")
def test_what_is_not_done_is_counted_from_the_index_alone(store: Store) -> None:
    with store.read() as connection:
        sql = Prepared(FILES_NOT_DONE)._for(connection)[0]
        plan = driver(connection).execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        assert connection.execute(text("SELECT 1")).scalar() == 1

    assert "COVERING INDEX ix_imported_files_not_done" in plan[0][3]
