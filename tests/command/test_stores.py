"""`resumes db` and `resumes doctor`: copies, backups and checks of a store."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from resumes.store import accounts, migrations, open_store
from resumes.store.sqlite.driver import dbapi
from tests.command.conftest import CommandLine, a_resume, store_resumes
from tests.support import postgres
from tests.support.store.builders import a_file, damage
from tests.support.stores import open_home


def test_older_backups_go_when_the_new_one_is_there(acme: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    made = acme("db", "backup", str(folder))
    first = made.stdout.strip()
    assert Path(first).parent == folder
    assert "Backed up and verified" in made.stderr

    second = acme.answers("db", "backup", str(folder), "--keep", "1", "--json")

    assert second["removed"] == [first]
    assert [str(path) for path in folder.iterdir()] == [second["path"]]
    assert second["sizeBytes"] == Path(second["path"]).stat().st_size


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal", ".writer", ".lock"])
def test_a_backup_is_not_named_as_a_part_of_a_database(
    acme: CommandLine, tmp_path: Path, ending: str
) -> None:
    # SQLite plays such a file back into the database, or removes it.
    first, second = tmp_path / "first.db", tmp_path / f"first.db{ending}"
    acme.succeeds("db", "backup", str(first))
    said = acme.fails(1, "db", "backup", str(second))
    assert (
        said == f"{second} would be mistaken for part of the database first.db: choose another file"
    )
    assert "acme" in acme.succeeds("--database", f"sqlite:///{first}", "accounts", "list")
    place = acme.home / f"resumes.db{ending}"
    was_there = place.exists()
    for words in (("db", "restore", str(first)), ("accounts", "create", "bo")):
        said = acme.fails(1, "--database", f"sqlite:///{place}", *words)
        assert "would be mistaken for part of the database resumes.db" in said
    for flags in ((), ("--overwrite",)):
        said = acme.fails(1, "accounts", "export", "acme", str(place), *flags)
        assert "would be mistaken for part of the database resumes.db" in said
    assert place.exists() == was_there
    if ending.startswith("."):
        return

    # Nor does a log that was left behind get a database.
    log = tmp_path / f"backup.db{ending}"
    with open_home(acme.home) as store:
        accounts.create_account(store, "only-in-the-log")
        log.write_bytes((acme.home / "resumes.db-wal").read_bytes())
    said = acme.fails(1, "db", "backup", str(tmp_path / "backup.db"))
    assert said == (
        f"{log} would be mistaken for part of {tmp_path / 'backup.db'}: remove it, or choose another file"
    )
    assert not (tmp_path / "backup.db").exists()


def test_what_is_restored_takes_the_place_of_the_store_unless_that_is_in_use(
    acme: CommandLine, tmp_path: Path
) -> None:
    backup = str(tmp_path / "backup.db")
    store_resumes(acme.home, a_resume())
    acme.home.chmod(0o755)
    acme.succeeds("db", "backup", backup)
    store_resumes(acme.home, a_resume("Too Late"))
    with open_home(acme.home):  # pitfalls S4
        assert "is in use (process " in acme.fails(3, "db", "restore", backup)

    result = acme("db", "restore", backup)

    assert result.exit_code == 0
    assert "1 resume." in result.stderr
    assert "resumes.db.before-restore-" in result.stderr
    assert len(acme.answers("list", "--json")["resumes"]) == 1
    assert acme.home.stat().st_mode & 0o777 == 0o755
    new = CommandLine(tmp_path / "new-home")
    assert new.answers("db", "restore", backup, "--json")["kept"] is None
    assert new.home.stat().st_mode & 0o777 == 0o700
    assert "acme" in new.succeeds("accounts", "list")


@pytest.mark.parametrize("name", ["config.toml", "first-key"])
def test_what_a_home_reads_as_its_own_is_no_name_for_a_backup_an_export_or_a_store(
    acme: CommandLine, name: str
) -> None:
    file = acme.home / name
    refused = f"{file} would be mistaken for one of the home's own files: choose another file"
    assert acme.fails(1, "db", "backup", str(file)) == refused
    assert acme.fails(1, "accounts", "export", "acme", str(file)) == refused
    assert acme.fails(1, "--database", f"sqlite:///{file}", "accounts", "create", "bo") == refused
    assert not file.exists()
    assert "acme" in acme.succeeds("accounts", "list")


def test_a_place_that_cannot_be_used_is_a_usage_error(acme: CommandLine, tmp_path: Path) -> None:
    absent, wrong = tmp_path / "absent.db", tmp_path / "wrong.db"
    wrong.write_text("nothing of ours")
    nowhere = CommandLine(tmp_path / "nowhere")
    for run, line, code, said in (
        (acme, f"backup {tmp_path}/backups/", 2, "Folder not found"),
        (acme, f"backup {tmp_path}/absent/one.db", 2, "Folder not found"),
        (acme, "backup /proc", 2, "Cannot write to /proc"),
        (acme, f"backup {tmp_path}/one.db --keep 2", 2, "not a folder"),
        (acme, f"backup {tmp_path} --keep 0", 2, "--keep"),
        (acme, f"restore {wrong}", 3, str(wrong)),
        (acme, f"restore {tmp_path}", 2, "is a folder"),
        (nowhere, f"restore {absent}", 2, "Backup not found"),
        (nowhere, "upgrade", 3, "Database not found"),
        (acme, "upgrade --distribute", 2, "SQLite cannot be distributed"),
    ):
        assert said in run.fails(code, "db", *line.split()), line
    assert not nowhere.home.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["resumes-home", "wrong.db"]


def store_url(acme: CommandLine) -> str:
    return f"sqlite:///{acme.home / 'resumes.db'}"


def test_a_copy_prints_what_each_table_holds(acme: CommandLine, tmp_path: Path) -> None:
    store_resumes(acme.home, a_resume(), a_resume("Grace Hopper"))
    target = f"sqlite:///{tmp_path / 'copy.db'}"

    result = acme("db", "copy", store_url(acme), target)

    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert rows["documents"][0] == "2"
    assert len(rows["documents"][1]) == 64
    assert "The stores are identical." in result.stderr
    assert f"`resumes --database {store_url(acme)} db reopen`" in result.stderr
    with open_store(target) as copy:
        assert accounts.get_account(copy, "acme").resume_count == 2


def test_the_command_to_go_back_to_a_store_can_be_pasted(acme: CommandLine, tmp_path: Path) -> None:
    place = tmp_path / "h\u202e.db"
    acme.succeeds("db", "copy", store_url(acme), f"sqlite:///{place}")

    result = acme("db", "copy", f"sqlite:///{place}", f"sqlite:///{tmp_path / 'copy.db'}")

    assert result.exit_code == 0, result.output
    assert r"h\xe2\x80\xae.db' db reopen`" in result.stderr


def test_s13_a_store_that_was_moved_says_where_to_and_can_be_taken_back(
    acme: CommandLine, tmp_path: Path
) -> None:
    target, other = (f"sqlite:///{tmp_path / name}.db" for name in ("copy", "other"))
    with open_store(other) as store:
        accounts.create_account(store, "mine")
    assert 'account "mine"' in acme.fails(1, "db", "copy", store_url(acme), other)
    acme.succeeds("accounts", "create", "soon")  # nothing was moved there
    acme.succeeds("db", "copy", store_url(acme), target)

    assert target in acme.fails(3, "accounts", "create", "late")
    assert "is writable again" in acme("db", "reopen").stderr
    assert "was not being moved" in acme("db", "reopen").stderr
    acme.succeeds("accounts", "create", "late")
    assert acme.answers("db", "reopen", "--json")["movedTo"] is None


def test_a_server_without_the_extension_distributes_nothing(
    acme: CommandLine, shared_postgres: postgres.Server
) -> None:
    there = shared_postgres.url(shared_postgres.make_database())
    said = acme.fails(1, "--database", there, "db", "upgrade", "--distribute")
    assert "lacks the extension citus: see docs/sharding.md" in said
    assert "Tables distributed" not in acme("--database", there, "db", "upgrade").stderr


@pytest.mark.slow
def test_passwords_of_addresses_appear_nowhere(
    acme: CommandLine, shared_postgres: postgres.Server, tmp_path: Path
) -> None:
    def with_password(database: str) -> str:
        return shared_postgres.url(database).replace("resumes@", "resumes:s3cret-pass@")

    store_resumes(acme.home, a_resume())
    there = with_password(shared_postgres.make_database())
    results = [
        acme("db", "copy", store_url(acme), there, "--json"),
        acme("db", "copy", store_url(acme), there),
        acme("accounts", "create", "late"),
        acme("--database", there, "db", "backup", str(tmp_path / "backup.db")),
        acme("db", "copy", there, f"sqlite:///{tmp_path / 'back.db'}"),
        acme("--database", there, "accounts", "create", "late"),
        acme("--database", there, "db", "restore", str(tmp_path / "backup.db")),
        acme("--database", there, "db", "reopen"),
        acme("db", "copy", store_url(acme), with_password("absent")),
    ]
    assert [result.exit_code for result in results] == [0, 0, 3, 0, 0, 3, 1, 0, 3]
    assert json.loads(results[0].stdout)["to"].startswith("postgresql://127.0.0.1:")
    for result in results:
        assert "s3cret-pass" not in result.output
    for name in ("resumes-home/resumes.db", "back.db", "backup.db"):
        assert b"s3cret-pass" not in (tmp_path / name).read_bytes()


@pytest.fixture
def older(acme: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """`acme`, by a program with one more revision than its store has."""
    last = migrations.list_revisions()[-1]
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder)
    code = f'revision, down_revision = "9998", "{last}"\ndef upgrade():\n    pass\n'
    (folder / "versions" / "9998_next.py").write_text(code)
    monkeypatch.setattr(migrations, "FOLDER", folder)
    # It opens the store once it has drawn, and there is no terminal here.
    monkeypatch.setattr("tui.run.run", lambda open_session, **_: open_session() and 0)
    return acme


@pytest.mark.parametrize(
    "line",
    [
        "db upgrade",
        "accounts create bo",
        "plans set big --max-resumes 9",
        "watch --once",
        "tui",
        # These end with an error, since nothing would end them, but only after that.
        "up --port 0",
        "serve --port 0 --host 192.0.2.1",
    ],
)
def test_an_older_store_is_upgraded_by_what_makes_stores(older: CommandLine, line: str) -> None:
    (older.home / "first-key").mkdir()
    older(*line.split())
    assert (older.home / "resumes.db.before-9998").is_file()
    assert "acme" in older.succeeds("accounts", "list")
    newest = migrations.list_revisions()[-1]
    assert f"is up to date (schema {newest})" in older("db", "upgrade").stderr


@pytest.mark.parametrize(
    "line",
    [
        "plans set big --max-resumes 9 --dry-run",
        "watch --dry-run",
        "accounts list",
        "accounts set-plan acme pro",
        "keys create acme",
        "import -",
        "imports retry --all",
        "list",
        "db backup backup.db",
        "db check",
        "tui --read-only",
    ],
)
def test_an_older_store_is_refused_by_all_others(older: CommandLine, line: str) -> None:
    (older.home / "inbox").mkdir(exist_ok=True)
    said = older.fails(3, *line.split())
    assert f"is older than this program. Run `resumes --home {older.home} db upgrade`" in said


def test_a_check_says_what_is_wrong_with_its_remedy(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())
    checked = acme("db", "check")
    assert (checked.exit_code, checked.stdout) == (0, "")
    assert "Checked 1 account with 1 resume: no problems." in checked.stderr
    with open_home(acme.home) as store:
        damage(store, "UPDATE account_usage SET resume_count = 5")
        account = accounts.get_account(store, "acme")

    checked = acme("db", "check")

    assert checked.exit_code == 1
    wrong, remedy = checked.stdout.splitlines()
    assert wrong.startswith("fail  acme: The counter says 5, but the number of resumes is 1;")
    assert remedy.strip().endswith(
        f"UPDATE account_usage SET resume_count = 1 WHERE account_id = '{account.id}'"
    )
    assert "1 problem found" in checked.stderr


def test_doctor_tells_what_is_well_what_wants_a_look_and_what_is_wrong(acme: CommandLine) -> None:
    result = acme("doctor")
    assert (result.exit_code, result.stderr) == (0, "No problems.\n")
    assert all(line.startswith("ok    ") for line in result.stdout.splitlines())

    with open_home(acme.home) as store:
        a_file(store, accounts.get_account(store, "acme"))
    result = acme("doctor")
    assert (result.exit_code, result.stderr) == (0, "No problems, 1 warning.\n")
    assert "warn  files     1 failed file" in result.stdout
    assert "imports list --outcome failed\n" in result.stdout
    told = acme.answers("doctor", "--json")
    assert told["ok"] is True
    assert [one["ok"] for one in told["findings"] if one["remedy"] is not None] == [True]

    (acme.home / "inbox" / "nobody").mkdir(parents=True)
    (acme.home / "inbox" / "nobody" / "ada.json").touch()
    result = acme("doctor")
    assert (result.exit_code, result.stderr) == (1, "1 problem, 1 warning.\n")
    assert "fail  inbox" in result.stdout
    assert f"--home {acme.home} accounts create nobody, or rename the folder" in result.stdout


@pytest.mark.parametrize(
    ("made", "what", "removal"),
    [
        (
            'CREATE TRIGGER "ev""il" AFTER INSERT ON resumes BEGIN DELETE FROM resumes; END',
            'a trigger that this program did not create, ev"il',
            'DROP TRIGGER "ev""il"',
        ),
        (
            "CREATE VIEW evil AS SELECT * FROM resumes",
            "a view that this program did not create, evil",
            'DROP VIEW "evil"',
        ),
    ],
)
def test_a_trigger_or_a_view_is_named_and_no_backup_that_has_one_is_made_or_restored(
    acme: CommandLine, tmp_path: Path, made: str, what: str, removal: str
) -> None:
    backup = tmp_path / "backup.db"
    acme.succeeds("db", "backup", str(backup))
    for file in (backup, acme.home / "resumes.db"):
        with contextlib.closing(dbapi.connect(file)) as connection:
            connection.execute(made)

    assert what in acme.fails(3, "db", "restore", str(backup))
    assert what in acme.fails(3, "db", "backup", str(tmp_path / "other.db"))
    assert not (tmp_path / "other.db").exists()
    checked = acme("db", "check")
    assert checked.exit_code == 1
    found, remedy = checked.stdout.splitlines()
    assert found == f"fail  The file has {what} (1)"
    assert (
        remedy.strip()
        == f"Stop all programs that use the store, then run this SQL statement: {removal}"
    )

    for file in (backup, acme.home / "resumes.db"):
        with contextlib.closing(dbapi.connect(file)) as connection:
            connection.execute(removal)
    acme.succeeds("db", "check")
    acme.succeeds("db", "restore", str(backup))


@pytest.mark.parametrize(
    "damaged", ["DELETE FROM documents", "UPDATE documents SET document = '{}'"]
)
def test_what_a_check_says_to_delete_can_be_deleted(acme: CommandLine, damaged: str) -> None:
    store_resumes(acme.home, a_resume())
    with open_home(acme.home) as store:
        damage(store, damaged)

    [found] = json.loads(acme("db", "check", "--json").stdout)["findings"]
    _, _, remedy = found["remedy"].rstrip("`").rpartition("`resumes ")
    acme.succeeds(*remedy.split(), "--yes")

    assert acme.answers("db", "check", "--json")["ok"]


@pytest.mark.parametrize("document", ["{}", "[]", '{"header":{},"sections"z{}}'])
def test_a_damaged_resume_is_no_bug_that_its_reader_should_report(
    acme: CommandLine, document: str
) -> None:
    resume_id = store_resumes(acme.home, a_resume())[0]
    with open_home(acme.home) as store:
        damage(store, f"UPDATE documents SET document = '{document}'")
    pdfs = ("export", "--all", "--format", "pdf", "--to", str(acme.home / "pdfs"))
    for words in (("show", resume_id), ("export", "--all"), pdfs):
        error = acme.fails(3, *words)
        assert error.startswith("A stored resume is damaged. `resumes ")
        assert "db check` names it" in error
