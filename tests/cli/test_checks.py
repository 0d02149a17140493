"""Each check finds what is wrong, and says the remedy."""

import os
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from cli import checks
from cli.findings import Finding
from cli.session import Session
from resumes.store import Store, accounts
from resumes.store.schema import account_usage
from tests.cli.conftest import CommandLine, open_home


def test_a_home_must_be_there_and_ours_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert checks.check_home(tmp_path).remedy is None
    assert "`resumes up`" in (checks.check_home(tmp_path / "no").remedy or "")
    tmp_path.chmod(0o755)
    assert checks.check_home(tmp_path).remedy == f"chmod o-rwx {tmp_path}"


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_disk(tmp_path / "not" / "there").text.endswith(" GiB free")
    monkeypatch.setattr(checks, "LEAST_FREE_BYTES", 2**80)
    assert "Make room" in (checks.check_disk(tmp_path).remedy or "")


def test_an_old_sqlite_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from resumes.store import driver

    assert checks.check_sqlite().remedy is None
    monkeypatch.setattr(driver, "WAL_RESET_FIXED", (99, 0, 0))
    assert "pysqlite3" in (checks.check_sqlite().remedy or "")


def test_counters_that_lie_are_found(acme: CommandLine) -> None:
    def lie(connection: Connection, requests: object) -> list[None]:
        connection.execute(update(account_usage).values(resume_count=7))
        return [None]

    with open_home(acme.home) as store:
        assert checks.check_counters(store).remedy is None
        store.write(lie, None)
        assert checks.check_counters(store).text == "wrong in acme (7 for 0)"


def inbox_findings(store: Store, inbox: Path) -> list[Finding]:
    return list(checks.iter_inbox_findings(store, inbox))


def test_folders_without_an_account_are_named(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    with Session(home=tmp_path).store(makes=True) as store:
        accounts.create_account(store, "acme")
        assert "not there yet" in inbox_findings(store, inbox)[0].text
        for name in ("acme", "_failed", ".work"):
            (inbox / name).mkdir(parents=True)
        assert [one.remedy for one in inbox_findings(store, inbox)] == [None]
        (inbox / "acmee").mkdir()
        [finding] = inbox_findings(store, inbox)
    assert finding.text == 'the folder "acmee" names no account, so its files wait'


def test_folders_that_cannot_be_written_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with Session(home=tmp_path).store(makes=True) as store:
        monkeypatch.setattr(os, "access", lambda path, _: path != inbox)
        [finding] = inbox_findings(store, inbox)
    assert finding.text == f"{inbox} cannot be written"


def test_bad_settings_and_a_bad_store_are_findings(tmp_path: Path) -> None:
    (tmp_path / "resumes.db").write_bytes(b"no database, but a text of some length" * 30)
    found = {one.subject: one for one in checks.iter_findings(Session(home=tmp_path))}
    assert "is damaged or no SQLite database" in found["store"].text
    assert found["store"].remedy == "Restore a backup, or name another file with --database"
    assert "counters" not in found

    (tmp_path / "config.toml").write_text("port = 'x'", encoding="ascii")
    [finding] = checks.iter_findings(Session(home=tmp_path))
    assert (finding.subject, finding.remedy is None) == ("settings", False)
