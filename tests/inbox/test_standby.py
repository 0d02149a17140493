"""Several importers on a folder: one works, the others stand by."""

from pathlib import Path

from importer.slots import Slot
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from tests.support.inbox.builders import (
    MakeImporter,
    Told,
    drop,
    resume_names,
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
