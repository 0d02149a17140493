import hashlib
from collections.abc import Callable

import pytest

from resumes.store import Store, earlier, listing
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, NewResume, create
from resumes.store.earlier import WIDTH
from tests.resumes.builders import a_claim, a_resume

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]

SIZES = [1, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 3]


def claim_ids(count: int) -> list[str]:
    return [f"{number:024x}" for number in range(count)]


def digest_of(new: NewResume) -> bytes:
    assert new.digest is not None
    return new.digest


@pytest.mark.parametrize("count", SIZES)
def test_items_of_many_claims_are_found_by_claim_and_number(
    store: Store, an_account: MakeAccount, count: int
) -> None:
    account = an_account()
    expected = {}
    for claim_id in claim_ids(count):
        batch = [a_resume(claim_id, item=item) for item in (1, 7)]
        outcomes = create(store, account.id, batch, claim=a_claim(claim_id))
        made = [outcome.id for outcome in outcomes if isinstance(outcome, Created)]
        expected[claim_id] = {1: ("done", made[0]), 7: ("done", made[1])}
    asked = [*claim_ids(count), "f" * 24]
    with store.read() as connection:
        assert earlier.find_items(connection, account.id, asked) == expected


@pytest.mark.parametrize("count", SIZES)
def test_resumes_of_many_digests_are_found_by_digest(
    store: Store, an_account: MakeAccount, count: int
) -> None:
    account = an_account()
    batch = [a_resume(f"Person {number}", with_digest=True) for number in range(count)]
    made = [one.id for one in create(store, account.id, batch) if isinstance(one, Created)]
    digests = [digest_of(new) for new in batch]
    asked = [hashlib.sha256(b"unknown").digest(), *digests]
    with store.read() as connection:
        found = earlier.find_digests(connection, account.id, asked)
    assert found == dict(zip(digests, made, strict=True))


def test_an_item_is_known_as_a_duplicate_and_after_its_resume_went(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    (made,) = create(store, account.id, [a_resume(with_digest=True)])
    assert isinstance(made, Created)
    create(store, account.id, [a_resume(with_digest=True)], claim=a_claim())
    listing.delete_resume(store, account.id, made.id)
    with store.read() as connection:
        found = earlier.find_items(connection, account.id, [a_claim().claim_id])
        digests = earlier.find_digests(
            connection, account.id, [digest_of(a_resume(with_digest=True))]
        )
    assert found == {a_claim().claim_id: {0: ("duplicate", made.id)}}
    assert digests == {}


def test_nothing_of_another_account_is_found(store: Store, an_account: MakeAccount) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    new = a_resume(with_digest=True)
    create(store, ana.id, [new], claim=a_claim())
    with store.read() as connection:
        assert earlier.find_items(connection, bo.id, [a_claim().claim_id]) == {}
        assert earlier.find_digests(connection, bo.id, [digest_of(new)]) == {}


def test_nothing_is_found_when_nothing_is_asked_for(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    create(store, account.id, [a_resume(with_digest=True)], claim=a_claim())
    with store.read() as connection:
        assert earlier.find_items(connection, account.id, []) == {}
        assert earlier.find_digests(connection, account.id, iter(())) == {}
