"""Which file a resume came from."""

from collections.abc import Callable

import pytest

from resumes.store import Store, creating, origins
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, NewResume
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def created(store: Store, account: AccountInfo, new: NewResume, claim_id: str | None) -> str:
    claim = None if claim_id is None else a_claim(claim_id)
    (outcome,) = creating.create(store, account.id, [new], claim=claim)
    assert isinstance(outcome, Created)
    return outcome.id


def claim_id_at(clock: SteppingClock) -> str:
    return f"{clock.now_us:016x}{'ab' * 4}"


def test_the_claim_of_a_resume_is_found(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    made = {}
    for number in range(3):
        clock.advance(1)
        claim_id = claim_id_at(clock)
        clock.advance(1)
        made[created(store, account, a_resume(f"P {number}"), claim_id)] = claim_id

    for resume_id, claim_id in made.items():
        assert origins.find_claim(store, account.id, resume_id) == claim_id


def test_also_that_of_a_file_that_was_held_for_long(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    claim_id = claim_id_at(clock)
    clock.advance(100_000)

    resume_id = created(store, account, a_resume("P"), claim_id)

    assert origins.find_claim(store, account.id, resume_id) == claim_id


def test_what_came_another_way_has_none(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    resume_id = created(store, account, a_resume("P"), None)

    assert origins.find_claim(store, account.id, resume_id) is None
