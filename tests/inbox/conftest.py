import dataclasses
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from importer.failpoints import Observer, unobserved
from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options, Tuning
from importer.service import Summary, watch
from resumes.store import Store, accounts, open_store
from tests.store.conftest import SteppingClock
from tests.support.inbox.builders import FakeMonotonic, MakeAccount, MakeImporter, Told
from tests.support.store.builders import Busy

QUICK = Tuning(helper_from=1_000_000, first_back_off_s=0.001, longest_back_off_s=0.05)
TUNING = {field.name for field in dataclasses.fields(Tuning)}


def the_options(chosen: dict[str, Any]) -> Options:
    """Options, and fields of their tuning, by name."""
    tuning = {name: value for name, value in chosen.items() if name in TUNING}
    rest = {name: value for name, value in chosen.items() if name not in TUNING}
    return Options(**rest, tuning=dataclasses.replace(QUICK, **tuning))


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def store(url: str, clock: SteppingClock) -> Iterator[Store]:
    with open_store(url, clock=clock) as store:
        yield store


@pytest.fixture
def an_account(store: Store) -> MakeAccount:
    """Makes accounts: `an_account("ana", plan="business")`."""

    def make(name: str = "ana", *, plan: str = "business") -> accounts.AccountInfo:
        return accounts.create_account(store, name, plan=plan)

    return make


@pytest.fixture
def ana(an_account: MakeAccount) -> accounts.AccountInfo:
    """An account that was just made."""
    return an_account("ana")


@pytest.fixture
def busy(store: Store) -> Iterator[Busy]:
    """What others hold while they write to the store."""
    busy = Busy(store)
    yield busy
    busy.release()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The watched folder."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def monotonic() -> FakeMonotonic:
    return FakeMonotonic()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def an_importer(
    store: Store, root: Path, monotonic: FakeMonotonic, told: Told
) -> Iterator[MakeImporter]:
    """Makes importers on ROOT whose rounds are called by the test: `an_importer(settle_s=5)`. Each
    comes after the one before it, or `beside` it."""
    importers: list[Importer] = []

    def make(
        *,
        at: Path | None = None,
        beside: bool = False,
        observe: Observer = unobserved,
        **options: Any,
    ) -> Importer:
        for one in () if beside else importers:
            one.close()
        importer = Importer(
            store,
            at or root,
            the_options({"settle_s": 5.0} | options),
            on_file=told.files.append,
            notices=Notices(told.notices.append),
            observe=observe,
            monotonic=monotonic,
        )
        importers.append(importer)
        return importer

    yield make
    for importer in importers:
        importer.close()


Drain = Callable[..., Summary]
Watched = Callable[..., AbstractContextManager[list[Summary]]]


@pytest.fixture
def drain(store: Store, root: Path, told: Told) -> Drain:
    """Imports what is there, in real time: `drain(settle_s=0)`. What it came to."""

    def run(
        at: Path | None = None, *, stop: threading.Event | None = None, **options: Any
    ) -> Summary:
        callbacks = {name: options.pop(name) for name in list(options) if name.startswith("on_")}
        if isinstance(command := callbacks.get("on_import"), str):
            del callbacks["on_import"]
            options["on_import"] = command
        return watch(
            store,
            at or root,
            the_options({"once": True, "settle_s": 0.0} | options),
            stop=stop or threading.Event(),
            on_file=told.files.append,
            on_notice=told.notices.append,
            **callbacks,
        )

    return run


@pytest.fixture
def watched(store: Store, root: Path, told: Told) -> Watched:
    """The folder is watched during the block; afterwards the list holds what it came to."""

    @contextmanager
    def run(at: Path | None = None, **options: Any) -> Iterator[list[Summary]]:
        stop = threading.Event()
        summaries: list[Summary] = []

        def work() -> None:
            summaries.append(
                watch(
                    store,
                    at or root,
                    the_options({"settle_s": 0.05, "scan_s": 0.2} | options),
                    stop=stop,
                    on_file=told.files.append,
                    on_notice=told.notices.append,
                )
            )

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield summaries
        finally:
            stop.set()
            thread.join(60)
        assert not thread.is_alive()

    return run
