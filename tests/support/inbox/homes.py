"""A home with files of every kind, and whether each came to its end, however often who imports
them was killed."""

import itertools
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options
from resumes.store import Store, accounts, import_requests, open_store, plans
from resumes.store.import_history import list_files
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from resumes.store.plans import PlanChange
from tests.support.inbox import killed_importer, oracle
from tests.support.inbox.builders import REPORT, drop, filed, names_below
from tests.support.inbox.killed_importer import Task
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document

RESUMES = {
    "ana": [
        *("fixed", "g1", "g2", "held before 1", "held before 2", "n1", "n2", "plain", "warned"),
        "z1",
    ],
    "bo": ["bo 0"],
    "cy": [],
}
OUTCOMES = {"_done": 8, "_failed": 3, "_duplicate": 3, "_held": 2}
REPORTS = 11

Drain = Callable[[Task], int]
Fresh = Callable[[], Path]


@pytest.fixture(scope="module")
def drain() -> Iterator[Drain]:
    """Runs importers on a home until it is drained or they are killed; how that ended."""
    with killed_importer.importers() as run:
        yield run


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """Makes the home anew, always in the same place: the ledger knows the inbox by its path."""
    folder = tmp_path_factory.mktemp("killed")
    home, template = folder / "home", folder / "template"
    furnish(home)
    home.rename(template)

    def make() -> Path:
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home, symlinks=True)
        return home

    return make


def furnish(home: Path) -> None:
    """A home with files of every kind and for every outcome, and some that were put away: two
    that are held and have room now, one that is held and has none, one that failed and was
    fixed. For the last two somebody asked."""
    root = home / "inbox"
    root.mkdir(parents=True)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        for name in RESUMES:
            plans.set_plan_limits(store, PlanChange(name, max_resumes=0))
            accounts.create_account(store, name, plan=name)
        for number in (1, 2):
            drop(root, f"ana/held{number}.json", a_document(f"held before {number}"))
            put_away(store, root)
        drop(root, "ana/broken.json", b'{"header": 1}')
        drop(root, "cy/0.json")
        put_away(store, root)
        (broken,) = filed(root, "_failed")
        broken.write_bytes(a_document("fixed"))
        for row in list_files(store):
            if row.outcome is FileOutcome.FAILED:
                import_requests.request_files(store, [row], RequestKind.RETRY)
            if row.account == "cy":
                import_requests.request_files(store, [row], RequestKind.RELEASE)
        plans.set_plan_limits(store, PlanChange("ana", max_resumes=50))
        plans.set_plan_limits(store, PlanChange("bo", max_resumes=1))
    drop(root, "ana/1.json", a_document("plain"))
    drop(root, "ana/2.json", a_document("warned", nickname="w"))
    drop(root, "ana/3.json", a_document("plain"))
    drop(root, "ana/sub/4.json", a_document("held before 2"))
    drop(root, "ana/5.json", b'{"header": {}}')
    drop(root, "ana/6.json", b"not JSON")
    drop(root, "ana/7.ndjson", b"\n".join([a_document("n1"), b"{}", a_document("n2")]))
    drop(root, "ana/8.json.gz", gzipped(b"[%s,%s]" % (a_document("g1"), a_document("g2"))))
    drop(root, "ana/9.zip", zipped({"a.json": a_document("z1"), "b.json": a_document("z1")}))
    drop(root, "bo/0.json", a_document("bo 0"))
    drop(root, "bo/1.json", a_document("bo 0") + b"\n")
    drop(root, "bo/2.json", a_document("does not fit"))


def put_away(store: Store, root: Path) -> None:
    """What was dropped so far is imported as far as it can be."""
    notices = Notices(lambda notice: None)
    options = Options(settle_s=0)
    importer = Importer(store, root, options, on_file=lambda file: None, notices=notices)
    importer.round()
    importer.close()


def check(home: Path) -> None:
    """Every file came to one end, and every resume is there once."""
    found = oracle.check(home, files=sum(OUTCOMES.values()), resumes=RESUMES)
    assert {f"_{name}": getattr(found, name) for name in oracle.OUTCOMES} == OUTCOMES
    assert len([name for name in names_below(home / "inbox") if name.endswith(REPORT)]) == REPORTS
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        assert import_requests.list_requests(store) == []


def kill_at_every_step(drain: Drain, fresh: Fresh, *, kills: int, stride: int) -> None:
    """So many importers are killed, one after the other, at each step that the stride comes to;
    what the next one finds it brings to its end."""
    for kill_at in itertools.count(1, stride):
        home = fresh()
        status = drain(Task(str(home), kill_at))
        if status == 0:
            break
        assert status == signal.SIGKILL
        for again in range(1, kills):
            assert drain(Task(str(home), 1 + kill_at * again % 11)) in (0, signal.SIGKILL)
        assert drain(Task(str(home))) == 0
        check(home)
    assert kill_at > sum(OUTCOMES.values()) * 3
    check(home)
