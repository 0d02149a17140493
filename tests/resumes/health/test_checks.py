"""Each check finds what is wrong, and says the remedy."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from cli.session import Session
from resumes import mounts
from resumes.errors import StoreUnavailable
from resumes.health import checks
from resumes.health.findings import State
from resumes.health.installation import Installation, installation_of
from resumes.health.permissions import remedy_for
from resumes.health.slow import SlowAnswers
from resumes.settings import Settings, load_settings
from resumes.store import Store, counters, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.moving.marking import Move, depart, reopen, set_marks
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


def test_a_store_that_was_copied_elsewhere_is_wrong_until_it_is_reopened(
    settings: Settings, store: Store
) -> None:
    installation = installation_of(store, settings, "resumes --home moved")
    depart(store, Move(store.label, "postgresql://db/resumes", "move", "a" * 16))

    closed = {one.subject: one for one in checks.iter_findings(installation)}["store"]

    assert closed.state is State.WRONG
    assert "is being moved to postgresql://db/resumes, or was, and takes no writes" in closed.text
    assert (closed.remedy or "").endswith("`resumes --home moved db reopen`")
    reopen(store)
    assert checks.check_marks(settings, store).state is State.WELL


def test_a_store_that_is_being_filled_is_wrong(settings: Settings, store: Store) -> None:
    def mark(connection: Connection, requests: object) -> list[None]:
        set_marks(connection, filled_from="sqlite:////srv/old.db")
        return [None]

    store.write(mark, None)

    finding = checks.check_marks(settings, store)

    assert finding.state is State.WRONG
    assert "is still being filled from sqlite:////srv/old.db" in finding.text


def test_a_store_that_was_removed_under_its_users_is_not_made_anew(
    settings: Settings, store: Store
) -> None:
    installation = Installation(
        lambda: settings, lambda: open_store(settings.database_url, upgrade=False), command_line
    )
    assert store.path is not None
    store.path.unlink()

    last = list(checks.iter_findings(installation))[-1]

    assert (last.subject, last.state) == ("store", State.WRONG)
    assert f"{store.path} was removed while process" in last.text


def test_a_store_that_is_open_and_has_another_name_is_wrong(
    installation: Installation, settings: Settings
) -> None:
    path = settings.home / "resumes.db"
    other = settings.home / "other.db"
    os.link(path, other)
    *_, finding = checks.iter_findings(installation)
    assert (finding.subject, finding.state) == ("store", State.WRONG)
    assert finding.text.startswith(f"The database {path} has another name, {other}: ")
    assert finding.remedy is not None
    assert finding.remedy.startswith("Stop those that use the other one and remove it")
    other.unlink()
    assert not any("another name" in one.text for one in checks.iter_findings(installation))


def test_a_store_that_may_not_be_opened_leads_to_its_owner(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resumes.db").touch(mode=0o000)
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path / "resumes.db")

    def refuse() -> AbstractContextManager[Store]:
        raise StoreUnavailable("The store cannot be used now: unable to open database file")

    last = list(checks.iter_findings(Installation(lambda: settings, refuse, command_line)))[-1]

    assert last.text.startswith(f"{tmp_path / 'resumes.db'} of ")
    assert last.remedy == remedy_for(tmp_path / "resumes.db")


def test_all_commands_lead_to_the_installation(settings: Settings, tmp_path: Path) -> None:
    home = tmp_path / "none"
    away = settings.model_copy(update={"home": home})
    session = Session(home=home)
    installation = Installation(lambda: away, session.store, session.command_line)

    found = list(checks.iter_findings(installation))

    told = [f"{one.text} {one.remedy}" for one in found]
    assert len([one for one in told if f"--home {home} up`" in one]) == 2
    assert [one for one in told if "`resumes " in one and "--home" not in one] == []


def test_a_home_that_may_not_be_seen_is_a_finding(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "exists", lambda path: path == Path("/") or refuse(path))

    finding = checks.check_home(installation, tmp_path / "home")

    assert finding.text == f"{tmp_path / 'home'} cannot be seen by this user"
    assert checks.check_disk(tmp_path / "home").text.endswith(" GiB free")


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
