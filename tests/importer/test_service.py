import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from importer import rhythm, service
from importer.service import Options, Progress, Summary, watch
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import Store, asking, importers, ledger, plans
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanChange
from resumes.store.requests import Action
from resumes.store.schema import resumes
from tests.importer.builders import Told, drop, filed, names_below, resume_names, wait_until
from tests.resumes.builders import a_document
from tests.resumes.store.builders import Busy

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
    busy: Busy,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    an_account()
    drop(root, "ana/1.json")
    monkeypatch.setattr(rhythm, "FIRST_BACK_OFF_S", 0.001)
    with busy.held(), pytest.raises(StoreUnavailable):
        drain(store, root, told)
    (notice,) = told.notices
    assert notice.startswith("The store is busy")
    assert notice.endswith("Nothing new is taken until that is over")


@contextmanager
def watched(store: Store, root: Path, told: Told, **options: Any) -> Iterator[list[Summary]]:
    """The folder is watched during the block; afterwards the list holds what it came to."""
    stop = threading.Event()
    summaries: list[Summary] = []

    def run() -> None:
        summaries.append(
            watch(
                store,
                root,
                Options(**{"settle_s": 0.05, "scan_s": 0.2, **options}),
                stop=stop,
                on_file=told.files.append,
                on_notice=told.notices.append,
            )
        )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield summaries
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def test_files_are_imported_as_they_come_until_it_is_stopped(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    account = an_account()
    with watched(store, root, told) as summaries:
        drop(root, "ana/1.json", a_document("1"))
        wait_until(lambda: resume_names(store, account.id) == ["1"])
        drop(root, "ana/new/folder/2.json", a_document("2"))
        drop(root, "ana/bad.json", b"{")
        wait_until(lambda: len(told.files) == 3)
    assert summaries == [Summary(done=2, failed=1)]
    assert names_below(root / ".work") == []


@pytest.mark.parametrize("poll", [False, True], ids=["by events", "by scans"])
def test_a_file_is_found_by_its_event_or_by_the_next_scan(
    store: Store, root: Path, told: Told, an_account: MakeAccount, poll: bool
) -> None:
    account = an_account()
    (root / "ana").mkdir()
    with watched(store, root, told, scan_s=0.2 if poll else 600, poll=poll):
        drop(root, "ana/1.json", a_document("1"))
        wait_until(lambda: resume_names(store, account.id) == ["1"])
        drop(root, "ana/deep/2.json", a_document("2"))
        wait_until(lambda: resume_names(store, account.id) == ["1", "2"])
    assert any("polling was asked for" in notice for notice in told.notices) is poll


def test_held_files_are_released_without_a_restart(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    account = an_account(plan="none")
    drop(root, "ana/1.json", a_document("1"))
    with watched(store, root, told, scan_s=600):
        wait_until(lambda: len(filed(root, "_held")) == 1)
        plans.set_plan_limits(store, PlanChange("none", max_resumes=1))
        wait_until(lambda: resume_names(store, account.id) == ["1"])


def test_what_somebody_asks_for_is_done_without_a_restart(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    account = an_account()
    drop(root, "ana/1.json", b"{}")
    with watched(store, root, told, scan_s=600):
        wait_until(lambda: len(told.files) == 1)
        (path,) = filed(root, "_failed")
        path.write_bytes(a_document("1"))
        asking.ask(store, ledger.list_files(store), Action.RETRY)
        wait_until(lambda: resume_names(store, account.id) == ["1"])


def test_an_importer_is_announced_while_it_runs(store: Store, root: Path, told: Told) -> None:
    with watched(store, root, told):
        wait_until(lambda: len(importers.list_importers(store)) == 1)
        (seen,) = importers.list_importers(store)
        assert seen.importer.root == str(root)
    assert importers.list_importers(store) == []


def test_an_inbox_that_vanishes_and_is_back_needs_no_restart(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    monkeypatch.setattr(rhythm, "LONGEST_BACK_OFF_S", 0.05)
    monkeypatch.setattr(service, "FOLLOW_S", 0.05)
    account = an_account()
    with watched(store, root, told):
        wait_until(lambda: len(importers.list_importers(store)) == 1)
        root.rename(root.with_name("away"))
        wait_until(lambda: any("Nothing new is taken" in notice for notice in told.notices))
        root.mkdir()
        drop(root, "ana/1.json", a_document("1"))
        wait_until(lambda: resume_names(store, account.id) == ["1"])
        wait_until(lambda: "Importing goes on" in told.notices)


def test_a_dry_run_changes_nothing(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    account = an_account()
    drop(root, "ana/1.json")
    drop(root, "ana/2.json", b"{}")
    assert drain(store, root, told, dry_run=True) == Summary(done=1, failed=1)
    assert told.outcomes() == {"ana/1.json": "done", "ana/2.json": "failed"}
    assert names_below(root) == ["ana/1.json", "ana/2.json"]
    assert resume_names(store, account.id) == []
    assert ledger.list_files(store) == []


@pytest.mark.parametrize("once", [True, False])
def test_done_files_are_pruned_if_that_was_chosen(
    store: Store, root: Path, told: Told, an_account: MakeAccount, once: bool
) -> None:
    account = an_account()
    drop(root, "ana/1.json", a_document("1"))
    old = drop(root, "_done/2020-01-01/cv-0123abcd.json")
    if once:
        drain(store, root, told, done_keep_days=1)
    else:
        with watched(store, root, told, done_keep_days=1):
            wait_until(lambda: len(told.files) == 1 and not old.exists())
    assert not old.exists()
    assert resume_names(store, account.id) == ["1"]
    assert len(filed(root, "_done")) == 1


def test_the_command_runs_after_a_batch(
    store: Store, root: Path, told: Told, tmp_path: Path, an_account: MakeAccount
) -> None:
    an_account()
    drop(root, "ana/1.json")
    drop(root, "ana/2.json", b"{}")
    out = tmp_path / "out"
    command = f'echo "$RESUMES_IMPORT_DONE $RESUMES_IMPORT_FAILED" >> {out}'
    drain(store, root, told, on_import=command)
    assert out.read_text() == "1 1\n"


def test_the_progress_is_told(
    store: Store, root: Path, told: Told, an_account: MakeAccount
) -> None:
    an_account()
    drop(root, "ana/1.json")
    seen: list[Progress] = []
    watch(
        store,
        root,
        Options(once=True),
        stop=threading.Event(),
        on_file=told.files.append,
        on_notice=told.notices.append,
        on_progress=seen.append,
    )
    assert (seen[-1].done, seen[-1].waiting) == (1, 0)


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
        count = connection.execute(select(func.count()).where(resumes.c.account_id == account.id))
        assert count.scalar_one() == summary.done
