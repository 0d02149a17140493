"""An importer killed at every step, and killed again while it recovers, loses and doubles nothing."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importer.options import Options
from importer.reports import SUFFIX
from importer.rounds import Importer
from importer.telling import Remarks
from resumes.store import accounts, open_store, plans
from resumes.store.accounts import check_counters
from resumes.store.ledger import list_files
from resumes.store.plans import PlanChange
from tests.importer import killed_importer
from tests.importer.builders import drop, filed, names_below, resume_names
from tests.resumes.builders import a_document

ANA = ["held before 1", "held before 2", "plain", "warned"]
BO = ["bo 0"]
FILES = 11

Drain = Callable[[Path, int], int]


@pytest.fixture(scope="module")
def drain() -> Iterator[Drain]:
    """Drains a home in a child that kills itself at a step; returns the child's status."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.importer.killed_importer"],
        cwd=Path(killed_importer.__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(home: Path, kill_at: int) -> int:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{home} {kill_at}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A home with files of every outcome waiting, two of them held before and now releasable."""
    home = tmp_path / "template"
    root = home / "inbox"
    (root / "ana").mkdir(parents=True)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        for name in ("ana", "bo"):
            plans.set_plan_limits(store, PlanChange(name, max_resumes=0))
            accounts.create_account(store, name, plan=name)
        for number in (1, 2):
            drop(root, f"ana/held{number}.json", a_document(f"held before {number}"))
            remarks = Remarks(lambda notice: None)
            importer = Importer(store, root, Options(), on_file=lambda file: None, remarks=remarks)
            importer.round()
            importer.close()
        assert len(filed(root, "_held")) == 2
        plans.set_plan_limits(store, PlanChange("ana", max_resumes=50))
        plans.set_plan_limits(store, PlanChange("bo", max_resumes=1))
    drop(root, "ana/1.json", a_document("plain"))
    drop(root, "ana/2.json", a_document("warned", nickname="w"))
    drop(root, "ana/3.json", a_document("plain"))
    drop(root, "ana/sub/4.json", a_document("held before 2"))
    drop(root, "ana/5.json", b'{"header": {}}')
    drop(root, "ana/6.json", b"not JSON")
    drop(root, "bo/0.json", a_document("bo 0"))
    drop(root, "bo/1.json", a_document("bo 0") + b"\n")
    drop(root, "bo/2.json", a_document("does not fit"))
    return home


def check(home: Path) -> None:
    """Every file came to one end, and every resume is there once."""
    root = home / "inbox"
    counts = {
        outcome: len(filed(root, outcome))
        for outcome in ("_done", "_failed", "_duplicate", "_held")
    }
    assert counts == {"_done": 5, "_failed": 2, "_duplicate": 3, "_held": 1}
    assert sum(counts.values()) == FILES
    assert list((root / ".work").iterdir()) == []
    assert names_below(root / "ana") == names_below(root / "bo") == []
    check_reports(root)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        ana, bo = accounts.get_account(store, "ana"), accounts.get_account(store, "bo")
        assert sorted(resume_names(store, ana.id)) == ANA
        assert resume_names(store, bo.id) == BO
        assert check_counters(store) == []
        rows = list_files(store)
        assert len(rows) == len({row.claim_id for row in rows}) == FILES


def check_reports(root: Path) -> None:
    """Each report lies beside its file and says the outcome of the folder that it is in."""
    reports = [name for name in names_below(root) if name.endswith(SUFFIX)]
    assert len(reports) == 7
    for name in reports:
        assert (root / name.replace(SUFFIX, ".json")).exists()
        report = json.loads((root / name).read_bytes())
        assert name.startswith(f"_{report['outcome']}/")


def fresh(template: Path, home: Path) -> Path:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(template, home, symlinks=True)
    return home


@pytest.mark.parametrize(("kills", "stride"), [(1, 1), (2, 4)])
def test_killed_at_every_step_each_file_is_imported_exactly_once(
    template: Path, tmp_path: Path, drain: Drain, kills: int, stride: int
) -> None:
    for kill_at in itertools.count(1, stride):
        home = fresh(template, tmp_path / "home")
        status = drain(home, kill_at)
        if status == 0:
            break
        assert status == signal.SIGKILL
        if kills == 2:
            assert drain(home, 1 + kill_at % 11) in (0, signal.SIGKILL)
        assert drain(home, 0) == 0
        check(home)
    assert kill_at > FILES * 5
    check(home)
