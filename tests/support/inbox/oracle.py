"""Whether a watched folder and its store agree, once its importers have ended.

    files in = done + failed + duplicate + held + left
    resumes = distinct accepted documents          counter = rows
    a report beside every file that is not simply done, and none without its file
    nothing noted in .importer

Reads folders and the store alone, and asks the importer's code nothing.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resumes.store import Store, accounts, import_history, open_store, stored_resumes

OUTCOMES = ("done", "failed", "duplicate", "held")
REPORT = ".report.json"
ENDINGS = (
    ".json.gz", ".ndjson.gz", ".jsonl.gz", ".json", ".ndjson", ".jsonl", ".gz", ".zip",
    ".pdf", ".doc", ".docx", ".odt", ".rtf", ".txt",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tally:
    """How many files came to which end, and the names below ROOT that were left where they lay."""

    done: int
    failed: int
    duplicate: int
    held: int
    left: frozenset[str]

    @property
    def files(self) -> int:
        """All of them."""
        return self.ended + len(self.left)

    @property
    def ended(self) -> int:
        """Those that were put away."""
        return self.done + self.failed + self.duplicate + self.held


def check(
    home: Path,
    *,
    files: int,
    resumes: Mapping[str, Collection[str]],
    left: Collection[str] = (),
    root: Path | None = None,
) -> Tally:
    """All of the above holds, with so many files in; the tally.

    `resumes` are the names on the resumes of each account, each as often as it is stored; `left`
    the paths of files below ROOT that are not put away. ROOT is the home's inbox unless given.
    """
    root = root or home / "inbox"
    found = tally(root)
    assert found.left == frozenset(left)
    assert found.files == files, found
    assert {*names_in(root / ".importer")} <= {"store"}
    check_reports(root)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        check_store(store, found, resumes)
    return found


def check_store(store: Store, found: Tally, resumes: Mapping[str, Collection[str]]) -> None:
    """The store has these resumes, a ledger row for each file, and counters that are right."""
    check_resumes(store, resumes)
    rows = list(iter_rows(store))
    assert len({row.claim_id for row in rows}) == len(rows)
    counts = Counter(row.outcome.value for row in rows)
    others = [row for row in rows if row.outcome.value != "done"]
    assert counts == Counter({name: getattr(found, name) for name in OUTCOMES}), others[:9]


def check_resumes(store: Store, resumes: Mapping[str, Collection[str]]) -> None:
    """The accounts have these resumes and no others, and counters that are right."""
    assert accounts.list_wrong(store) == []
    stored = {one.name: list(iter_names(store, one.id)) for one in accounts.list_accounts(store)}
    for name, expected in resumes.items():
        missed, extra = Counter(expected), Counter(stored[name])
        assert not (lost := missed - extra), f"lost in {name}: {lost}"
        assert not (more := extra - missed), f"too many in {name}: {more}"
    assert stored.keys() == resumes.keys()


def tally(root: Path) -> Tally:
    """What lies where at this moment."""
    counts = dict.fromkeys(OUTCOMES, 0)
    left = []
    for name in names_in(root):
        top = name.split("/", 1)[0]
        if top == ".importer":
            continue
        if not top.startswith("_"):
            left.append(name)
        elif not name.endswith(REPORT):
            counts[top.removeprefix("_")] += 1
    return Tally(**counts, left=frozenset(left))


def names_in(folder: Path) -> list[str]:
    """The paths of all below the folder that is no folder, links among them, sorted."""
    names: list[str] = []
    for path, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(f"{path}/{name}")]  # noqa: PTH114
        below = os.path.relpath(path, folder)
        names += [os.path.normpath(f"{below}/{name}") for name in [*files, *links]]
    return sorted(names)


def files_of(root: Path, outcome: str) -> list[Path]:
    """The files put away under an outcome, without reports."""
    folder = root / f"_{outcome}"
    return [folder / name for name in names_in(folder) if not name.endswith(REPORT)]


def report_of(file: Path) -> dict[str, Any]:
    """The report beside a file that was put away."""
    ending = next(one for one in ENDINGS if file.name.endswith(one))
    path = file.with_name(file.name.removesuffix(ending) + REPORT)
    report: dict[str, Any] = json.loads(path.read_bytes())
    return report


def reports_of(root: Path, outcome: str) -> dict[str, dict[str, Any]]:
    """By the names that files had below ROOT, the reports on those that came to an outcome."""
    reports = [report_of(file) for file in files_of(root, outcome)]
    return {report["file"]: report for report in reports}


def check_reports(root: Path) -> None:
    """Each file that is not simply done has a true report, and no report lies alone."""
    beside: dict[str, set[str]] = {}
    for outcome in OUTCOMES:
        names = names_in(root / f"_{outcome}")
        beside[outcome] = {name for name in names if name.endswith(REPORT)}
        for file in files_of(root, outcome):
            ending = next(one for one in ENDINGS if file.name.endswith(one))
            report = str(file.relative_to(root / f"_{outcome}")).removesuffix(ending) + REPORT
            if outcome != "done" or report in beside[outcome]:
                beside[outcome].remove(report)
                _check_report(file, outcome)
    assert beside == {outcome: set() for outcome in OUTCOMES}


def _check_report(file: Path, outcome: str) -> None:
    report = report_of(file)
    assert report["outcome"] == outcome
    assert (report["reason"] is None) == (outcome == "done")
    assert report["sizeBytes"] == file.stat().st_size
    if outcome == "failed":
        assert report["reason"] == file.parent.name
    if os.access(file, os.R_OK) and report["sha256"] is not None:
        with file.open("rb") as content:
            assert report["sha256"] == hashlib.file_digest(content, "sha256").hexdigest()


def iter_names(store: Store, account_id: str) -> Iterator[str]:
    """The names on an account's resumes, in the order in which they were created."""
    cursor: str | None = ""
    while cursor is not None:
        page = stored_resumes.list_page(
            store, account_id, limit=stored_resumes.MAX_LIMIT, cursor=cursor
        )
        yield from (entry.name or "" for entry in page.entries)
        cursor = page.cursor


def iter_rows(store: Store) -> Iterator[import_history.FileRow]:
    """All files that the ledger tells of, the newest first."""
    before: str | None = None
    while rows := import_history.list_files(store, before=before, limit=import_history.MAX_FILES):
        yield from rows
        before = rows[-1].claim_id
