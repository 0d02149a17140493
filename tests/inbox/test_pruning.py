"""Done files go after a while, and nothing else does."""

import os
from pathlib import Path

import pytest

from importer import prune as pruning
from importer.notices import Notices
from resumes.watched_folder import DONE
from tests.support.inbox.builders import Inbox, bound_by_permissions, drop, names_below

DAY_US = 24 * 3_600 * 1_000_000
NOW_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z, the first microsecond of the day."""


def put(root: Path, *places: str) -> None:
    """Empty files below `_done`."""
    for place in places:
        path = root / DONE / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def prune(root: Path, keep_days: int, at_most: int = 1_000) -> tuple[int, list[str]]:
    """How many files went, and what was told."""
    notices: list[str] = []
    removed = pruning.prune(root, keep_days, NOW_US, at_most, remark=Notices(notices.append))
    return removed, notices


@pytest.mark.parametrize(
    ("keep_days", "kept"),
    [
        (0, ["2026-01-01", "2026-01-02"]),
        (1, ["2025-12-31", "2026-01-01", "2026-01-02"]),
        (2, ["2025-12-30", "2025-12-31", "2026-01-01", "2026-01-02"]),
        (36_500, ["2025-12-30", "2025-12-31", "2026-01-01", "2026-01-02"]),
    ],
)
def test_days_before_those_to_keep_are_gone(root: Path, keep_days: int, kept: list[str]) -> None:
    days = ["2025-12-30", "2025-12-31", "2026-01-01", "2026-01-02"]
    put(root, *(f"{day}/cv-0123abcd.json" for day in days))

    removed, notices = prune(root, keep_days)

    assert removed == len(days) - len(kept)
    assert sorted(path.name for path in (root / DONE).iterdir()) == kept
    assert notices == []


@pytest.mark.parametrize(
    ("keep_days", "kept"),
    [
        (
            None,
            ["2025-12-25/ana", "2025-12-25/bo", "2025-12-31/ana", "2025-12-31/bo", "2025-12-25"],
        ),
        (2, ["2025-12-31/ana", "2025-12-31/bo"]),
        (0, []),
    ],
)
def test_files_of_an_account_go_when_its_plan_says_if_that_is_sooner(
    root: Path, keep_days: int | None, kept: list[str]
) -> None:
    places = [f"2025-12-{day}/{name}" for day in (20, 25, 31) for name in ("ana", "bo")]
    put(root, *(f"{place}/cv-0123abcd.json" for place in (*places, "2025-12-25")))
    notices: list[str] = []
    remark = Notices(notices.append)

    while pruning.prune(root, keep_days, NOW_US, remark=remark, by_folder={"ana": 10, "bo": 9}):
        pass

    found = (root / DONE).rglob("*.json")
    assert sorted(str(path.parent.relative_to(root / DONE)) for path in found) == sorted(kept)
    assert notices == []


def test_what_the_importer_puts_away_is_ours(inbox: Inbox) -> None:
    inbox.drop("ana/cv.json")
    inbox.drop("ana/Ünicode 1.JSON")
    inbox.drop("ana/warned.json", b'{"header":{"name":"W"},"sections":{},"unheardOf":1}')
    inbox.importer(settle_s=0).round()
    assert len(inbox.filed(DONE)) == 3

    def remark(key: str, sentence: str) -> None:
        raise AssertionError(sentence)

    assert pruning.prune(inbox.root, 0, inbox.clock(), remark=remark) == 0
    put_away = len(names_below(inbox.root / DONE))
    assert pruning.prune(inbox.root, 0, inbox.clock() + DAY_US, remark=remark) == put_away
    assert names_below(inbox.root / DONE) == []


OURS = [
    "cv-0123abcd.json",
    "cv-0123abcd.report.json",
    "cv-000641f5e2a3b4c5d6e7f809.ndjson",
    "cv-0123abcd.json.gz",
    "cv-0123abcd.zip",
    "cv-0123abcd.pdf",
    "über 1-0123abcd.jsonl.gz",
]
STRANGERS = [
    "cv.json",
    "notes.report.json",
    "cv-0123abc.json",
    "cv-0123ABCD.json",
    "cv-0123abcd.json.part",
    "cv-0123abcd.report.txt",
    "cv-0123abcd.png",
    "ada-lovelace.json",
    "cv-0123abcd",
    "-0123abcd.json",
    "notes.txt",
    ".hidden",
]


def test_each_accounts_folder_goes_with_its_files_and_those_of_others_stay(root: Path) -> None:
    put(root, "2025-01-01/ana/cv-0123abcd.json", "2025-01-01/bo/cv-0123abcd.json")
    put(root, "2025-01-01/bo/notes.txt", "2025-01-01/No account/cv-0123abcd.json")
    put(root, "2025-01-02/ana/cv-0123abcd.json", "2025-01-02/cv-0123abcd.json")
    (root / DONE / "2025-01-02" / "ana" / "deeper").mkdir()

    assert prune(root, 0) == (4, [])

    assert names_below(root / DONE) == [
        "2025-01-01/No account/cv-0123abcd.json",
        "2025-01-01/bo/notes.txt",
    ]
    assert (root / DONE / "2025-01-02" / "ana" / "deeper").is_dir()


def test_files_and_folders_of_strangers_stay_and_do_not_use_up_the_bound(root: Path) -> None:
    assert prune(root, 0) == (0, [])
    folders = ["2025-02-30", "20250101", "2025-1-1", "old", "2025-01-01.bak", "2025-W01-1"]
    put(root, *(f"{folder}/cv-0123abcd.json" for folder in folders), "cv-0123abcd.json")
    put(root, *(f"2025-01-01/{name}" for name in STRANGERS))
    for place in ["_failed/invalid_json", "_duplicate", "_held/ana", "ana", "2025-01-01"]:
        drop(root, f"{place}/cv-0123abcd.json")
        drop(root, f"{place}/2025-01-01/cv-0123abcd.json")
    before = names_below(root)
    put(root, *(f"2025-01-01/{name}" for name in OURS))

    assert prune(root, 0, at_most=len(OURS)) == (len(OURS), [])
    assert prune(root, 0) == (0, [])

    assert names_below(root) == before


def test_nothing_is_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "2025-01-01/cv-0123abcd.json")
    elsewhere = tmp_path / DONE
    day = root / DONE / "2025-01-01"
    day.mkdir(parents=True)
    (day / "link-0123abcd.json").symlink_to(elsewhere / "2025-01-01/cv-0123abcd.json")
    (root / DONE / "2025-01-02").symlink_to(elsewhere, target_is_directory=True)
    (day / "folder-0123abcd.json").mkdir()
    os.mkfifo(day / "pipe-0123abcd.json")
    assert prune(root, 0) == (0, [])
    assert len(list(day.iterdir())) == 3
    (root / DONE).rename(root / "before")
    (root / DONE).symlink_to(elsewhere, target_is_directory=True)
    removed, [notice] = prune(root, 0)
    assert removed == 0
    assert notice.startswith("Cannot delete old files in _done: ")
    assert names_below(elsewhere) == ["2025-01-01/cv-0123abcd.json"]


def test_a_call_does_a_bounded_part_and_the_next_goes_on(root: Path) -> None:
    put(root, *(f"2025-01-01/cv-{number:08x}.json" for number in range(5)))
    put(root, *(f"2025-01-02/ana/cv-{number:08x}.json" for number in range(5)))

    assert [prune(root, 0, at_most=4)[0] for _ in range(4)] == [4, 4, 2, 0]

    assert list((root / DONE).iterdir()) == []


def test_what_may_not_be_removed_stays_and_is_told_once(root: Path) -> None:
    put(root, "2025-01-01/a-0123abcd.json", "2025-01-01/b-0123abcd.json")
    put(root, "2025-01-02/c-0123abcd.json")
    (root / DONE / "2025-01-01").chmod(0o555)

    with bound_by_permissions():
        removed, notices = prune(root, 0)

    (root / DONE / "2025-01-01").chmod(0o755)
    assert removed == 1
    assert notices == [
        "Cannot delete old files in _done/2025-01-01: Permission denied. They stay there, "
        "and deleting them will be retried; give the user that runs the importer write access"
    ]
    assert len(names_below(root / DONE)) == 2
