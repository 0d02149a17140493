import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer import pipeline, rhythm
from importer.service import Options, Summary, watch
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import Store, plans
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanChange
from tests.importer.builders import Told, drop, filed, names_below, resume_names, wait_until
from tests.resumes.builders import a_document

MakeAccount = Callable[..., AccountInfo]


def drain(store: Store, root: Path, told: Told, **options: Any) -> Summary:
    return watch(
        store,
        root,
        Options(**{"once": True, "settle_s": 0.05, **options}),
        stop=threading.Event(),
        on_file=told.files.append,
        on_notice=told.notices.append,
    )


def test_once_drains_also_what_has_to_settle(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    an_account()
    drop(root, "ana/1.json")
    drop(root, "ana/2.json", b"{}")
    assert drain(store, root, told) == Summary(done=1, failed=1)
    assert names_below(root / ".work") == []


def test_an_empty_folder_is_drained_at_once(store: Store, root: Path, told: Told) -> None:
    assert drain(store, root, told, settle_s=60) == Summary()


def test_more_than_a_batch_is_drained(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    an_account()
    for number in range(250):
        drop(root, f"ana/{number % 7}/{number}.json")
    assert drain(store, root, told) == Summary(done=250)


@pytest.mark.parametrize(
    "make",
    [lambda path: None, lambda path: path.touch(), lambda path: path.symlink_to(path)],
    ids=["missing", "a file", "a loop of links"],
)
def test_a_root_that_cannot_be_used_is_refused(
    store: Store, tmp_path: Path, told: Told, make: Callable[[Path], None]
) -> None:
    root = tmp_path / "elsewhere"
    make(root)
    with pytest.raises(InvalidArgument, match="elsewhere"):
        drain(store, root, told)


def test_a_root_without_room_for_work_is_refused(store: Store, root: Path, told: Told) -> None:
    (root / ".work").touch()
    with pytest.raises(InvalidArgument, match="Cannot write in"):
        drain(store, root, told)


def test_once_gives_up_when_the_store_stays_out_of_reach(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    an_account()
    drop(root, "ana/1.json")

    def unavailable(*_: object) -> None:
        raise StoreUnavailable("The store is busy")

    monkeypatch.setattr(pipeline, "create_files", unavailable)
    monkeypatch.setattr(rhythm, "FIRST_BACK_OFF_S", 0.001)
    with pytest.raises(StoreUnavailable):
        drain(store, root, told)
    assert told.notices == ["The store is busy. Nothing new is taken until that is over"]


def test_files_are_imported_as_they_come_until_it_is_stopped(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    account = an_account()
    stop = threading.Event()
    summaries: list[Summary] = []

    def run() -> None:
        options = Options(settle_s=0.05, scan_s=0.2)
        summaries.append(
            watch(
                store,
                root,
                options,
                stop=stop,
                on_file=told.files.append,
                on_notice=told.notices.append,
            )
        )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        drop(root, "ana/1.json", a_document("1"))
        wait_until(lambda: resume_names(store, account.id) == ["1"])
        drop(root, "ana/new/folder/2.json", a_document("2"))
        drop(root, "ana/bad.json", b"{")
        wait_until(lambda: len(told.files) == 3)
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()
    assert summaries == [Summary(done=2, failed=1)]


def test_held_files_are_released_without_a_restart(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    account = an_account(plan="none")
    drop(root, "ana/1.json", a_document("1"))
    stop = threading.Event()
    thread = threading.Thread(
        target=watch,
        args=(store, root, Options(scan_s=600)),
        kwargs={"stop": stop, "on_file": told.files.append, "on_notice": told.notices.append},
    )
    thread.start()
    try:
        wait_until(lambda: len(filed(root, "_held")) == 1)
        plans.set_plan_limits(store, PlanChange("none", max_resumes=1))
        wait_until(lambda: resume_names(store, account.id) == ["1"])
    finally:
        stop.set()
        thread.join(5)


def test_the_corpus_is_imported_through_the_inbox(
    store: Store, root: Path, told: Told, an_account: MakeAccount, repository: Path
) -> None:
    import tarfile

    corpus = repository.parent / "shared" / "corpus" / "analyzer-fake.tar.gz"
    if not corpus.exists():
        pytest.skip("the corpus beside the repository is not there")
    plans.set_plan_limits(store, PlanChange("all", max_resumes=None))
    account = an_account(plan="all")
    with tarfile.open(corpus) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            content = archive.extractfile(member)
            assert content is not None
            drop(root, f"ana/{Path(member.name).name}", content.read())
    summary = drain(store, root, told)
    assert (summary.done + summary.duplicate, summary.failed) == (337, 0)
    with store.read() as connection:
        count = connection.exec_driver_sql(
            "SELECT count(*) FROM resumes WHERE account_id = ?", (account.id,)
        ).scalar_one()
    assert count == summary.done
