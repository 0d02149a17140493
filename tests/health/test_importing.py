"""What the doctor finds of the watched folder, its files and its importers."""

import os
import time
from functools import partial
from pathlib import Path

import pytest

from resumes import watched_folder
from resumes.health.findings import Finding, Installation, Severity, remedy_for
from resumes.health.import_checks import count_unclaimed
from resumes.store import Store, accounts, import_requests, importers
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from resumes.store.importers import ImporterState
from tests.health.conftest import find
from tests.support.clocks import SteppingClock
from tests.support.inbox.builders import bound_by_permissions
from tests.support.store.builders import a_file, an_importer

# The inbox


NO_NAME = "Rename the folder: account names, such as ana-2, consist of a-z, 0-9 and -"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("bob", "resumes accounts create bob, or rename the folder"),
        ("$(reboot)", NO_NAME),
        ("Zoe", NO_NAME),
        ("Acme", 'Rename the folder to "acme", or move its files there'),
    ],
)
def test_folders_without_an_account_are_named(
    installation: Installation, account: AccountInfo, inbox: Path, name: str, remedy: str
) -> None:
    (inbox / name / "in").mkdir(parents=True)
    [before] = find(installation, "inbox")
    assert before.severity is Severity.OK  # nothing waits there
    (inbox / name / "in/cv.json").touch()

    [finding] = find(installation, "inbox")

    assert finding.text == f'the folder "{name}" does not match any account; its files are waiting'
    assert finding.command == ("resumes accounts create bob" if name == "bob" else None)
    assert (finding.remedy or "").startswith(remedy)


def test_a_folder_with_a_former_name_is_its_account_s(
    installation: Installation, store: Store, account: AccountInfo, inbox: Path
) -> None:
    accounts.rename_account(store, account.name, "apex")
    (inbox / account.name).mkdir()
    (inbox / account.name / "cv.json").touch()
    [finding] = find(installation, "inbox")
    assert finding.severity is Severity.OK


def test_folders_that_cannot_be_written_or_read_are_named(
    installation: Installation, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, _: path != inbox)
        [closed] = find(installation, "inbox")
    monkeypatch.setattr(Path, "iterdir", refuse)
    [unread] = find(installation, "inbox")

    assert closed.text == f"{inbox} is not writable"
    assert unread.text == f"{inbox} cannot be read: Permission denied"
    assert unread.remedy == remedy_for(inbox)


def test_an_inbox_that_is_a_loop_of_links_is_a_finding(
    installation: Installation, store: Store, account: AccountInfo, tmp_path: Path
) -> None:
    (tmp_path / "inbox").symlink_to("inbox")
    a_file(store, account, "1" * 24, FileOutcome.HELD, reason="quota_reached")

    [finding] = find(installation, "inbox")

    reason = "Too many levels of symbolic links"
    assert finding.text == f"{tmp_path}/inbox/.importer cannot be read: {reason}"
    [waiting] = find(installation, "importer")
    assert waiting.text == "files are held, but no importer is running to import them"


def test_files_that_nobody_takes_are_named_for_each_folder(
    installation: Installation, account: AccountInfo, inbox: Path, tmp_path: Path
) -> None:
    for name in ("acme", "_failed", ".importer"):
        (inbox / name).mkdir()
    # A link to a folder that may not be entered is no problem of the inbox.
    closed = tmp_path / "closed"
    closed.mkdir()
    (inbox / "link").symlink_to(closed / "folder")
    closed.chmod(0)
    for name in ("cv.json", "a.pdf", "b.txt", "c", "d"):
        (inbox / "acme" / name).touch()
    (inbox / "x\x1b.txt").touch()

    with bound_by_permissions():
        well, *notices = find(installation, "inbox")

    closed.chmod(0o700)
    assert (well.severity, well.text) == (Severity.OK, f"{inbox}, 4 folders, all writable")
    assert [(one.severity, one.text) for one in notices] == [
        (
            Severity.WARNING,
            f'2 files in {inbox} will not be imported: "link" (symbolic link), '
            '"x\\x1b.txt" (no analyzer is set)',
        ),
        (
            Severity.WARNING,
            f'4 files in {inbox}/acme will not be imported: "a.pdf" (no analyzer is set), '
            '"b.txt" (no analyzer is set), "c" (unsupported file type), and 1 more',
        ),
    ]
    assert notices[0].about != notices[1].about


# Files and requests


def test_failed_and_held_files_want_a_look(
    installation: Installation, store: Store, account: AccountInfo, inbox: Path
) -> None:
    importers.register(store, an_importer(root=str(inbox.resolve())))
    a_file(store, account, "1" * 24, FileOutcome.DUPLICATE, reason="duplicate")
    assert [one.severity for one in find(installation, "files")] == [Severity.OK]
    a_file(store, account, "2" * 24)
    a_file(store, account, "3" * 24, FileOutcome.HELD, reason="quota_reached")
    a_file(store, account, "4" * 24, FileOutcome.HELD, reason="account_closed")

    findings = find(installation, "files")

    listing = "resumes imports list --outcome"
    assert [(one.severity, one.text, one.command) for one in findings] == [
        (Severity.WARNING, "1 failed file needs attention", f"{listing} failed"),
        (Severity.WARNING, "2 files are held until the plan has room", f"{listing} held"),
    ]


def test_failed_files_that_are_not_in_their_folders_are_told_by_folder(
    installation: Installation, store: Store, account: AccountInfo, inbox: Path
) -> None:
    root = str(inbox.resolve())
    folder = inbox / "_failed/invalid_json"
    folder.mkdir(parents=True)
    a_file(store, account, "1" * 24, root="/srv/of another machine")
    for number in "2345":
        a_file(store, account, number * 24, root=root)
    a_file(store, account, "6" * 24, root=root, reason="too_large")
    (folder / f"cv-{'2' * 8}.json").touch()
    (folder / watched_folder.FILED / ("3" * 8)).mkdir(parents=True)

    _, finding = find(installation, "files")

    assert (finding.severity, finding.text, finding.command) == (
        Severity.WARNING,
        f"3 failed files are not in {root}/_failed/invalid_json, {root}/_failed/too_large",
        "resumes imports list --outcome failed",
    )
    assert "`resumes imports dismiss ID`" in str(finding.remedy)
    folder.rename(inbox / "elsewhere")
    _, finding = find(installation, "files")
    assert finding.text.startswith(f"5 failed files are not in {root}/_failed/invalid_json, ")


def test_requests_that_wait_for_long_are_told(
    installation: Installation, store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    assert [one.severity for one in find(installation, "requests")] == [Severity.OK]
    import_requests.request_files(store, [a_file(store, account, "1" * 24)], RequestKind.RETRY)
    clock.advance(30)
    assert [one.severity for one in find(installation, "requests")] == [Severity.OK]
    clock.advance(270)
    import_requests.request_files(store, [a_file(store, account, "2" * 24)], RequestKind.RETRY)

    [finding] = find(installation, "requests")

    assert (finding.severity, finding.text) == (
        Severity.WARNING,
        "the oldest has been waiting for 5 minutes",
    )


# Importers


@pytest.mark.parametrize(
    ("state", "sentences", "waiting", "said", "remedy"),
    [
        (ImporterState.OK, [], 3, ", 3 files waiting", None),
        (ImporterState.OK, [], None, "", None),
        (ImporterState.POLLING, ["It looks."], 0, ". It looks", None),
        (ImporterState.DEGRADED, ["Chown it.", "It looks."], 0, "", "Chown it. It looks"),
        (ImporterState.DEGRADED, [], 0, "", "See its log"),
    ],
)
def test_one_that_lives_says_how_it_is(
    installation: Installation,
    store: Store,
    state: ImporterState,
    sentences: list[str],
    waiting: int | None,
    said: str,
    remedy: str | None,
) -> None:
    findings = tuple(importers.ImporterFinding("x", state, sentence) for sentence in sentences)
    importers.register(store, an_importer(state=state, findings=findings, waiting=waiting))

    assert find(installation, "importer") == [
        Finding(
            "importer", f"watches /srv/inbox (process 4711 on host){said}", remedy, about="1" * 24
        )
    ]


def test_one_of_the_home_that_has_gone_silent_is_wrong_unless_another_one_watches(
    installation: Installation, store: Store, clock: SteppingClock, inbox: Path
) -> None:
    importers.register(store, an_importer(root=str(inbox.resolve())))
    clock.advance(300)

    [finding] = find(installation, "importer")

    assert finding.severity is Severity.ERROR
    assert finding.text == (
        f"process 4711 on host, which watched {inbox}, has not responded for 5 minutes"
    )
    assert (finding.remedy, finding.command) == (
        "If it has stopped, start it again: resumes up",
        "resumes up",
    )
    importers.register(store, an_importer("2" * 24, root=str(inbox.resolve())))
    first, second = find(installation, "importer")
    assert (first.remedy, second.remedy) == (None, None)
    assert second.text.endswith("for 5 minutes; another importer is now watching that folder")


def test_files_that_wait_while_no_importer_runs_are_told(
    installation: Installation, store: Store, account: AccountInfo, inbox: Path
) -> None:
    root = str(inbox.resolve())
    for number, where in enumerate((root, None, "/srv/moved"), 1):
        import_requests.request_files(
            store, [a_file(store, account, f"{number:024}", root=where)], RequestKind.RETRY
        )
    a_file(store, account, "4" * 24, FileOutcome.HELD, reason="quota_reached", root="/srv/moved")

    missing = find(installation, "importer")

    asked = "are queued, but no importer is running for them"
    assert {one.text: one.command for one in missing} == {
        f"files {asked}": "resumes up",
        f"files in {root} {asked}": "resumes up",
        f"files in /srv/moved {asked}": None,
        "files are held, but no importer is running to import them": None,
    }
    for one in missing:
        if one.command is not None:
            assert (one.severity, one.remedy) == (Severity.ERROR, "Start one: resumes up")
        else:
            assert one.severity is Severity.WARNING
            assert "Restart the importer for /srv/moved, or run `resumes up`" in (one.remedy or "")
    a_file(store, account, "5" * 24, FileOutcome.HELD, reason="quota_reached", root=root)
    assert find(installation, "importer")[-1].command == "resumes up"
    importers.register(store, an_importer(root=root))
    assert {
        one.about for one in find(installation, "importer") if one.severity is Severity.WARNING
    } == {f"files in /srv/moved {asked}"}


def drop(path: Path, *, age_s: float = 7_200) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}")
    os.utime(path, (time.time() - age_s,) * 2)


WAITING = "waiting, but no importer is running there"


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["acme/cv.json"], "1 file"),
        (["acme/2026/may/cv.JSON", "acme/a.zip", "acme/b.ndjson.gz", "acme/c.jsonl"], "4 files"),
        (["acme/cv.json.tmp", "acme/.cv.json", "acme/@eaDir/cv.json", "acme/cv.pdf"], None),
        (["acme/a.json/cv.json", "_done/2026-01-01/acme/cv.json", "_held/acme/cv.json"], None),
        (["cv.json", "nobody/cv.json"], None),  # which are findings of the inbox
    ],
)
def test_files_in_the_inbox_without_an_importer_are_an_error_with_the_command_that_helps(
    installation: Installation,
    store: Store,
    account: AccountInfo,
    inbox: Path,
    names: list[str],
    count: str | None,
) -> None:
    for name in names:
        drop(inbox / name)

    [finding] = find(installation, "importer")

    if count is None:
        assert finding.is_idle
        return
    are = "is" if count == "1 file" else "are"
    assert finding.text == f"{count} in {inbox} {are} {WAITING}"
    assert (finding.severity, finding.command) == (Severity.ERROR, "resumes up")
    importers.register(store, an_importer(root=str(inbox.resolve())))
    [running] = find(installation, "importer")
    assert running.severity is Severity.OK


@pytest.mark.parametrize(("age_s", "waits_at_s"), [(0, 90), (30, 60), (90, 0), (-3_600, 90)])
def test_files_that_an_importer_would_not_have_taken_yet_do_not_wait(
    inbox: Path, age_s: float, waits_at_s: float
) -> None:
    drop(inbox / "acme/cv.json", age_s=age_s)
    now_s = time.time()  # one from the future waits from when it was dropped

    counts = [
        count_unclaimed(inbox, {"acme"}, now_s=partial(float.__add__, now_s, float(at_s)))
        for at_s in (0, waits_at_s)
    ]
    assert counts == [not waits_at_s, 1]


def test_files_in_other_watched_folders_without_an_importer_lead_to_that_folder(
    installation: Installation, store: Store, account: AccountInfo, inbox: Path, tmp_path: Path
) -> None:
    names = ("of ours", "of another store", "of nobody", "never watched")
    ours, foreign, unowned, unknown = (tmp_path / "srv" / name for name in names)
    for root in (ours, foreign, unowned, unknown):
        drop(root / "acme/cv.json")
        drop(root / "cv.json")
    for root in (ours, foreign, unowned):
        watched_folder.note_watched(tmp_path, root)
    watched_folder.set_owner(ours, watched_folder.owner_of(store))
    watched_folder.set_owner(foreign, watched_folder.Owner("0" * 32, "sqlite:///other.db"))

    [finding] = find(installation, "importer")

    assert (finding.severity, finding.text) == (Severity.ERROR, f"2 files in {ours} are {WAITING}")
    assert finding.command == f"resumes watch '{ours}'"
    importers.register(store, an_importer(root=str(ours)))
    assert {one.severity for one in find(installation, "importer")} == {Severity.OK}
