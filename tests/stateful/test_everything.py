"""Whatever clients, admins and analyzers do, in any order, all is as the model says.

A failing sequence is cut down to what matters and printed as a program of the rules in `clients`,
`admins` and `analyzers`, with `@reproduce_failure`, which goes above `a_service` in `run` to have it
again. With `--hypothesis-seed` the same sequences are tried.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from resumes.store import accounts
from tests.stateful.admins import Admins
from tests.stateful.analyzers import Analyzers
from tests.stateful.clients import Clients
from tests.stateful.in_process import InProcess
from tests.stateful.requests import Body, Look
from tests.stateful.world import NAMES
from tests.support.engines import Engine, PostgresEngine

pytestmark = pytest.mark.engines

FEW = 30
"""So many examples at most are the same in every run: `make test` and `make slow` find what a change
has broken, and the campaign what nobody has thought of."""

LONG = 2_000
LONG_ON_POSTGRES = 500
"""A sequence takes longer there, and few statements differ."""

AT_ONCE = 100
"""Hypothesis remembers all sequences of a run, some 3 MB each."""

STEPS = 50
FEWEST_STEPS = 15
"""For each change."""

Make = Callable[[], AbstractContextManager[InProcess]]


class Service(Clients, Admins, Analyzers):
    """Everything that anybody does, in any order; what matters most, twice as often."""

    create_again = Clients.create
    delete_again = Clients.delete
    follow_again = Clients.follow
    drop_new_ones_again = Analyzers.drop_new_ones
    drop_one_of_again = Analyzers.drop_one_of
    drain_again = Analyzers.drain
    drain_killed_again = Analyzers.drain_killed
    return_account_again = Admins.return_account
    restore_again = Admins.restore

    @rule(name=NAMES, at=st.integers(1, 8))
    def delete_while_importing(self, name: str, at: int) -> None:
        """An importer is killed on its way with a file, its account begins to go, and another
        importer goes on."""
        self.drop_new_ones(name=name, looks=[Look.PLAIN])
        self.drain_killed(at=at)
        self.delete_account(name=name, how="cut off")
        self.drain()

    @rule(name=NAMES, new=NAMES, at=st.integers(1, 8))
    def rename_while_importing(self, name: str, new: str, at: int) -> None:
        """An importer is killed on its way with a file, its account is renamed, another file comes into
        the old folder, and another importer goes on."""
        self.drop_new_ones(name=name, looks=[Look.PLAIN])
        self.drain_killed(at=at)
        self.rename_account(name=name, new=new)
        self.drop_new_ones(name=name, looks=[Look.PLAIN])
        self.drain()


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts are deleted in several slices: a deletion may be cut off in the middle."""
    monkeypatch.setattr(accounts, "SLICE_RESUMES", 1)


@pytest.fixture
def make(engine: Engine, tmp_path: Path) -> Make:
    """Makes installations, each with a home and a store of its own."""

    @contextlib.contextmanager
    def make() -> Iterator[InProcess]:
        with contextlib.ExitStack() as places:

            def make_place() -> str:
                name = places.enter_context(tempfile.TemporaryDirectory(dir=tmp_path))
                return places.enter_context(engine.a_store(Path(name)))

            home = Path(places.enter_context(tempfile.TemporaryDirectory(dir=tmp_path)))
            url = places.enter_context(engine.a_store(home))
            with contextlib.closing(InProcess(home, url, make_place)) as reach:
                yield reach

    return make


@pytest.mark.parametrize(
    "examples",
    [
        1,
        pytest.param(FEW, marks=pytest.mark.slow),
        pytest.param(LONG, marks=pytest.mark.campaign(minutes=15)),
    ],
)
def test_everything_goes_as_the_model_says(
    engine: Engine, make: Make, examples: int, pytestconfig: pytest.Config
) -> None:
    if examples == LONG and isinstance(engine, PostgresEngine):
        examples = LONG_ON_POSTGRES
    is_seeded = pytestconfig.getoption("--hypothesis-seed") is not None
    # With a seed each run would be the same.
    at_once = examples if is_seeded else min(examples, AT_ONCE)
    chosen = settings(
        max_examples=at_once + 1,  # Hypothesis begins with one rule alone, over and over
        stateful_step_count=FEWEST_STEPS if examples == 1 else STEPS,
        deadline=None,
        derandomize=examples <= FEW and not is_seeded,
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )

    def a_service() -> Service:
        return Service(make)

    for _ in range(0, examples, at_once):
        run_state_machine_as_test(a_service, settings=chosen)  # type: ignore[arg-type]


@pytest.mark.slow
def test_whoever_goes_on_with_a_key_and_a_last_id_may_do_so_where_all_came_back(make: Make) -> None:
    """Chance seldom brings an account back from its file, and then a store from its backup."""
    service = Service(make)
    service.begin()
    first, second, third = (service.new_body(Look.PLAIN) for _ in range(3))
    chain = service.begin_to_list(name="ana", limit=2, of=None, place=0)

    def go_on(body: Body, once: str | None) -> None:
        service.create(name="ana", body=body, once=once, label="a")
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
    "at", [pytest.param(at, marks=() if at % 3 == 0 else pytest.mark.slow) for at in range(1, 9)]
)
def test_an_account_may_begin_to_go_at_each_step_of_an_import(make: Make, at: int) -> None:
    """Chance seldom comes to the one step between a commit and the filing of its file."""
    service = Service(make)
    service.begin()
    service.begin_with_bodies()
    service.delete_while_importing(name="ana", at=at)
    service.everything_is_where_it_was_put()
    service.teardown()


@pytest.mark.parametrize(
    ("at", "exports_history"),
    [
        (3, True),
        *(
            pytest.param(at, exports, marks=pytest.mark.slow)
            for at, exports in ((3, False), (5, False), (5, True), (7, False), (7, True))
        ),
    ],
)
def test_what_is_not_put_away_is_whose_the_account_s_name_is_next(
    make: Make, at: int, exports_history: bool
) -> None:
    """Chance seldom kills an importer, and then replaces the account of what it had imported."""
    service = Service(make)
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
