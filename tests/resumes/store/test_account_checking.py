"""What each account is checked for: each damage is really made, below the store, and found."""

import pytest

from resumes.store import Store, account_checking, accounts, checking, creating, listing
from resumes.store.accounts import AccountInfo
from resumes.store.checking import Defect
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import MakeAccount
from tests.resumes.store.damages import ana, damage, found, the_one

pytestmark = pytest.mark.engines

__all__ = ["ana"]  # a fixture


def test_every_account_is_looked_at(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_checking, "ACCOUNTS_AT_ONCE", 2)
    for number in range(5):
        an_account(f"a{number}")
    assert len(list(account_checking.iter_accounts(store))) == 5


def test_an_account_whose_deletion_was_cut_off_is_no_flaw(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "SLICE_RESUMES", 2)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda gone: False)
    assert found(store) == []


@pytest.mark.parametrize("step", [-1, 1])
def test_a_counter_that_is_wrong(store: Store, ana: AccountInfo, step: int) -> None:
    damage(
        store,
        "UPDATE account_usage SET resume_count = resume_count + :step WHERE account_id = :id",
        step=step,
        id=ana.id,
    )
    assert the_one(store) == (Defect.COUNTER, "ana", 1)


def test_a_last_id_that_lags(store: Store, ana: AccountInfo) -> None:
    damage(
        store,
        "UPDATE account_usage SET last_id_us = last_id_us - 1 WHERE account_id = :id",
        id=ana.id,
    )
    assert the_one(store) == (Defect.LAST_ID, "ana", 1)


def test_an_id_that_is_none(store: Store, ana: AccountInfo) -> None:
    damage(
        store,
        "UPDATE resumes SET id = 'zz' WHERE account_id = :id AND id = (SELECT max(id) FROM resumes"
        " WHERE account_id = :id)",
        "UPDATE documents SET id = 'zz' WHERE account_id = :id AND id = (SELECT max(id) FROM"
        " documents WHERE account_id = :id)",
        "DELETE FROM imported_digests WHERE account_id = :id",
        "DELETE FROM search_entries WHERE account_id = :id",
        id=ana.id,
    )
    assert the_one(store) == (Defect.LAST_ID, "ana", 1)


def test_resumes_without_a_document(store: Store, ana: AccountInfo) -> None:
    first = listing.list_page(store, ana.id).entries[0].id
    damage(
        store,
        "DELETE FROM documents WHERE account_id = :id AND id IN (SELECT id FROM resumes"
        " WHERE account_id = :id ORDER BY id LIMIT 2)",
        id=ana.id,
    )
    (flaw,) = found(store)
    assert (flaw.defect, flaw.account, flaw.count) == (Defect.NO_DOCUMENT, "ana", 2)
    assert f"`resumes delete {first} --account ana`" in flaw.remedy


def test_documents_digests_and_search_entries_of_no_resume(store: Store, ana: AccountInfo) -> None:
    damage(
        store,
        "DELETE FROM resumes WHERE account_id = :id AND id = (SELECT min(id) FROM resumes"
        " WHERE account_id = :id)",
        "UPDATE account_usage SET resume_count = 3 WHERE account_id = :id",
        id=ana.id,
    )
    assert {(one.defect, one.account, one.count) for one in found(store)} == {
        (Defect.STRAY_DOCUMENT, "ana", 1),
        (Defect.STRAY_DIGEST, "ana", 1),
        (Defect.STRAY_SEARCH_ENTRY, "ana", 1),
    }


def test_i1_items_outlive_their_resumes(store: Store, ana: AccountInfo) -> None:
    outcomes = creating.create(store, ana.id, [a_resume("Eve")], claim=a_claim("6" * 24))
    assert isinstance(outcomes[0], creating.Created)
    listing.delete_resume(store, ana.id, outcomes[0].id)
    assert found(store) == []


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE account_usage SET resume_count = 9 WHERE account_id = :id",
        "UPDATE account_usage SET last_id_us = 9 WHERE account_id = :id",
        "UPDATE documents SET id = 'zz' || id WHERE account_id = :id AND id < 'zz'",
        "UPDATE imported_digests SET resume_id = 'zz' WHERE account_id = :id",
        "UPDATE api_keys SET revoked_at = '2027' WHERE account_id = :id",
    ],
)
def test_a_remedy_in_sql_mends_what_it_was_given_for(
    store: Store, ana: AccountInfo, harm: str
) -> None:
    damage(store, harm, id=ana.id)
    before = found(store)
    for flaw in before:
        if flaw.remedy.startswith(checking.STOPPED):
            damage(store, flaw.remedy.removeprefix(checking.STOPPED))
    left = {one.defect for one in found(store)}
    assert before
    assert left <= {Defect.NO_DOCUMENT}
