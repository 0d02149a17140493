from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from importer import committing, unbundling, workspaces
from importer.names import WORK
from importer.options import Options
from importer.rounds import Importer
from importer.steps import Observer, unobserved
from importer.telling import Remarks
from importer.workspaces import Workspace
from resumes.store import Store, accounts, open_store
from resumes.store.accounts import AccountInfo
from tests.importer.builders import FakeMonotonic, MakeImporter, Told
from tests.resumes.store.builders import Busy
from tests.resumes.store.conftest import SteppingClock


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def store(url: str, clock: SteppingClock) -> Iterator[Store]:
    with open_store(url, clock=clock) as store:
        yield store


@pytest.fixture
def an_account(store: Store) -> Callable[..., AccountInfo]:
    """Makes accounts: `an_account("ana", plan="business")`."""

    def make(name: str = "ana", *, plan: str = "business") -> AccountInfo:
        return accounts.create_account(store, name, plan=plan)

    return make


@pytest.fixture
def busy(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Busy]:
    """What others hold while they write to the store; no importer waits long for it."""
    for module in (committing, unbundling):
        monkeypatch.setattr(module, "DEADLINE_S", 0.05)
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
def workspace(root: Path) -> Iterator[Workspace]:
    """The folder of an importer at work on ROOT."""
    workspace = workspaces.make(root / WORK, "i")
    assert workspace is not None
    yield workspace
    workspace.leave()


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
    """Makes importers on ROOT whose rounds are called by the test: `an_importer(settle_s=5)`."""
    importers: list[Importer] = []

    def make(*, at: Path | None = None, observe: Observer = unobserved, **options: Any) -> Importer:
        importer = Importer(
            store,
            at or root,
            Options(**({"settle_s": 5.0, "workers": 0} | options)),
            on_file=told.files.append,
            remarks=Remarks(told.notices.append),
            observe=observe,
            monotonic=monotonic,
        )
        importers.append(importer)
        return importer

    yield make
    for importer in importers:
        importer.close()
