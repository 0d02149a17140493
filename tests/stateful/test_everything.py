"""Whatever clients, admins and analyzers do, in any order, all is as the model says.

A failing sequence is printed as a program of the rules in `clients`, `admins` and `analyzers`, with
`@reproduce_failure`, which goes above `a_service` in `machine` to have it again. With
`--hypothesis-seed` the same sequences are tried.
"""

from pathlib import Path

import pytest

from tests.stateful import machine
from tests.stateful.in_process import InProcess
from tests.stateful.processes import Processes
from tests.stateful.requests import Body, Look
from tests.support.engines import Engine, PostgresEngine

pytestmark = pytest.mark.engines

LONG = 2_000
LONG_ON_POSTGRES = 500
"""A sequence takes longer there, and few statements differ."""

STEPS = 50
FEWEST_STEPS = 15
"""For each change."""


@pytest.mark.parametrize(
    "examples",
    [
        1,
        pytest.param(machine.FEW, marks=pytest.mark.slow),
        pytest.param(LONG, marks=pytest.mark.campaign(minutes=15)),
    ],
)
def test_everything_goes_as_the_model_says_in_process(
    engine: Engine, tmp_path: Path, examples: int, is_seeded: bool
) -> None:
    if examples == LONG and isinstance(engine, PostgresEngine):
        examples = LONG_ON_POSTGRES
    make = machine.making(InProcess, engine, tmp_path)
    steps = FEWEST_STEPS if examples == 1 else STEPS
    machine.run(make, examples=examples, steps=steps, is_seeded=is_seeded)


@pytest.mark.parametrize("install", [InProcess, pytest.param(Processes, marks=pytest.mark.slow)])
def test_whoever_goes_on_with_a_key_and_a_last_id_may_do_so_where_all_came_back(
    engine: Engine, tmp_path: Path, install: machine.Install
) -> None:
    """Chance seldom brings an account back from its file, and then a store from its backup."""
    service = machine.Service(machine.making(install, engine, tmp_path))
    service.begin()
    first, second, third = (service.new_body(Look.PLAIN) for _ in range(3))
    chain = service.begin_to_list(name="ana", limit=2, of=None, place=0)

    def go_on(body: Body, once: str | None) -> None:
        service.create(name="ana", body=body, once=once)
        service.drain()
        service.follow(chain=chain, pages=3)
        service.everything_is_where_it_was_put()

    service.drop_new_ones(name="ana", looks=[Look.PLAIN] * 5)  # more than there is room for
    go_on(first, "once-1")
    backup = service.back_up()
    export = service.export_account(name="ana", with_keys=True)
    service.change_plan(name="business", most=None, lists=True)
    go_on(second, "once-2")
    service.return_account(export=export)
    go_on(first, "once-1")
    service.restore(backup=backup)
    service.delete(name="ana", place=1)
    go_on(third, None)
    service.move_store()
    service.change_plan(name="business", most=None, lists=True)
    go_on(first, "once-1")
    service.teardown()
    stored = [one.body for one in service.model.accounts["ana"].resumes.values()]
    assert (stored.count(first), stored.count(second), stored.count(third)) == (1, 0, 1)


@pytest.mark.parametrize(
    "at",
    [pytest.param(at, marks=() if at % 3 == 0 else pytest.mark.slow) for at in range(1, 9)],
)
def test_an_account_may_begin_to_go_at_each_step_of_an_import(
    engine: Engine, tmp_path: Path, at: int
) -> None:
    """Chance seldom comes to the one step between a commit and the filing of its file."""
    service = machine.Service(machine.making(InProcess, engine, tmp_path))
    service.begin()
    service.begin_with_bodies()
    service.delete_while_importing(name="ana", at=at)
    service.everything_is_where_it_was_put()
    service.teardown()


@pytest.mark.parametrize("at", [3, 5, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("exports_history", [False, True])
def test_what_is_not_put_away_is_whose_the_account_s_name_is_next(
    engine: Engine, tmp_path: Path, at: int, exports_history: bool
) -> None:
    """Chance seldom kills an importer, and then replaces the account of what it had imported."""
    service = machine.Service(machine.making(InProcess, engine, tmp_path))
    service.begin()
    body = service.new_body(Look.PLAIN)
    export = service.export_account(name="bo", with_keys=True)
    service.drop_new_ones(name="bo", looks=[Look.PLAIN] * 2)
    service.drop(name="bo", bodies=[body, body])
    service.drain_killed(at=at)
    if exports_history:
        export = service.export_account(name="bo", with_keys=True)
    service.return_account(export=export)
    service.drain_killed(at=1)
    service.drain()
    service.everything_is_where_it_was_put()
    service.return_account(export=export)
    service.teardown()


@pytest.mark.parametrize(
    ("examples", "is_seeded", "is_always_the_same"),
    [
        (machine.FEW, False, True),
        (machine.FEW, True, False),
        (machine.FEW + 1, False, False),
        (machine.FEW + 1, True, False),
    ],
)
def test_a_seed_wins_over_the_sequences_that_are_always_the_same(
    examples: int, is_seeded: bool, is_always_the_same: bool
) -> None:
    chosen = machine.how(examples=examples, steps=1, is_seeded=is_seeded)

    assert chosen.derandomize is is_always_the_same
