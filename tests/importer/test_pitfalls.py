"""The importer's scenarios of docs/pitfalls.md, each test named after its row."""

import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from importer import bundles, workforce
from importer.changes import Changes
from importer.filing import report_path
from importer.health import Health
from importer.options import Options
from importer.rounds import TAKE_OVER_S, Importer
from importer.steps import Step
from importer.telling import Remarks
from importer.trying import OPEN_S
from importer.watching import watching
from importer.workspaces import LEASE
from resumes.store import Store, accounts, counters, ledger, listing, open_store, plans
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanChange
from tests.importer import killed_importer
from tests.importer.builders import (
    FakeMonotonic,
    MakeImporter,
    Told,
    drop,
    filed,
    names_below,
    resume_names,
    the_report,
    wait_until,
)
from tests.importer.killed_importer import Task, Victim
from tests.importer.packing import gzipped
from tests.resumes.builders import a_document

MakeAccount = Callable[..., AccountInfo]


class Killed(BaseException):
    """Stands for the process ending at a step; nothing catches it."""


def killed_at(which: Step) -> Callable[[Step], None]:
    def observe(step: Step) -> None:
        if step is which:
            raise Killed

    return observe


def die(importer: Importer) -> None:
    """The importer ends in the middle of a round."""
    with pytest.raises(Killed):
        importer.round()
    importer.close()


def rounds_until(importer: Importer, is_so: Callable[[], bool]) -> None:
    """Round after round is done until it is so: a round ends after a second, whatever is left."""

    def is_so_after_a_round() -> bool:
        importer.round()
        return is_so()

    wait_until(is_so_after_a_round)


def claimed(root: Path) -> list[Path]:
    """The files among the claims."""
    return list((root / ".work").glob("*/*/" + 24 * "[0-9a-f]"))


# I1: contents and claims are two questions


def test_i1_a_deleted_resume_can_be_dropped_again_and_a_refused_file_is_no_duplicate(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/1.json", a_document("Ada"))
    drop(root, "ana/bad1.json", b"{}")
    importer.round()
    (entry,) = listing.list_page(store, account.id).entries
    listing.delete_resume(store, account.id, entry.id)
    drop(root, "ana/2.json", a_document("Ada"))
    drop(root, "ana/bad2.json", b"{}")
    importer.round()
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/bad1.json": "failed",
        "ana/bad2.json": "failed",
    }


def test_i1_killed_after_the_commit_then_deleted_then_recovered_does_not_bring_it_back(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, "ana/1.json", a_document("Ada"))
    die(an_importer(observe=killed_at(Step.COMMITTED)))
    (entry,) = listing.list_page(store, account.id).entries
    listing.delete_resume(store, account.id, entry.id)
    an_importer().round()
    assert resume_names(store, account.id) == []
    assert len(filed(root, "_done")) == 1


# I2: the same content twice at once


def test_i2_repeats_in_a_file_are_duplicates_of_its_first(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    lines = [a_document("1"), b" " + a_document("1") + b"\t", a_document("2"), a_document("1")]
    drop(root, "ana/many.ndjson", b"\r\n".join(lines))
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["1", "2"]
    items = the_report(root, "_done")["items"]
    assert [item["outcome"] for item in items] == ["done", "duplicate", "done", "duplicate"]
    assert items[1]["duplicate_of"] == items[3]["duplicate_of"] == items[0]["resume_id"]
    assert counters.list_wrong(store) == []


def test_i2_of_equal_files_in_a_batch_one_is_imported(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("one", max_resumes=1))
    account = an_account(plan="one")
    for number in range(5):
        drop(root, f"ana/{number}.json", a_document("1") + b"\n" * number)
    an_importer().round()
    assert resume_names(store, account.id) == ["1"]
    counts = [len(filed(root, outcome)) for outcome in ("_done", "_duplicate", "_held")]
    assert counts == [1, 4, 0]


def test_i2_a_file_beside_itself_compressed_is_imported_once(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    drop(root, "ana/cv.json", a_document("1"))
    drop(root, "ana/cv.json.gz", gzipped(a_document("1")))
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["1"]
    counts = [len(filed(root, outcome)) for outcome in ("_done", "_duplicate")]
    assert counts == [1, 1]


# I3: beginnings that look like something else


def test_i3_a_writer_first_puts_an_empty_object_or_zeros_and_nothing_is_judged_too_soon(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account()
    importer = an_importer(settle_s=5)
    drop(root, "ana/1.json", b"{}")
    drop(root, "ana/2.json", b"\x00" * 500)
    drop(root, "ana/3.json", a_document("Cut")[:40])
    drop(root, "ana/4.json", b"{}")
    importer.round()
    monotonic.advance(4.9)
    importer.round()
    assert told.files == []
    for number in (1, 2, 3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    monotonic.advance(0.2)
    importer.round()
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/3.json": "done",
        "ana/4.json": "failed",
    }


def test_i3_lines_that_grow_under_a_json_name_are_not_taken_for_their_first(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    importer = an_importer(settle_s=5)
    path = drop(root, "ana/many.json", a_document("1") + b"\n" + a_document("2")[:50])
    importer.round()
    monotonic.advance(4)
    path.write_bytes(a_document("1") + b"\n" + a_document("2") + b"\n")
    importer.round()
    assert resume_names(store, account.id) == []
    monotonic.advance(5)
    importer.round()
    assert resume_names(store, account.id) == ["1", "2"]


# I4: a writer that goes on after a complete version


def test_i4_a_writer_that_keeps_its_descriptor_has_its_last_version_imported(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    importer = an_importer()
    with drop(root, "ana/cv.json", a_document("First")).open("r+b") as writer:
        importer.round()
        assert names_below(root / "ana") == []
        assert resume_names(store, account.id) == []
        writer.write(a_document("Second"))
        writer.truncate()
        writer.flush()
        monotonic.advance(10)
        importer.round()
        assert resume_names(store, account.id) == []
    monotonic.advance(10)
    importer.round()
    assert resume_names(store, account.id) == ["Second"]
    assert [path.read_bytes() for path in filed(root, "_done")] == [a_document("Second")]


def test_i4_a_writer_that_keeps_the_file_mapped_has_its_last_version_imported(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    importer = an_importer()
    with drop(root, "ana/cv.json", a_document("One")).open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    with mapped:
        importer.round()
        mapped[:] = a_document("Two")
        monotonic.advance(10)
        importer.round()
        assert resume_names(store, account.id) == []
    monotonic.advance(10)
    importer.round()
    assert resume_names(store, account.id) == ["Two"]


def test_i4_a_file_that_is_never_closed_is_imported_after_a_minute_of_quiet(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    importer = an_importer(settle_s=1)
    with drop(root, "ana/cv.json", a_document("1")).open("r+b"):
        for _ in range(int(OPEN_S) - 1):
            importer.round()
            monotonic.advance(1)
        assert resume_names(store, account.id) == []
        monotonic.advance(2)
        importer.round()
        assert resume_names(store, account.id) == ["1"]


def test_i4_where_nothing_says_whether_there_is_a_writer_a_second_of_quiet_does(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr("importer.leases.find_writer", lambda descriptor: None)
    account = an_account()
    importer = an_importer()
    drop(root, "ana/cv.json", a_document("1"))
    importer.round()
    monotonic.advance(0.9)
    importer.round()
    assert resume_names(store, account.id) == []
    monotonic.advance(0.2)
    importer.round()
    assert resume_names(store, account.id) == ["1"]


def test_i4_what_is_written_after_the_commit_is_a_file_of_its_own(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    os.link(drop(root, "ana/cv.json", a_document("First")), root.parent / "alias")

    def write_on(step: Step) -> None:
        if step is Step.COMMITTED and "First" in (root.parent / "alias").read_text():
            (root.parent / "alias").write_bytes(a_document("Second"))

    importer = an_importer(observe=write_on)
    importer.round()
    assert filed(root, "_done") == []
    assert any("is imported as a file of its own" in notice for notice in told.notices)
    for _ in range(2):
        monotonic.advance(5)
        importer.round()
    assert resume_names(store, account.id) == ["First", "Second"]
    assert [path.read_bytes() for path in filed(root, "_done")] == [a_document("Second")]
    assert [row.name for row in ledger.list_files(store)] == ["ana/cv.json"] * 2
    importer.close()
    assert list((root / ".work").iterdir()) == []


# I5: nothing goes back, nothing is replaced


def test_i5_a_newer_file_of_the_same_name_survives_a_claim_that_has_to_settle(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    path = drop(root, "ana/cv.json", a_document("First"))
    importer = an_importer(settle_s=5)
    with path.open("r+b") as writer:
        writer.truncate(5)
        writer.write(a_document("First"))
        writer.flush()
        importer.round()
        assert not path.exists()
        drop(root, "ana/cv.json", a_document("Newer"))
        importer.round()
        assert resume_names(store, account.id) == ["Newer"]
        writer.seek(0)
        writer.write(a_document("First, finished"))
    monotonic.advance(5)
    importer.round()
    assert resume_names(store, account.id) == ["Newer", "First, finished"]
    assert len(filed(root, "_done")) == 2


def test_i5_equal_names_never_overwrite_one_another(
    root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer()
    for number in range(3):
        drop(root, "ana/cv.json", a_document(str(number)))
        importer.round()
    contents = {path.read_bytes() for path in filed(root, "_done")}
    assert contents == {a_document(str(number)) for number in range(3)}


# I6: claims that were left


@pytest.mark.parametrize(
    "step", [Step.JOURNAL_WRITTEN, Step.CLAIMED, Step.READ, Step.COMMITTED, Step.MOVED]
)
def test_i6_recovery_knows_the_account_and_the_name_of_a_claim(
    store: Store,
    root: Path,
    told: Told,
    an_account: MakeAccount,
    an_importer: MakeImporter,
    step: Step,
) -> None:
    account = an_account()
    name = os.fsdecode(b"ana/deep/bad\xff\n.json")
    drop(root, name, a_document("Ada"))
    die(an_importer(observe=killed_at(step)))
    importer = an_importer()
    importer.round()
    importer.close()
    assert resume_names(store, account.id) == ["Ada"]
    assert [file.name for file in told.files] == (
        [] if step is Step.MOVED else ["ana/deep/bad\\xff\\x0a.json"]
    )
    assert len(filed(root, "_done")) == 1
    assert names_below(root / ".work") == []


def test_i6_two_importers_never_take_one_file_twice(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    for number in range(20):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    second = an_importer()
    overtaken: list[Step] = []

    def overtake(step: Step) -> None:
        if step is Step.JOURNAL_WRITTEN and not overtaken:
            overtaken.append(step)
            second.round()

    first = an_importer(observe=overtake)
    first.round()
    first.round()
    assert sorted(resume_names(store, account.id)) == sorted(str(n) for n in range(20))
    assert len(told.files) == 20
    assert len(filed(root, "_done")) == 20


# I7: held files keep their order


def drop_aged(root: Path, *names: str) -> None:
    """Files in ana's inbox whose resumes have these names, the oldest first."""
    for age, name in enumerate(names):
        os.utime(drop(root, f"ana/{name}.json", a_document(name)), ns=(age, age))


def test_i7_a_new_file_does_not_overtake_held_ones_through_a_place_freed_meanwhile(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=1))
    account = an_account(plan="small")
    drop_aged(root, "0", "1")
    an_importer().round()
    drop(root, "ana/late.json", a_document("late"))
    drop(root, "ana/again.json", a_document("0"))

    def free_a_place(step: Step) -> None:
        if step is Step.JOURNAL_WRITTEN:
            plans.set_plan_limits(store, PlanChange("small", max_resumes=2))

    importer = an_importer(observe=free_a_place)
    importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert len(filed(root, "_held")) == 2
    assert len(filed(root, "_duplicate")) == 1
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]


def test_i7_no_more_are_released_than_there_are_places_and_the_others_stay_as_they_are(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=0))
    account = an_account(plan="small")
    drop_aged(root, *"0123")
    importer = an_importer()
    importer.round()
    later = {path.name: path.stat().st_ctime_ns for path in sorted(filed(root, "_held"))[1:]}
    told.files.clear()
    plans.set_plan_limits(store, PlanChange("small", max_resumes=1))
    for _ in range(3):
        importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert [file.name for file in told.files] == ["ana/0.json"]
    assert {path.name: path.stat().st_ctime_ns for path in filed(root, "_held")} == later


def test_i7_the_order_outlives_the_importer_and_the_return_of_a_file(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=0))
    account = an_account(plan="small")
    drop_aged(root, *"012")
    an_importer().round()

    def take_the_place_back(step: Step) -> None:
        if step is Step.CLAIMED:
            plans.set_plan_limits(store, PlanChange("small", max_resumes=0))

    plans.set_plan_limits(store, PlanChange("small", max_resumes=1))
    bounced = an_importer(observe=take_the_place_back)
    bounced.round()
    assert resume_names(store, account.id) == []
    bounced.close()
    drop(root, "ana/late.json", a_document("late"))
    an_importer().round()
    plans.set_plan_limits(store, PlanChange("small", max_resumes=None))
    an_importer().round()
    assert resume_names(store, account.id) == ["0", "1", "2", "late"]


def test_i7_a_file_of_several_is_not_overtaken_by_the_next(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=0))
    account = an_account(plan="small")
    importer = an_importer()
    drop(root, "ana/several.json", b"[%s]" % b",".join(map(a_document, "01")))
    importer.round()
    monotonic.advance(6)
    assert importer.round() == 1
    drop(root, "ana/one.json", a_document("late"))
    assert importer.round() == 1
    plans.set_plan_limits(store, PlanChange("small", max_resumes=2))
    for _ in range(3):
        importer.round()
    assert resume_names(store, account.id) == ["0", "1"]


def test_i7_what_a_dead_importer_had_claimed_does_not_overtake_what_it_held(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("small", max_resumes=0))
    account = an_account(plan="small")
    drop_aged(root, *"01")
    die(an_importer(observe=killed_at(Step.MOVED)))
    assert len(filed(root, "_held")) == 1
    plans.set_plan_limits(store, PlanChange("small", max_resumes=1))
    importer = an_importer()
    for _ in range(2):
        importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert len(filed(root, "_held")) == 1


# I8: who lives, and who does not


def test_i8_a_lease_that_was_replaced_is_not_taken_for_the_one_that_is_held(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    account = an_account()
    first, second = an_importer(), an_importer(settle_s=1)
    with drop(root, "ana/1.json", a_document("1")).open("r+b"):
        first.round()
        (claim,) = claimed(root)
        lease = claim.parents[1] / LEASE
        lease.unlink()
        lease.touch()
        second.round()
    drop(root, "ana/2.json", a_document("2"))
    first.round()
    monotonic.advance(TAKE_OVER_S)
    second.round()
    first.round()
    assert sorted(resume_names(store, account.id)) == ["1", "2"]
    assert sorted(file.name for file in told.files) == ["ana/1.json", "ana/2.json"]


# I9: a file system of its own


@pytest.fixture
def foreign(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """While it is patched, ana's folder is a file system of its own."""
    rename = os.rename

    def refuse(source: str, target: str, *, src_dir_fd: int) -> None:
        if Path(f"/proc/self/fd/{src_dir_fd}").readlink() == root / "ana":
            raise OSError(18, "Invalid cross-device link")
        rename(source, target, src_dir_fd=src_dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr("importer.taking.os.rename", refuse)
        yield patch


def test_i9_an_account_folder_that_is_a_mount_is_named_and_the_others_go_on(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    foreign: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    for name in ("ana", "bo"):
        an_account(name)
    for number in range(3):
        drop(root, f"ana/{number}.json")
        drop(root, f"bo/{number}.json", a_document(str(number)))
    health = Health(lambda finding: None)
    importer = Importer(
        store,
        root,
        Options(workers=0),
        on_file=told.files.append,
        remarks=Remarks(told.notices.append),
        health=health,
        monotonic=monotonic,
    )
    importer.round()
    assert told.outcomes() == dict.fromkeys(("bo/0.json", "bo/1.json", "bo/2.json"), "done")
    assert len(names_below(root / "ana")) == 3
    (finding,) = health.findings()
    assert finding.state == "degraded"
    assert 'The folder "ana" is a file system of its own' in finding.sentence
    assert f"resumes watch {root}/ana --account ana" in finding.sentence
    foreign.undo()
    monotonic.advance(60)
    importer.round()
    assert names_below(root / "ana") == []
    assert health.findings() == ()
    importer.close()


def can_mount() -> bool:
    command = ["unshare", "--mount", "true"]
    return shutil.which("unshare") is not None and subprocess.run(command).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="nothing can be mounted here")
def test_i9_of_a_real_mount_nothing_is_taken_and_the_others_go_on(tmp_path: Path) -> None:
    root = tmp_path / "inbox"
    drop(root, "bo/1.json", a_document("1"))
    (root / "ana").mkdir()
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        for name in ("ana", "bo"):
            accounts.create_account(store, name)
    script = (
        'mount -t tmpfs none "$1/inbox/ana" && cp "$1/inbox/bo/1.json" "$1/inbox/ana" && '
        '"$2" -c "$3" "$1" && ls "$1/inbox/ana"'
    )
    python = (
        "import sys; from tests.importer.killed_importer import drain_aloud; "
        "drain_aloud(sys.argv[1])"
    )
    checkout = Path(__file__).parents[2]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable, python],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    finding, left = done.stdout.splitlines()
    assert finding.startswith('degraded: The folder "ana" is a file system of its own')
    assert left == "1.json"
    assert len(filed(root, "_done")) == 1


# I10: a file that ends the process


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store and an inbox in which a file is poison, among others."""
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        accounts.create_account(store, "ana", plan="business")
    for number in range(3):
        drop(tmp_path / "inbox", f"ana/{number}.json", a_document(str(number)))
        drop(tmp_path / "inbox", f"ana/z{number}.json", a_document(f"z{number}"))
    return tmp_path


@pytest.mark.parametrize(
    ("victim", "name", "poison"),
    [
        (Victim.IMPORTER, "ana/poison.json", killed_importer.POISON),
        (Victim.IMPORTER, "ana/poison.ndjson", a_document("before") + b"\npoison\n"),
        (Victim.IMPORTER, "ana/poison.json.gz", gzipped(b'["poison"]')),
        (Victim.WORKER, "ana/poison.json", killed_importer.POISON),
    ],
    ids=["a resume", "a line", "an item", "in a worker"],
)
def test_i10_a_file_that_ends_the_process_is_put_aside_and_its_neighbours_are_imported(
    home: Path, victim: Victim, name: str, poison: bytes
) -> None:
    root = home / "inbox"
    drop(root, name, poison)
    task = Task(str(home), victim=victim, is_poisonable=True)
    with killed_importer.importers() as drain:
        starts = [drain(task)]
        while starts[-1] != 0 and len(starts) < 5:
            starts.append(drain(task))
    assert set(starts[:-1]) == {signal.SIGKILL}
    assert starts[-1] == 0
    assert 2 <= len(starts) <= 4
    (path,) = filed(root, "_failed/crashed")
    assert path.read_bytes() == poison
    assert the_report(root, "_failed")["file"] == name
    assert list((root / ".work").iterdir()) == []
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        account = accounts.get_account(store, "ana")
        names = set(resume_names(store, account.id)) - {"before"}
        assert names == {"0", "1", "2", "z0", "z1", "z2"}
        rows = {row.name: row.reason for row in ledger.list_files(store)}
        assert rows[name] == "crashed"


# I11: no room to file away


def test_i11_what_cannot_be_filed_stays_claimed_is_retried_and_stops_new_claims(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    importer = an_importer()
    (root / "_done").write_bytes(b"in the way")
    drop(root, "ana/1.json", a_document("1"))
    importer.round()
    drop(root, "ana/2.json", a_document("2"))
    importer.round()
    was_stuck = importer.is_stuck
    assert was_stuck
    assert resume_names(store, account.id) == ["1"]
    assert (root / "ana/2.json").exists()
    (notice,) = told.notices
    assert "Cannot file ana/1.json away" in notice
    (root / "_done").unlink()
    importer.round()
    assert not importer.is_stuck
    assert resume_names(store, account.id) == ["1", "2"]
    assert len(filed(root, "_done")) == 2


@contextmanager
def no_file_larger_than(limit_bytes: int) -> Iterator[None]:
    """During the block this process cannot make a file larger, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_i11_a_report_for_which_there_is_no_room_is_written_when_there_is(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    monkeypatch.setattr(bundles, "SLICE_ITEMS", 10_000)  # so that the store itself writes little
    account = an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/many.ndjson", b"{}\n" * 8_000)  # its report says something of each line
    with no_file_larger_than(1_000_000):
        rounds_until(importer, lambda: importer.is_stuck)
        assert "File too large" in told.notices[0]
        drop(root, "ana/1.json", a_document("1"))
        importer.round()
        assert (root / "ana/1.json").exists()
        assert names_below(root / "_failed") == []
    rounds_until(importer, lambda: resume_names(store, account.id) == ["1"])
    assert len(the_report(root, "_failed")["items"]) == 8_000
    importer.close()
    assert list((root / ".work").iterdir()) == []


# I12: one account's backlog, another's fresh file


def test_i12_a_backlog_of_one_account_does_not_keep_a_fresh_file_of_another_waiting(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo", "cy"):
        an_account(name)
        (root / name).mkdir()
    path = drop(root, "ana/cut.json", b'{"cut')
    for number in range(20_000):
        os.link(path, root / "ana" / f"{number}.json")
    importer = an_importer(scan_s=600)
    importer.turn()
    assert not importer.progress().is_complete  # it is still being looked at
    assert turns_until_imported(importer, told, drop(root, "bo/1.json")) <= 2
    while not importer.progress().is_complete:
        importer.turn()
    assert turns_until_imported(importer, told, drop(root, "bo/2.json")) <= 2
    importer.turn()
    assert importer.progress().waiting > 19_000


def test_i12_an_event_marks_its_folder_alone(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo"):
        an_account(name)
        (root / name).mkdir()
    importer = an_importer(scan_s=600)
    importer.turn()
    drop(root, "ana/1.json")
    assert turns_until_imported(importer, told, drop(root, "bo/1.json")) == 1
    importer.turn()
    assert told.outcomes() == {"bo/1.json": "done"}


def turns_until_imported(importer: Importer, told: Told, path: Path) -> int:
    """How many turns it takes after the event of a file that was dropped just now."""
    changes = Changes()
    changes.mark(path.parent.name)
    importer.mark(changes.take())
    name = f"{path.parent.name}/{path.name}"
    turns = 0
    while name not in told.outcomes():
        importer.turn()
        turns += 1
        assert turns < 200
    return turns


# I13: our own reports


def test_i13_a_report_that_was_moved_back_with_its_file_is_no_resume(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    account = an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/cv.json", b"{}")
    importer.round()
    (failed,) = filed(root, "_failed")
    mended = failed.rename(root / "ana" / failed.name)
    report_path(failed).rename(root / "ana" / report_path(failed).name)
    mended.write_bytes(a_document("mended"))
    for _ in range(2):
        importer.round()
    assert resume_names(store, account.id) == ["mended"]
    assert [file.outcome for file in told.files] == ["failed", "done"]
    assert (importer.summary().ignored, importer.summary().waiting) == (1, 0)


def test_i13_a_report_under_another_name_is_none_either(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/bad.json", b"{}")
    importer.round()
    (path,) = (root / "_failed").rglob("*.report.json")
    path.rename(root / "ana" / "renamed.json")
    importer.round()
    importer.round()
    assert len(told.files) == 1
    assert (importer.summary().ignored, importer.summary().waiting) == (1, 0)


# I14: our own moves


def test_i14_our_own_moves_are_not_heard(
    root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo"):
        an_account(name)
        (root / name).mkdir()
    importer = an_importer(settle_s=0)
    for number in range(5):
        drop(root, f"ana/{number}.json", a_document(str(number)) if number % 2 else b"{}")
    changes = Changes()
    with watching(root, changes, Health(lambda finding: None), poll=False) as watcher:
        watcher.follow(["ana", "bo"])
        wait_until(lambda: changes.take().is_all)  # it hears from now on
        importer.round()
        assert len(names_below(root)) > 5
        drop(root, "bo/last.json")
        heard: set[str] = set()

        def is_heard() -> bool:
            heard.update(changes.take().names)
            return "bo" in heard

        wait_until(is_heard)
    assert heard == {"bo"}


# I15: more than one process can do


def test_i15_a_backlog_has_a_worker_and_every_file_is_imported_once(
    store: Store,
    root: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    monkeypatch.setattr(workforce, "WORKERS_FROM", 100)
    an_account("ana")
    plans.set_plan_limits(store, PlanChange("business", max_resumes=None))
    for number in range(3_000):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    remarks = Remarks(told.notices.append)
    options = Options(workers=1)
    importer = Importer(store, root, options, on_file=told.files.append, remarks=remarks)
    pids: set[int] = set()
    try:
        while importer.round() or importer.has_work:
            pids |= set(importer.worker_pids)
    finally:
        importer.close()
    assert len(pids) == 1
    assert len(told.files) == len({file.name for file in told.files}) == 3_000
    assert {file.outcome for file in told.files} == {"done"}
    assert accounts.get_account(store, "ana").resume_count == 3_000
    assert counters.list_wrong(store) == []
    assert list((root / ".work").iterdir()) == []


# S14: accounts that are gone


def test_s14_files_of_a_deleted_account_do_not_enter_the_next_account_of_its_name(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    plans.set_plan_limits(store, PlanChange("one", max_resumes=1))
    an_account("ana", plan="one")
    for number in range(3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    an_importer().round()
    assert len(filed(root, "_held")) == 2
    accounts.delete_account(store, "ana", with_resumes=True)
    drop(root, "ana/claimed.json")
    successor = an_account("ana")
    dying = an_importer(observe=killed_at(Step.CLAIMED))
    for path in (root / "_held").rglob("*.report.json"):
        path.unlink()
    die(dying)
    importer = an_importer()
    importer.round()
    importer.round()
    assert resume_names(store, successor.id) == [f"Owner of {b'ana/claimed.json'!r}"]
    assert len(filed(root, "_failed/account_deleted")) == 2
    assert names_below(root / "_held") == []
    assert [row.outcome for row in ledger.list_files(store, account_id=successor.id)] == ["done"]


def test_s14_a_claim_of_a_deleted_account_says_so(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account("ana")
    drop(root, "ana/cv.json")
    die(an_importer(observe=killed_at(Step.CLAIMED)))
    accounts.delete_account(store, "ana")
    successor = an_account("ana")
    an_importer().round()
    assert resume_names(store, successor.id) == []
    report = the_report(root, "_failed")
    assert (report["reason"], report["message"]) == ("account_deleted", "The account was deleted")
