"""`resumes db backup` and `resumes db restore`."""

import signal
from pathlib import Path

from tests.cli.conftest import (
    CommandLine,
    a_resume,
    finish,
    open_home,
    start,
    store_resumes,
)


def test_a_backup_in_a_folder_prints_its_path(acme: CommandLine, tmp_path: Path) -> None:
    result = acme("db", "backup", str(tmp_path))
    path = Path(result.stdout.strip())
    assert path.parent == tmp_path
    assert path.is_file()
    assert "Backed up and verified" in result.stderr


def test_older_backups_go_when_the_new_one_is_there(acme: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    first = acme.answers("db", "backup", str(folder), "--keep", "1", "--json")
    second = acme.answers("db", "backup", str(folder), "--keep", "1", "--json")
    assert second["removed"] == [first["path"]]
    assert [str(path) for path in folder.iterdir()] == [second["path"]]
    assert second["sizeBytes"] == Path(second["path"]).stat().st_size


def test_a_backup_needs_a_store(run: CommandLine, tmp_path: Path) -> None:
    assert "No store yet" in run.fails(3, "db", "backup", str(tmp_path / "backup.db"))
    assert not (tmp_path / "backup.db").exists()


def test_to_keep_some_a_folder_is_needed(acme: CommandLine, tmp_path: Path) -> None:
    assert "no folder" in acme.fails(2, "db", "backup", str(tmp_path / "one.db"), "--keep", "2")
    assert acme("db", "backup", str(tmp_path), "--keep", "0").exit_code == 2


def test_what_is_restored_takes_the_place_of_the_store(acme: CommandLine, tmp_path: Path) -> None:
    backup = str(tmp_path / "backup.db")
    store_resumes(acme.home, a_resume())
    acme.succeeds("db", "backup", backup)
    store_resumes(acme.home, a_resume("Too Late"))

    result = acme("db", "restore", backup)

    assert result.exit_code == 0
    assert "1 resume." in result.stderr
    assert "resumes.db.before-restore-" in result.stderr
    assert len(acme.answers("list", "--json")["resumes"]) == 1


def test_a_backup_restores_to_a_home_that_is_not_there_yet(
    acme: CommandLine, tmp_path: Path
) -> None:
    backup = str(tmp_path / "backup.db")
    acme.succeeds("db", "backup", backup)
    new = CommandLine(tmp_path / "new-home")

    answer = new.answers("db", "restore", backup, "--json")

    assert answer["kept"] is None
    assert new.home.stat().st_mode & 0o777 == 0o700
    assert "acme" in new.succeeds("accounts", "list")


def test_s4_a_store_in_use_is_not_restored(acme: CommandLine, tmp_path: Path) -> None:
    backup = str(tmp_path / "backup.db")
    acme.succeeds("db", "backup", backup)
    with open_home(acme.home):
        assert "is in use by process" in acme.fails(3, "db", "restore", backup)


def test_who_is_to_end_is_the_process_that_was_typed(acme: CommandLine, tmp_path: Path) -> None:
    backup = str(tmp_path / "backup.db")
    acme.succeeds("db", "backup", backup)
    up = start("--home", str(acme.home), "up", "--port", "0", "--json")
    try:
        assert up.stdout is not None
        assert up.stdout.readline()
        said = acme.fails(3, "db", "restore", backup)
    finally:
        up.send_signal(signal.SIGTERM)
        finish(up, within_s=40)
    assert f"is in use by process {up.pid} (resumes up). Stop it" in said


def test_a_file_that_is_no_backup_is_refused(acme: CommandLine, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.db"
    wrong.write_text("nothing of ours")
    assert str(wrong) in acme.fails(3, "db", "restore", str(wrong))
    assert "Backup not found" in acme.fails(2, "db", "restore", str(tmp_path / "absent.db"))
    assert "is a folder" in acme.fails(2, "db", "restore", str(tmp_path))


def test_a_place_that_cannot_be_used_is_a_usage_error(acme: CommandLine, tmp_path: Path) -> None:
    assert "Folder not found" in acme.fails(2, "db", "backup", str(tmp_path / "absent" / "one.db"))
    assert "Cannot write in /proc" in acme.fails(2, "db", "backup", "/proc")
