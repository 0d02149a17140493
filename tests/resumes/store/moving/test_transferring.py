import pytest

from resumes.errors import Conflict
from resumes.store import Store, accounts
from resumes.store.moving import filling
from resumes.store.moving.marking import Move
from resumes.store.moving.transferring import Progress, Stage, nobody, transfer
from tests.resumes.store.moving.builders import held_by

pytestmark = pytest.mark.engines


def begin(source: Store, target: Store) -> None:
    filling.begin(target, Move(source.label, target.label, "0123", "a" * 16))


def test_all_rows_arrive_and_are_proved_to(source: Store, store: Store) -> None:
    begin(source, store)
    with source.read() as connection:
        digests = transfer(connection, store, nobody)
    assert digests == held_by(source) == held_by(store)


def test_every_stage_is_told_to_its_end(source: Store, store: Store) -> None:
    begin(source, store)
    last: dict[Stage, Progress] = {}
    with source.read() as connection:
        transfer(connection, store, lambda one: last.update({one.stage: one}))
    assert [stage.value for stage in last] == ["copying", "proving"]
    assert all(progress.done == progress.total for progress in last.values())


def test_what_is_not_the_same_in_the_end_is_refused(source: Store, store: Store) -> None:
    begin(source, store)

    def add(progress: Progress) -> None:
        if progress.stage is Stage.PROVING and accounts.find_account(source, "late") is None:
            accounts.create_account(source, "late")

    with source.read() as connection, pytest.raises(Conflict, match="differs in table"):
        transfer(connection, store, add)
