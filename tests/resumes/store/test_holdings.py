from collections.abc import Callable
from datetime import timedelta

import pytest

from resumes.store import Store, holdings, keys, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.holdings import Holdings
from resumes.store.ledger import FileOutcome, FileVerdict, Verdict
from tests.resumes.builders import a_claim
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def record(store: Store, account: AccountInfo, *outcomes: FileOutcome) -> None:
    for number, outcome in enumerate(outcomes):
        claim = a_claim(f"{number:024x}")
        ledger.record(store, FileVerdict(account.id, claim, Verdict(outcome)))


def test_a_new_account_has_nothing(store: Store, an_account: MakeAccount) -> None:
    assert holdings.get_holdings(store, an_account().id) == Holdings(0, 0, None, 0, 0)
    assert holdings.count_active_keys(store) == {}


def test_keys_that_no_longer_count_are_keys_but_not_active(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    keys.create_key(store, "ana")
    keys.create_key(store, "ana", lifetime=timedelta(hours=1))
    keys.revoke_key(store, keys.create_key(store, "ana").id)
    keys.create_key(store, "bo")
    assert holdings.count_active_keys(store) == {ana.id: 2, bo.id: 1}

    clock.advance(3_600)

    assert holdings.count_active_keys(store) == {ana.id: 1, bo.id: 1}
    held = holdings.get_holdings(store, ana.id)
    assert (held.keys, held.active_keys) == (3, 1)


def test_the_last_use_of_any_key_is_told(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account("ana")
    for _ in range(2):
        new = keys.create_key(store, "ana")
        holder, _is_due = keys.authenticate(store, new.secret)
        clock.advance(3_600)
        store.write(keys._mark_used, keys._use(store, holder))

    newest = max(key.last_used_at or "" for key in keys.list_keys(store))
    assert holdings.get_holdings(store, account.id).last_used_at == newest


def test_files_that_are_not_done_are_counted_by_outcome(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    outcomes = [FileOutcome.FAILED, FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DONE]
    record(store, ana, *outcomes)

    found = holdings.get_holdings(store, ana.id)

    assert (found.files_failed, found.files_held) == (2, 1)
    assert holdings.count_files(store, ana.id) == 4
    assert holdings.count_files(store, bo.id) == 0
    assert holdings.get_holdings(store, bo.id).files_failed == 0


@pytest.mark.sqlite("how it goes about a statement")
def test_files_are_counted_from_the_index_of_what_is_not_done(
    store: Store, an_account: MakeAccount
) -> None:
    record(store, an_account("ana"), FileOutcome.FAILED)
    with store.read() as connection:
        statement = holdings.FILES_NOT_DONE.compile(connection.engine)
        (step, *_) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", ("a",)).all()
    assert "USING COVERING INDEX ix_imported_files_not_done (account_id=?)" in str(step)
