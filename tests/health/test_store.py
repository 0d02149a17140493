"""What the doctor finds of a store, in a file and on a server."""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from resumes.errors import StoreUnavailable
from resumes.health import checks
from resumes.health.findings import Installation, Severity, installation_of
from resumes.health.metrics import QueryCache, read_metrics
from resumes.health.store_checks import (
    LARGE_LOG_BYTES,
    MAX_UNINDEXED,
    ServerFacts,
    check_size,
    find_index_lag,
    find_old_files_in_use,
    iter_server_findings,
    read_server_facts,
)
from resumes.settings import Settings
from resumes.store import Store, accounts, import_requests, importers, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.creation import create
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from resumes.store.schema import account_usage
from resumes.store.search_index import IndexedCount
from resumes.store.store import Size, close_store, reopen_store
from resumes.text import in_bytes
from tests.health.conftest import MY_NAME, command_line, find, opening, write
from tests.support import postgres
from tests.support.clocks import SteppingClock
from tests.support.resumes import a_resume
from tests.support.store.builders import a_file, an_importer

# The store


def test_a_store_that_breaks_off_is_a_finding(installation: Installation, store: Store) -> None:
    write(store, text("DROP TABLE plans"))

    *_, last = checks.iter_findings(installation)

    assert (last.subject, last.severity) == ("store", Severity.ERROR)
    assert "is unavailable" in last.text


def test_a_store_that_was_copied_elsewhere_is_wrong_until_it_is_reopened(
    settings: Settings, store: Store
) -> None:
    installation = installation_of(store, settings, "resumes --home moved")
    close_store(store, "postgresql://db/resumes", "0123")

    [finding] = find(installation, "store")

    assert finding.severity is Severity.ERROR
    assert "it is being moved to postgresql://db/resumes, or has been moved" in finding.text
    assert (finding.remedy or "").endswith("`resumes --home moved db reopen`")
    reopen_store(store)
    assert [one.severity for one in find(installation, "store")] == [Severity.OK]


@pytest.mark.parametrize(
    ("database", "text", "remedy"),
    [
        (None, "is damaged or not a SQLite database", "Restore a backup, or choose another file"),
        ("mysql://h", 'Invalid database "mysql://h"', "Correct the address"),
        ("postgresql://ada:secret@127.0.0.1:1/resumes",
         "postgresql://127.0.0.1:1/resumes is unavailable", "Check that the server is running"),
    ],
)  # fmt: skip
def test_a_store_that_is_none_or_not_there_has_a_remedy(
    settings: Settings, database: str | None, text: str, remedy: str
) -> None:
    (settings.home / "resumes.db").write_bytes(b"no database, but a text of some length" * 30)

    *_, last = checks.iter_findings(opening(settings.model_copy(update={"database": database})))

    assert (last.subject, last.severity) == ("store", Severity.ERROR)
    assert text in last.text
    assert (last.remedy or "").startswith(remedy)
    assert "secret" not in f"{last}"


@pytest.mark.parametrize("name", ["resumes.db", "resumes.db-wal"])
def test_a_store_that_may_not_be_opened_leads_to_its_owner(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for one in {"resumes.db", name}:
        (tmp_path / one).touch()
    (tmp_path / name).chmod(0o000)
    # Root, as whom tests may run, is refused nothing.
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path / name)

    def refuse() -> AbstractContextManager[Store]:
        raise StoreUnavailable("The store is unavailable: unable to open database file")

    *_, last = checks.iter_findings(Installation(lambda: settings, refuse, command_line))

    assert (
        last.text
        == f"this user does not have permission to open {tmp_path / name} (owner: {MY_NAME})"
    )
    assert last.remedy == f"chmod u+rwX {tmp_path / name}"


def test_a_store_that_is_open_and_has_another_name_is_wrong(
    installation: Installation, settings: Settings
) -> None:
    path, other = settings.home / "resumes.db", settings.home / "other.db"
    os.link(path, other)
    *_, finding = checks.iter_findings(installation)
    assert (finding.subject, finding.severity) == ("store", Severity.ERROR)
    assert finding.text.startswith(f"The database {path} has another name, {other}: ")
    assert (finding.remedy or "").startswith("Stop those that use the other name and remove it")
    other.unlink()
    assert not any("another name" in one.text for one in checks.iter_findings(installation))


def replace_file(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def remove_with_side_files(path: Path) -> None:
    for one in path.parent.glob(f"{path.name}*"):
        one.unlink()


@pytest.mark.parametrize(
    ("happen", "what"),
    [
        (replace_file, "replaced"),
        (Path.unlink, "removed"),
        (lambda path: path.rename(path.with_name("gone.db")), "removed"),
        (remove_with_side_files, "removed"),
    ],
    ids=["replaced", "removed", "renamed", "removed with its side files"],
)
def test_who_has_a_file_open_that_is_not_the_store_any_more_is_named(
    settings: Settings, store: Store, happen: Callable[[Path], None], what: str
) -> None:
    path, other = settings.home / "resumes.db", settings.home / "other.db"
    other.touch()
    assert find_old_files_in_use(path) is find_old_files_in_use(other) is None
    happen(path)

    found = [one for one in checks.iter_findings(opening(settings)) if one.subject == "store"]

    assert found[0].severity is Severity.ERROR
    assert f"{path} was {what} while it was in use (process {os.getpid()}" in found[0].text
    assert path.exists() is (what == "replaced")  # the doctor makes none


def test_a_log_that_is_not_cut_is_told(installation: Installation, store: Store) -> None:
    assert store.path is not None
    size = store.measure()
    assert (size.data_bytes, size.log_bytes) == (store.path.stat().st_size, size.log_bytes or 0)
    [measured] = find(installation, "size")
    assert (
        measured.text
        == f"{in_bytes(size.data_bytes)} (+ {in_bytes(size.log_bytes or 0)} write-ahead log)"
    )
    assert check_size(Size(2**40, LARGE_LOG_BYTES - 1)).severity is Severity.OK

    finding = check_size(Size(2**20, LARGE_LOG_BYTES))

    assert finding.severity is Severity.WARNING
    assert finding.text == "1.0 MiB (+ 256 MiB write-ahead log)"


def test_counters_that_lie_are_found(
    installation: Installation, store: Store, account: AccountInfo
) -> None:
    write(store, update(account_usage).values(resume_count=7))

    [finding] = find(installation, "counters")

    assert finding.text == f"wrong in {account.name} (7 instead of 0)"


def test_an_index_that_is_being_built_is_told(
    installation: Installation, store: Store, account: AccountInfo
) -> None:
    assert find(installation, "search") == []
    assert find_index_lag(IndexedCount(5, 5 + MAX_UNINDEXED)) is None
    finding = find_index_lag(IndexedCount(1_234, 5_678))
    assert finding is not None
    assert finding.severity is Severity.WARNING
    assert finding.text.startswith("1,234 of 5,678 resumes are in the search index")


# A PostgreSQL server


def facts(**changes: Any) -> ServerFacts:
    sound: dict[str, Any] = {
        "server_version": "18.4",
        **dict.fromkeys(("synchronous_commit", "fsync", "full_page_writes"), "on"),
        "free_connections": 97,
    }
    return ServerFacts(**sound | changes)


@pytest.mark.parametrize(
    ("said", "workers", "texts", "remedy"),
    [
        (facts(), 8, ["version 18.4"], None),
        (ServerFacts(None, None, None, None, None), 64, ["version unknown"], None),
        *(
            (facts(**{name: "off"}), 1, ["version 18.4", f"{name} is off: "], f"Set {name} to on")
            for name in ("synchronous_commit", "fsync", "full_page_writes")
        ),
        (facts(is_standby=True), 1, ["version", "is a read-only standby"], "attrs=read-write"),
        (
            facts(),
            9,
            ["version", "accepts 97 connections, but this machine alone may need 101"],
            "Set max_connections to at least 121",
        ),
    ],
)
def test_a_server_that_may_forget_or_has_no_room_is_told(
    said: ServerFacts, workers: int, texts: list[str], remedy: str | None
) -> None:
    found = list(iter_server_findings(said, workers=workers))

    assert [one.text.startswith(text) for one, text in zip(found, texts, strict=True)]
    assert (remedy or "") in (found[-1].remedy or "")
    wrong = Severity.ERROR if said.is_standby else Severity.WARNING
    assert found[-1].severity is (Severity.OK if remedy is None else wrong)


def test_the_doctor_looks_at_the_server_in_place_of_sqlite(settings: Settings) -> None:
    with postgres.running("18", settings={"max_connections": "28"}) as server:
        url = server.url(server.make_database())
        with open_store(url) as store:
            facts = read_server_facts(store)
            installation = opening(settings.model_copy(update={"database": url}))
            found = list(checks.iter_findings(installation))

    assert (facts.server_version or "").startswith("18.")
    assert (facts.fsync, facts.free_connections, facts.is_standby) == ("off", 25, False)
    # The servers of tests do not last, and are small.
    assert [one.about for one in found if one.severity is Severity.WARNING] == [
        "fsync",
        "full_page_writes",
        "max_connections",
    ]
    assert [one for one in found if one.severity is Severity.ERROR] == []
    assert "SQLite" not in {one.subject for one in found}
    assert [one for one in found if one.subject == "size" and "log" in one.text] == []


# Figures, and answers that cost much


def test_the_metrics_count_everything_once(
    store: Store, account: AccountInfo, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = read_metrics(store, QueryCache())
    zoe = accounts.create_account(store, "zoe")
    create(store, account.id, [a_resume()])
    create(store, zoe.id, [a_resume(), a_resume(name="Grace")])
    import_requests.request_files(store, [a_file(store, account)], RequestKind.RETRY)
    importers.register(store, an_importer("1" * 24, root="/srv/old", waiting=9))
    clock.advance(300)
    importers.register(store, an_importer("2" * 24, waiting=4))
    importers.register(store, an_importer("3" * 24, waiting=4))  # stands by
    importers.register(store, an_importer("4" * 24, root="/srv/other", waiting=None))

    metrics = read_metrics(store, QueryCache())

    assert (empty.accounts, empty.resumes, empty.live_importers) == (1, 0, 0)
    assert (set(empty.files.values()), empty.oldest_request_s) == ({0}, None)
    assert empty.size.data_bytes > 0
    assert empty.free_bytes
    assert (metrics.accounts, metrics.resumes) == (2, 3)
    assert (metrics.live_importers, metrics.waiting_files) == (3, 4)
    assert (metrics.files[FileOutcome.FAILED], metrics.oldest_request_s) == (1, 300)

    def refuse(_: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(shutil, "disk_usage", refuse)
    assert read_metrics(store, QueryCache()).free_bytes is None


def test_an_answer_counts_for_fifty_times_as_long_as_it_took(store: Store) -> None:
    now_s, answers = 0.0, iter([1, 0, 2, 3])

    def ask(_: Store) -> int:
        nonlocal now_s
        now_s += 1
        answer = next(answers)
        if not answer:
            raise StoreUnavailable("busy")
        return answer

    cache = QueryCache(lambda: now_s)

    assert cache.get(ask, store) == 1
    now_s += 49.9
    assert cache.get(ask, store) == 1
    now_s += 0.2
    with pytest.raises(StoreUnavailable):
        cache.get(ask, store)
    assert cache.get(ask, store) == 2
    cache.clear()
    assert cache.get(ask, store) == 3
