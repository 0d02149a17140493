"""The state machine: all rules over one installation, and how long it is let run."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.stateful.admins import Admins
from tests.stateful.analyzers import Analyzers
from tests.stateful.clients import Clients
from tests.stateful.in_process import InProcess
from tests.stateful.processes import Processes
from tests.stateful.requests import Look, Reach
from tests.stateful.world import NAMES
from tests.support.engines import Engine


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


FEW = 30
"""So many examples at most are the same in every run: `make test` and `make slow` find what a change
has broken, and the campaign what nobody has thought of."""

AT_ONCE = 100
"""Hypothesis remembers all sequences of a run, some 3 MB each."""


def run(
    make: Callable[[], AbstractContextManager[Reach]],
    *,
    examples: int,
    steps: int,
    is_seeded: bool = False,
) -> None:
    """So many sequences of rules, each on an installation of its own, went as the model says.

    A sequence that does not is cut down to what matters, and printed as a program.
    """

    def a_service() -> Service:
        return Service(make)

    # With a seed each run would be the same.
    at_once = examples if is_seeded else min(examples, AT_ONCE)
    chosen = how(examples=at_once, steps=steps, is_seeded=is_seeded)
    for _ in range(0, examples, at_once):
        run_state_machine_as_test(a_service, settings=chosen)  # type: ignore[arg-type]


def how(*, examples: int, steps: int, is_seeded: bool) -> settings:
    """How sequences are chosen; few are the same each time, unless there is a seed for them."""
    return settings(
        max_examples=examples + 1,  # Hypothesis begins with one rule alone, over and over
        stateful_step_count=steps,
        deadline=None,
        derandomize=examples <= FEW and not is_seeded,
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )


Install = Callable[[Path, str, Callable[[], str]], InProcess | Processes]


def making(
    install: Install, engine: Engine, folder: Path
) -> Callable[[], AbstractContextManager[Reach]]:
    """Makes installations, each with a home and a store of its own."""

    @contextlib.contextmanager
    def make() -> Iterator[Reach]:
        with contextlib.ExitStack() as places:

            def make_place() -> str:
                name = places.enter_context(tempfile.TemporaryDirectory(dir=folder))
                return places.enter_context(engine.a_store(Path(name)))

            home = Path(places.enter_context(tempfile.TemporaryDirectory(dir=folder)))
            url = places.enter_context(engine.a_store(home))
            with contextlib.closing(install(home, url, make_place)) as reach:
                yield reach

    return make
