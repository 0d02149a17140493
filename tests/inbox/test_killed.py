"""An importer killed at every step, and killed again while it recovers, loses and doubles nothing."""

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from importer import outcomes
from importer.failpoints import Observer, Step, unobserved
from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options
from resumes import analyzer
from resumes.analyzer import Format
from resumes.errors import InvalidArgument
from resumes.store import Store, accounts, import_history, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import ImporterState
from resumes.store.transfer import backups
from resumes.store.transfer.account_files import import_account
from tests.support.inbox import oracle
from tests.support.inbox.builders import (
    FakeMonotonic,
    Killed,
    MakeAccount,
    MakeImporter,
    Moment,
    Told,
    an_account_with_room_for,
    bound_by_permissions,
    closing_folder,
    counts,
    die,
    drop,
    drop_aged,
    during,
    filed,
    is_tidy,
    killing_at,
    lines,
    names_below,
    resume_names,
    the_report,
    wait_until,
)
from tests.support.inbox.homes import Drain, Fresh, check, drain, fresh, kill_at_every_step
from tests.support.inbox.killed_importer import Task, Victim
from tests.support.resumes import a_document
from tests.support.store.builders import damage, exported

__all__ = ["drain", "fresh"]  # fixtures


def test_left_alone_every_file_comes_to_its_end(drain: Drain, fresh: Fresh) -> None:
    home = fresh()
    assert drain(Task(str(home))) == 0
    check(home)


@pytest.mark.parametrize(
    ("kills", "stride"),
    [
        (1, 20),
        (2, 60),
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(2, 9, marks=pytest.mark.slow),
    ],
)
def test_killed_at_every_step_each_file_is_imported_exactly_once(
    drain: Drain, fresh: Fresh, kills: int, stride: int
) -> None:
    kill_at_every_step(drain, fresh, kills=kills, stride=stride)


@pytest.mark.campaign
@pytest.mark.parametrize(("kills", "stride"), [(1, 1), (2, 1), (3, 1)])
def test_killed_at_every_single_step_and_again_and_again(
    drain: Drain, fresh: Fresh, kills: int, stride: int
) -> None:
    kill_at_every_step(drain, fresh, kills=kills, stride=stride)


def test_no_report_lies_alone_when_an_importer_is_killed_as_it_removes_several(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    an_account_with_room_for(store, 0)
    drop_aged(root, *"12")

    def killing_at_step(wanted: Step, time: int) -> Observer:
        left = itertools.count(time - 1, -1)

        def observe(step: Step) -> None:
            if step is wanted and not next(left):
                raise Killed

        return observe

    die(an_importer(observe=killing_at_step(Step.REPORT_WRITTEN, 2)))
    # As after a restore: the store knows nothing of what it said.
    accounts.delete_account(store, "ana")
    accounts.create_account(store, "ana", plan="ana")
    die(an_importer(observe=killing_at_step(Step.REPORTS_TIDIED, 1)))
    an_importer().round()
    oracle.check_reports(root)


def test_a_file_whose_deleted_account_is_restored_after_it_was_forgotten_is_stored_once(
    root: Path, tmp_path: Path, monotonic: FakeMonotonic
) -> None:
    url, backup = f"sqlite:///{tmp_path / 'restored.db'}", tmp_path / "backup.db"

    def work(store: Store, observe: Observer = unobserved) -> None:
        importer = Importer(
            store,
            root,
            Options(),
            on_file=lambda report: None,
            notices=Notices(lambda notice: None),
            observe=observe,
            monotonic=monotonic,
        )
        with contextlib.closing(importer):
            importer.round()

    drop(root, "ana/ada.json", a_document("Ada"))
    with open_store(url) as store:
        ana = an_account_with_room_for(store, None)
        with pytest.raises(Killed):
            work(store, killing_at(Moment.COMMITTED))
        backups.back_up(store, backup)
        accounts.delete_account(store, "ana", with_resumes=True)
        work(store)
        assert names_below(root / "ana") == ["ada.json"]
    backups.restore(backup, url)
    with open_store(url) as store:
        work(store)
        # What was under way is not known any more, and the content is.
        assert counts(root, "done", "duplicate") == [0, 1]
        assert resume_names(store, ana.id) == ["Ada"]


@pytest.mark.parametrize(("name", "deaths"), [("cv.json", 2), ("cv.ndjson", 1)])
def test_i10_only_deaths_by_reading_a_file_count(
    store: Store,
    root: Path,
    ana: AccountInfo,
    an_importer: MakeImporter,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    deaths: int,
) -> None:
    def judge(body: bytes, accepted: Format) -> None:
        raise Killed

    def die_recovered(step: Step) -> None:
        if step is Step.RECOVERED:
            raise Killed

    drop(root, f"ana/{name}", a_document("Ada"))
    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "judge", judge)
        for _ in range(deaths):  # one of a resume among others does not count
            die(an_importer(settle_s=0))
    for _ in range(3):
        die(an_importer(settle_s=0, observe=die_recovered))
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["Ada"]
    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "judge", judge)
        drop(root, f"ana/{name}", a_document("Bo"))
        for _ in range(4):
            importer = an_importer(settle_s=0)
            with contextlib.suppress(Killed):
                importer.round()
            importer.close()
    assert the_report(root, "_failed")["reason"] == "crashed"


def test_i10_orderly_ends_while_a_file_is_unpacked_do_not_count(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.ndjson", b"nonsense\n" * 5 + a_document("Ada"))
    for _ in range(4):
        importer = an_importer(settle_s=0, slice_items=1)
        for _ in range(3):
            importer.turn()
        assert importer.has_work
    an_importer(settle_s=0, slice_items=1).round()
    assert resume_names(store, ana.id) == ["Ada"]


@pytest.mark.parametrize("name", ["ana/2026/cv.json", "cv.json"])
def test_i10_deaths_count_wherever_the_file_is(
    root: Path,
    ana: AccountInfo,
    an_importer: MakeImporter,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    def judge(body: bytes, accepted: Format) -> None:
        raise Killed

    drop(root, name, a_document("Ada"))
    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "judge", judge)
        for _ in range(3):
            die(an_importer(settle_s=0, account=ana.name))
    an_importer(settle_s=0, account=ana.name).round()
    assert the_report(root, "_failed")["reason"] == "crashed"


def test_an_importer_that_ends_before_it_looked_leaves_the_note_of_a_dead_one(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json", a_document("Ada"))
    die(an_importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))
    an_importer(settle_s=0).close()
    importer = an_importer(settle_s=0)
    importer.round()
    assert counts(root, "done", "duplicate") == [1, 0]
    importer.close()
    assert is_tidy(root)


@pytest.mark.parametrize(("moment", "mode"), [(None, 0o555), (Moment.NOTED, 0), (Moment.READ, 0)])
def test_i17_a_file_of_several_of_a_dead_importer_goes_on_when_it_can_be_read_again(
    store: Store,
    root: Path,
    ana: AccountInfo,
    told: Told,
    monotonic: FakeMonotonic,
    an_importer: MakeImporter,
    moment: Moment | None,
    mode: int,
) -> None:
    path = drop(root, "ana/1.ndjson", lines("1", "2", "3"))
    die(an_importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    if moment is None:
        path.parent.chmod(mode)
    importer = an_importer(observe=closing_folder(path.parent, moment or Moment.MOVED, mode=mode))
    with bound_by_permissions():
        for _ in range(5):
            importer.round()
            importer.turn()
            monotonic.advance(5)
    told_of = [notice for notice in told.notices if "Cannot pick up ana/1.ndjson" in notice]
    assert len(told_of) == 1
    assert importer.summary().stuck > 0
    path.parent.chmod(0o755)
    importer.round()
    (row,) = import_history.list_files(store)
    assert row.outcome is FileOutcome.DONE
    assert resume_names(store, ana.id) == ["1", "2", "3"]
    assert importer.summary().stuck == 0
    importer.round()
    assert importer.notices.findings() == ()


def test_a_file_of_several_of_a_dead_importer_that_is_gone_is_not_listed_for_ever(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    path = drop(root, "ana/1.ndjson", lines("1", "2", "3"))
    die(an_importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    an_importer(observe=during(Moment.NOTED, lambda: path.unlink(missing_ok=True))).round()
    assert import_history.list_files(store) == []


def test_a_committed_file_that_cannot_be_opened_any_more_is_filed(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    path = drop(root, "ana/1.json", a_document("Ada"))
    die(an_importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))
    path.chmod(0)
    with bound_by_permissions():
        an_importer(settle_s=0).round()
    assert counts(root, "done", "duplicate", "failed") == [1, 0, 0]


def test_a_file_that_was_held_and_cannot_be_opened_any_more_waits(
    store: Store, root: Path, told: Told, monotonic: FakeMonotonic, an_importer: MakeImporter
) -> None:
    an_account_with_room_for(store, 0)
    path = drop(root, "ana/1.json", a_document("Ada"))
    die(an_importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))
    path.chmod(0)
    importer = an_importer()
    with bound_by_permissions():
        for _ in range(2):
            importer.round()
    assert told.files == []
    path.chmod(0o644)
    monotonic.advance(5)
    importer.round()
    assert counts(root, "held", "failed") == [1, 0]


@pytest.mark.parametrize("restarts", [False, True])
def test_i17_a_file_of_a_dead_importer_that_cannot_be_reached_keeps_no_other_waiting(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
    restarts: bool,
) -> None:
    accounts_by_name = {name: an_account(name) for name in ("ana", "bo", "cy")}
    drop(root, "ana/1.json", a_document("Ada"))
    drop(root, "cy/1.json", a_document("Cy"))
    die(an_importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))
    (root / "cy/1.json").unlink()
    drop(root, "cy/1.json", a_document("Cy anew"))
    for name in ("ana", "cy"):
        (root / name).chmod(0)
    importer = an_importer(settle_s=0)
    with bound_by_permissions():
        drop(root, "bo/1.json", a_document("Bo"))
        for _ in range(2):
            importer.round()
            monotonic.advance(5)
        assert told.outcomes() == {"bo/1.json": "done"}
        assert importer.summary().stuck == 4  # the files, and the folders
        assert "Cannot pick up ana/1.json: Permission denied" in told.notices[0]
        assert importer.notices.state is ImporterState.DEGRADED
        if restarts:
            importer = an_importer(settle_s=0)
            importer.round()
    for name in ("ana", "cy"):
        (root / name).chmod(0o755)
    for _ in range(2):
        importer.round()
    names = {name: resume_names(store, one.id) for name, one in accounts_by_name.items()}
    assert names == {"ana": ["Ada"], "bo": ["Bo"], "cy": ["Cy", "Cy anew"]}
    assert counts(root, "done", "duplicate") == [3, 0]
    assert importer.summary().stuck == 0
    assert importer.notices.findings() == ()
    importer.close()
    assert is_tidy(root)


def test_a_duplicate_is_one_after_a_kill(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json", a_document("Ada"))
    an_importer().round()
    drop(root, "ana/2.json", a_document("Ada"))
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    an_importer().round()
    assert resume_names(store, ana.id) == ["Ada"]
    assert counts(root, "done", "duplicate") == [1, 1]


@pytest.mark.parametrize("moment", [Moment.COMMITTED, Moment.MOVED])
def test_a_file_is_known_by_its_content_after_a_kill(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter, moment: Moment
) -> None:
    path = drop(root, "ana/cv.json", a_document("First"))
    # Where it was dropped it is known whatever its age, in `_done` if it changed just now.
    os.utime(path, (0, 0 if moment is Moment.COMMITTED else time.time() + 30))
    status = path.stat()
    die(an_importer(observe=killing_at(moment)))
    (path,) = [path] if path.exists() else filed(root, "_done")
    path.write_bytes(a_document("Other"))  # as long, and as old
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    an_importer().round()
    assert resume_names(store, ana.id) == ["First", "Other"]
    assert counts(root, "done", "duplicate") == [1, 0]


def test_a_file_is_looked_up_in_its_own_account_after_a_kill(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter, tmp_path: Path
) -> None:
    drop(root, "ana/cv.json", a_document("Ada"))
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    import_account(store, exported(store, tmp_path / "ana.db"), name="bo")  # and so its history
    an_importer().round()
    assert counts(root, "done", "duplicate") == [1, 0]


def test_a_file_whose_account_the_store_has_never_had_stays_where_it_is(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    path = drop(root, "ana/cv.json", a_document("Ada"))

    def lose_account() -> None:  # as when a server's database is restored
        usage = "DELETE FROM account_usage WHERE account_id = :id"
        damage(store, usage, "DELETE FROM accounts WHERE id = :id", id=ana.id)

    importer = an_importer(observe=during(Moment.READ, lose_account))
    importer.round()
    assert path.exists()
    assert counts(root, "done", "failed") == [0, 0]
    importer.close()
    assert is_tidy(root)


# Processes that help


BACKLOG = 100


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store, and a backlog that an importer gets help with."""
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        an_account_with_room_for(store, None)
    for number in range(BACKLOG):
        content = a_document(str(number), nickname="w") if number % 3 else a_document(str(number))
        drop(tmp_path / "inbox", f"ana/{number}.json", content)
    return tmp_path


def check_backlog(home: Path) -> None:
    root = home / "inbox"
    assert counts(root, "done", "failed", "duplicate", "held") == [BACKLOG, 0, 0, 0]
    assert names_below(root / "ana") == []
    assert is_tidy(root)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        account = accounts.get_account(store, "ana")
        page = stored_resumes.list_page(store, account.id, limit=stored_resumes.MAX_LIMIT)
        assert sorted(int(entry.name or "") for entry in page.entries) == list(range(BACKLOG))
        assert accounts.list_wrong(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", range(3, 11))
def test_i8_of_a_worker_that_is_killed_its_importer_goes_on_with_everything(
    drain: Drain, home: Path, kill_at: int
) -> None:
    assert drain(Task(str(home), kill_at, Victim.WORKER)) == 0
    assert (home / "killed").exists()
    check_backlog(home)


@pytest.mark.slow
def test_i8_a_worker_ends_with_its_importer_and_nothing_is_doubled(
    drain: Drain, home: Path
) -> None:
    assert drain(Task(str(home), 5, Victim.WORKERS_IMPORTER)) == signal.SIGKILL
    killed = home / "killed"
    worker = int(killed.read_text())
    wait_until(lambda: state(worker) in ("Z", ""))  # though it waits, in the middle of a batch
    killed.unlink()
    assert drain(Task(str(home))) == 0
    check_backlog(home)


def state(pid: int) -> str:
    """The process's state as `ps` shows it; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


# What lies there of one that was killed


@pytest.mark.parametrize(
    "moment", [one for one in Moment if one not in (Moment.SET_ASIDE, Moment.COPIED)]
)
@pytest.mark.parametrize(
    ("content", "end"),
    [(a_document("Ada"), "done"), (a_document("Ada", nickname="w"), "done"), (b"{}", "failed")],
    ids=["done", "warned", "failed"],
)
def test_a_file_cut_off_anywhere_comes_to_the_same_end(
    store: Store,
    root: Path,
    ana: AccountInfo,
    an_importer: MakeImporter,
    moment: Moment,
    content: bytes,
    end: str,
) -> None:
    drop(root, "ana/cv.json", content)
    dying = an_importer(settle_s=0, observe=killing_at(moment))
    if moment is Moment.REPORTED and content == a_document("Ada"):
        dying.round()  # of which there is no report
        dying.close()
    else:
        die(dying)
    importer = an_importer(settle_s=0)
    importer.round()
    importer.close()
    assert counts(root, "done", "failed", "duplicate") == [end == "done", end == "failed", 0]
    reports = [name for name in names_below(root) if name.endswith(".report.json")]
    assert len(reports) == (content != a_document("Ada"))
    assert resume_names(store, ana.id) == (["Ada"] if end == "done" else [])
    assert is_tidy(root)


def test_a_file_that_comes_to_another_end_after_all_has_one_report(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json", b"{")
    die(an_importer(settle_s=0, observe=killing_at(Moment.READ)))
    importer = an_importer(settle_s=0)
    for path in root.rglob("*"):
        if path.is_file() and path.read_bytes() == b"{":
            path.write_bytes(a_document("Ada", nickname="w"))
    for _ in range(2):
        importer.round()
    assert resume_names(store, ana.id) == ["Ada"]
    assert counts(root, "done", "failed") == [1, 0]
    assert len([name for name in names_below(root) if name.endswith(".report.json")]) == 1


def test_what_was_committed_is_filed_as_done_whatever_is_thought_of_it_now(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json", a_document("1"))
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    an_importer(settle_s=0, format=Format(max_bytes=5)).round()
    assert resume_names(store, ana.id) == ["1"]
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_file_that_was_replaced_while_nobody_was_there_is_a_file_of_its_own(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json", a_document("First"))
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    drop(root, ".new/cv.json", a_document("Second")).rename(root / "ana/cv.json")
    importer = an_importer(settle_s=0)
    for _ in range(3):
        importer.round()
    assert resume_names(store, ana.id) == ["First", "Second"]
    contents = {path.read_bytes() for path in filed_anywhere(root)}
    assert a_document("Second") in contents


def filed_anywhere(root: Path) -> list[Path]:
    return [path for path in root.glob("_*/**/*.json") if not path.name.endswith(".report.json")]


def test_what_a_dead_importer_had_is_gone_on_with_by_one_that_runs(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json", a_document("1"))
    dying = an_importer(observe=killing_at(Moment.READ))
    survivor = an_importer(scan_s=600, beside=True)
    die(dying)
    for _ in range(3):
        survivor.round()
    assert resume_names(store, ana.id) == ["1"]
    assert told.outcomes() == {"ana/1.json": "done"}
    survivor.close()
    assert is_tidy(root)


def test_what_lies_about_of_an_importer_s_own_and_says_nothing_is_in_nobody_s_way(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    for content in (b"", b"[]\n5\nnull\n", b"\xff\xfe\x00", b"[" * 100_000, b'{"id": "../../x"}'):
        drop(root, "ana/1.json", a_document(f"{content[:9]!r}"))
        die(an_importer(observe=killing_at(Moment.NOTED)))
        for path in root.glob(".importer/*.files"):
            if path.is_file():
                path.write_bytes(content)
        an_importer().round()
    assert len(resume_names(store, ana.id)) == 5
    assert counts(root, "done", "failed", "duplicate") == [5, 0, 0]


@pytest.mark.parametrize("moment", [None, Moment.READ, Moment.COMMITTED])
def test_what_ended_the_importer_again_and_again_is_put_aside_unread(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    an_importer: MakeImporter,
    monkeypatch: pytest.MonkeyPatch,
    moment: Moment | None,
) -> None:
    deaths = 0

    def parse(body: bytes, format: Format) -> analyzer.Resume:  # noqa: A002  (as in the analyzer)
        nonlocal deaths
        if b"poison" in body:
            deaths += 1
            raise Killed
        return parse_safely(body, format)

    parse_safely = analyzer.parse_imported
    content = b'{"header": "poison"}'
    drop(root, "ana/1.json", content)
    if moment is not None:
        die(an_importer(settle_s=0, observe=killing_at(moment)))
    drop(root, "ana/2.json", a_document("2"))
    monkeypatch.setattr(analyzer, "parse_imported", parse)
    importer = an_importer(settle_s=0)
    while not told.files:
        lived_until = deaths
        with contextlib.suppress(Killed):
            importer.round()
        if deaths > lived_until:
            assert deaths < 5
            importer.close()
            importer = an_importer(settle_s=0)
    importer.round()
    importer.close()

    assert deaths in (2, 3)
    assert told.outcomes() == {"ana/1.json": "failed", "ana/2.json": "done"}
    (path,) = filed(root, "_failed/crashed")
    assert path.read_bytes() == content
    report = the_report(root, "_failed")
    assert (report["file"], report["sizeBytes"]) == ("ana/1.json", len(content))
    assert resume_names(store, ana.id) == ["2"]
    assert is_tidy(root)


def write_on(root: Path, content: bytes) -> None:
    """A writer that has kept the file open, by another name here, writes it anew, once."""
    alias = root.parent / "alias"
    if alias.stat().st_size != len(content):
        alias.write_bytes(content)


def test_what_is_written_on_while_nobody_is_there_is_a_file_of_its_own(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    os.link(drop(root, "ana/cv.json", a_document("First")), root.parent / "alias")
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    write_on(root, a_document("Second"))
    importer = an_importer(settle_s=0)
    for _ in range(3):
        importer.round()
        monotonic.advance(5)
    importer.close()
    assert resume_names(store, ana.id) == ["First", "Second"]
    assert [path.read_bytes() for path in filed(root, "_done")] == [a_document("Second")]
    assert is_tidy(root)


def test_what_is_written_on_after_the_commit_and_is_no_resume_fails_with_a_report(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    os.link(drop(root, "ana/cv.json", a_document("First")), root.parent / "alias")
    importer = an_importer(observe=during(Moment.COMMITTED, lambda: write_on(root, b"{")))
    for _ in range(3):
        importer.round()
        monotonic.advance(5)
    importer.close()
    assert resume_names(store, ana.id) == ["First"]
    assert [path.read_bytes() for path in filed(root, "_failed")] == [b"{"]
    assert the_report(root, "_failed")["reason"] == "invalid_json"
    assert is_tidy(root)


def test_what_is_written_on_and_cannot_be_put_back_for_now_is_put_back_later(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    os.link(drop(root, "ana/cv.json", a_document("First")), root.parent / "alias")

    def write_on_and_hinder() -> None:
        write_on(root, a_document("Second"))
        (root / "ana").chmod(0o555)

    importer = an_importer(observe=during(Moment.MOVED, write_on_and_hinder))
    with bound_by_permissions():
        importer.round()
        (path,) = filed(root, "_done")
        assert told.notices == [
            "ana/cv.json was changed during its import; its new content is in "
            f"{path.relative_to(root)} and cannot be moved back: Permission denied. "
            "This will be retried"
        ]
        assert names_below(root / "ana") == []
        (root / "ana").chmod(0o755)
        for _ in range(3):
            monotonic.advance(5)
            importer.round()
            (root / "ana").chmod(0o755)
    importer.close()
    assert resume_names(store, ana.id) == ["First", "Second"]
    assert is_tidy(root)


def test_what_went_back_and_somebody_takes_away_is_forgotten(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    path = drop(root, "ana/cv.json", a_document("First"))
    os.link(path, root.parent / "alias")
    importer = an_importer(observe=during(Moment.COMMITTED, lambda: write_on(root, b"{")))
    importer.round()
    assert importer.awaited == ["ana/cv.json"]
    path.unlink()
    notices = len(told.notices)
    for _ in range(2):
        monotonic.advance(5)
        importer.round()
    assert importer.awaited == []
    assert told.notices[notices:] == []
    importer.close()
    assert is_tidy(root)


def test_what_went_back_and_may_not_be_read_any_more_fails_after_twelve_settling_times(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    alias = root.parent / "alias"
    os.link(drop(root, "ana/cv.json", a_document("First")), alias)

    def write_on_and_forbid() -> None:
        write_on(root, a_document("Second"))
        alias.chmod(0)

    importer = an_importer(settle_s=5, observe=during(Moment.COMMITTED, write_on_and_forbid))
    with bound_by_permissions():
        importer.round()
        for _ in range(11):
            monotonic.advance(5)
            importer.round()
            assert told.outcomes() == {}
        for _ in range(3):
            monotonic.advance(5)
            importer.round()
    assert told.outcomes() == {"ana/cv.json": "failed"}
    (report,) = (root / "_failed" / "unreadable").glob("*.report.json")
    assert "Permission denied" in report.read_text()
    importer.close()
    assert is_tidy(root)


def test_without_the_note_of_what_was_under_way_nothing_is_begun(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json")
    die(an_importer(settle_s=0, observe=killing_at(Moment.READ)))
    (note,) = root.glob(".importer/*.files")
    note.chmod(0)
    with bound_by_permissions(), pytest.raises(InvalidArgument, match="Permission denied"):
        an_importer(settle_s=0)
    note.chmod(0o600)
    importer = an_importer(settle_s=0)
    importer.round()
    assert told.outcomes() == {"ana/1.json": "done"}
    importer.close()
    assert is_tidy(root)
