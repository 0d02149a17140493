"""Several importers on a folder: one works, the others stand by."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from importer.notices import Summary
from importer.slots import Slot
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from tests.inbox.conftest import Drain
from tests.support.inbox.builders import (
    MakeImporter,
    Told,
    drop,
    resume_names,
    wait_until,
)
from tests.support.resumes import a_document


def test_an_importer_stands_by_while_another_works_and_says_so_once(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    first = an_importer()
    second = an_importer(beside=True)
    drop(root, "ana/1.json", a_document("1"))
    for _ in range(2):
        second.round()
    assert second.stands_by
    assert resume_names(store, ana.id) == []
    (notice,) = told.notices
    assert notice.startswith(f"Another importer is running in {root}. This one is on standby")
    first.close()
    second.round()
    assert resume_names(store, ana.id) == ["1"]
    assert not second.stands_by


def test_no_new_file_is_taken_while_a_helper_of_an_importer_that_is_gone_lives(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    helper = Slot(root, 1)
    assert helper.take()
    drop(root, "ana/1.json", a_document("1"))
    importer = an_importer()
    importer.round()
    assert resume_names(store, ana.id) == []
    helper.leave()
    importer.round()
    assert resume_names(store, ana.id) == ["1"]


def test_once_waits_for_an_importer_that_is_running(
    store: Store, root: Path, told: Told, ana: AccountInfo, drain: Drain
) -> None:
    running = Slot(root, 0)
    assert running.take()
    drop(root, "ana/1.json", a_document("1"))
    with ThreadPoolExecutor(1) as threads:
        draining = threads.submit(drain)
        wait_until(lambda: bool(told.notices) or draining.done())
        assert resume_names(store, ana.id) == []
        running.leave()
        assert draining.result() == Summary(done=1)
    assert "This one is on standby" in told.notices[0]
    assert resume_names(store, ana.id) == ["1"]
