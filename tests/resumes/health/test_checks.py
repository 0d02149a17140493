"""Each check finds what is wrong, and says the remedy."""

from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from resumes import mounts
from resumes.health import checks
from resumes.health.findings import State
from resumes.health.installation import Installation
from resumes.health.slow import SlowAnswers
from resumes.settings import Settings, load_settings
from resumes.store import Store, counters, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.schema import account_usage
from resumes.store.sqlite import driver
from tests.resumes.builders import a_mount, mountinfo
from tests.resumes.health.conftest import command_line


def test_a_home_must_be_there_and_ours_alone(installation: Installation, tmp_path: Path) -> None:
    assert checks.check_home(installation, tmp_path).remedy is None
    missing = checks.check_home(installation, tmp_path / "no")
    assert (missing.remedy, missing.command) == ("`resumes up` makes it", "resumes up")
    tmp_path.chmod(0o755)
    assert checks.check_home(installation, tmp_path).remedy == f"chmod o-rwx {tmp_path}"


def test_the_command_for_a_home_is_quoted(installation: Installation, tmp_path: Path) -> None:
    home = tmp_path / "my home"
    home.mkdir(mode=0o755)

    assert checks.check_home(installation, home).command == f"chmod o-rwx '{home}'"


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_disk(tmp_path / "not" / "there").text.endswith(" GiB free")
    monkeypatch.setattr(checks, "LEAST_FREE_BYTES", 2**80)
    assert "Make room" in (checks.check_disk(tmp_path).remedy or "")


def test_an_old_sqlite_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_sqlite(tmp_path / "resumes.db").remedy is None
    monkeypatch.setattr(driver, "WAL_RESET_FIXED", (99, 0, 0))
    assert "pysqlite3" in (checks.check_sqlite(tmp_path / "resumes.db").remedy or "")


def test_a_file_that_a_host_shares_wants_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo(a_mount(str(tmp_path), "9p")))
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    finding = checks.check_sqlite(tmp_path / "resumes.db")
    assert finding.state is State.NOTICE
    assert "lies on 9p, a folder that a host shares" in finding.text


def test_counters_that_lie_are_found(store: Store, account: AccountInfo) -> None:
    def lie(connection: Connection, requests: object) -> list[None]:
        connection.execute(update(account_usage).values(resume_count=7))
        return [None]

    assert checks.check_counters(counters.list_wrong(store)).remedy is None
    store.write(lie, None)
    finding = checks.check_counters(counters.list_wrong(store))
    assert finding.text == f"wrong in {account.name} (7 for 0)"


def test_everything_is_looked_at_and_an_empty_store_is_well(installation: Installation) -> None:
    found = list(checks.iter_findings(installation))

    assert [one for one in found if one.state is not State.WELL] == []
    assert [one.subject for one in found] == [
        "settings", "home", "disk", "SQLite", "store", "size", "counters", "quota", "keys",
        "inbox", "files", "requests", "importer",
    ]  # fmt: skip


def test_what_takes_long_is_not_asked_again(installation: Installation, store: Store) -> None:
    times = iter(float(second) for second in range(100))
    slow = SlowAnswers(lambda: next(times))
    list(checks.iter_findings(installation, slow))
    store.write(lambda connection, requests: [connection.exec_driver_sql("DROP TABLE resumes")], 0)

    found = {one.subject: one for one in checks.iter_findings(installation, slow)}

    assert found["counters"].state is State.WELL


def test_a_store_that_breaks_off_is_a_finding(installation: Installation, store: Store) -> None:
    store.write(lambda connection, requests: [connection.exec_driver_sql("DROP TABLE plans")], 0)

    found = list(checks.iter_findings(installation))

    assert (found[-1].subject, found[-1].state) == ("store", State.WRONG)
    assert "cannot be used now" in found[-1].text


def test_a_store_of_somebody_else_is_a_finding(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    (tmp_path / "resumes.db").write_bytes(b"no database, but a text of some length" * 30)
    installation = Installation(
        lambda: settings, lambda: open_store(settings.database_url), command_line
    )

    found = {one.subject: one for one in checks.iter_findings(installation)}

    assert "is damaged or no SQLite database" in found["store"].text
    assert found["store"].remedy == "Restore a backup, or name another file with --database"
    assert "counters" not in found


def test_bad_settings_are_a_finding(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("port = 'x'", encoding="ascii")
    bad = Installation(
        lambda: load_settings(home=tmp_path), installation.store, installation.command_line
    )

    [finding] = checks.iter_findings(bad)

    assert (finding.subject, finding.state) == ("settings", State.WRONG)
