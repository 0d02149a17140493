"""`resumes accounts export` and `resumes accounts import`."""

import os
from pathlib import Path

import pytest
from sqlalchemy import select, update

from resumes.store import accounts, schema
from resumes.store.sqlite.store import sqlite_engine
from tests.command.conftest import CommandLine, a_resume, finish, start, store_resumes
from tests.support.inbox.builders import a_full_disk
from tests.support.store.builders import names_in, tamper
from tests.support.stores import open_home


def account_in(file: Path) -> str:
    """Whose export it is."""
    with sqlite_engine(file, transactions=False, query_only=True).connect() as connection:
        return str(connection.scalar(select(schema.accounts.c.name)))


def test_an_account_goes_through_a_file_to_another_home(acme: CommandLine, tmp_path: Path) -> None:
    ids = store_resumes(acme.home, a_resume(), a_resume("Bo"))
    file = tmp_path / "acme.account"

    exported = acme("accounts", "export", "acme", str(file))

    assert exported.exit_code == 0, exported.output
    assert exported.stdout == ""
    assert f'Exported account "acme" to {file}.' in exported.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    other = CommandLine(tmp_path / "other")
    other.succeeds("accounts", "create", "someone")
    imported = other("accounts", "import", str(file))
    assert 'Imported account "acme" (plan: free, 2 resumes).' in imported.stderr
    listed = other.answers("list", "--account", "acme", "--json")
    assert [one["id"] for one in listed["resumes"]] == ids


def test_an_export_replaces_an_earlier_one_alone_and_only_if_asked(
    acme: CommandLine, tmp_path: Path
) -> None:
    acme.succeeds("accounts", "create", "bo")
    folder, names = tmp_path / "folder", ("target", "empty", "sqlite", "link", "nowhere", "pipe")
    folder.mkdir()
    target, empty, sqlite, link, nowhere, pipe = (folder / name for name in names)
    target.write_text("precious")
    empty.touch()
    sqlite.write_bytes(b"SQLite format 3\0" * 10)
    link.symlink_to(target)
    nowhere.symlink_to(tmp_path / "absent")
    os.mkfifo(pipe)
    for file in (target, empty, sqlite, link, nowhere, pipe, Path("/dev/null")):
        said = acme.fails(1, "accounts", "export", "acme", str(file))
        assert said.startswith(f"{file} ")
        assert said.endswith(": choose another file, or replace an earlier export with --overwrite")
        said = acme.fails(1, "accounts", "export", "acme", str(file), "--overwrite")
        assert "--overwrite only replaces account exports. Choose another file" in said
    assert target.read_text() == "precious"
    assert (empty.read_bytes(), pipe.is_fifo()) == (b"", True)
    assert link.is_symlink()
    assert nowhere.is_symlink()
    assert names_in(folder) == sorted(names)

    file = tmp_path / "export.account"
    acme.succeeds("accounts", "export", "bo", str(file))
    file.chmod(0o644)
    assert "already exists" in acme.fails(1, "accounts", "export", "acme", str(file))
    acme.fails(1, "accounts", "export", "nobody", str(file), "--overwrite")
    assert account_in(file) == "bo"
    acme.succeeds("accounts", "export", "acme", str(file), "--overwrite")
    assert account_in(file) == "acme"
    assert file.stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == ["export.account", "folder", "resumes-home"]

    said = acme.fails(2, "accounts", "export", "acme", "-")
    assert said.startswith("An account file is a SQLite file, which cannot be written to standard")


@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_the_store_is_never_written_over_by_whatever_name(
    acme: CommandLine, tmp_path: Path, flags: list[str]
) -> None:
    ids = store_resumes(acme.home, a_resume())
    store = acme.home / "resumes.db"
    soft, hard = tmp_path / "soft", tmp_path / "hard"
    soft.symlink_to(store)
    hard.hardlink_to(store)
    before = store.read_bytes()

    for file in (store, soft, hard):
        acme.fails(1, "accounts", "export", "acme", str(file), *flags)

    assert store.read_bytes() == before
    assert store.samefile(hard)
    assert soft.is_symlink()
    hard.unlink()  # a store that has two names is not opened
    listed = acme.answers("list", "--json")
    assert [one["id"] for one in listed["resumes"]] == ids


def test_the_log_of_a_store_in_use_stays(acme: CommandLine, tmp_path: Path) -> None:
    hard = tmp_path / "hard"
    with open_home(acme.home) as store:
        accounts.create_account(store, "bo")
        hard.hardlink_to(acme.home / "resumes.db-wal")
        # By another process: one that opened the log by a second name would drop our locks.
        for file in (acme.home / "resumes.db-wal", acme.home / "resumes.db-shm", hard):
            words = ("accounts", "export", "acme", str(file), "--overwrite")
            done = finish(start("--home", str(acme.home), *words))
            assert done[0] == 1, done
        hard.unlink()  # a log with two names takes nothing
        accounts.create_account(store, "cy")
    assert "cy" in acme.succeeds("accounts", "list")


@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_an_export_that_fails_half_way_leaves_nothing_behind(
    acme: CommandLine, tmp_path: Path, flags: list[str]
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    file = folder / "acme.account"
    if flags:
        acme.succeeds("accounts", "export", "acme", str(file))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    sections = {"summaries": {"column": 0, "items": [{"text": "x" * 20_000}] * 2}}
    store_resumes(acme.home, *[a_resume(sections=sections) for _ in range(5)])

    with a_full_disk(300_000):  # an empty account file has 160,000
        said = acme.fails(3, "accounts", "export", "acme", str(file), *flags)

    assert said.startswith(f"The store {file} is unavailable: ")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_import_can_choose_name_and_plan_and_answer_in_json(
    acme: CommandLine, tmp_path: Path
) -> None:
    store_resumes(acme.home, *[a_resume(f"Ada {number}") for number in range(5)])
    file = tmp_path / "acme.account"
    acme.succeeds("accounts", "export", "acme", str(file))
    acme.succeeds("plans", "set", "tiny", "--max-resumes", "2")
    words = ("accounts", "import", str(file), "--plan", "tiny", "--name")

    answer = acme.answers(*words, "again", "--json")

    assert (answer["name"], answer["plan"], answer["resumes"]) == ("again", "tiny", 5)
    assert answer["rows"] == {"resume": 5, "file": 0, "item": 0, "digest": 0, "key": 0}
    acme.succeeds("accounts", "delete", "again", "--with-resumes", "--yes")
    said = acme(*words, "again").stderr
    assert "Its plan allows 2: it keeps them all but cannot add more." in said


def test_a_file_that_cannot_be_imported_says_why(acme: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "acme.account"
    assert "Account file not found" in acme.fails(2, "accounts", "import", str(file))
    file.write_text("{}\n")
    # Before the store is opened, whose own file it might be (pitfalls S1).
    no_store = CommandLine(tmp_path / "nowhere")
    for command_line in (acme, no_store):
        said = command_line.fails(3, "accounts", "import", str(file))
        assert "is not an account file" in said
    file.unlink()
    store_resumes(acme.home, a_resume())
    acme.succeeds("accounts", "export", "acme", str(file))
    assert "already exists" in acme.fails(1, "accounts", "import", str(file))

    tamper(file, "UPDATE resumes SET filename = :value", value="../\x1b[31mx.pdf")
    said = acme.fails(3, "accounts", "import", str(file), "--name", "again")
    assert '"filename" in resumes' in said
    assert "'../\\x1b[31mx.pdf'" in said
    found = acme.answers("accounts", "list", "--json")["accounts"]
    assert [one["name"] for one in found] == ["acme"]


def test_an_import_that_was_cut_off_is_told_as_such(acme: CommandLine, tmp_path: Path) -> None:
    arriving = update(schema.accounts).where(schema.accounts.c.name == "bo")
    values = {"name": "bo" + accounts.ARRIVING, "closed_at": "2027-01-15T08:00:00.000Z"}
    with open_home(acme.home) as store:  # as an import leaves its account that was killed
        accounts.create_account(store, "bo")
        store.write(lambda connection: connection.execute(arriving.values(values)))
    listed = acme("accounts", "list")
    assert 'Account "bo" is being imported (0 resumes so far).' in listed.stderr
    assert "accounts delete 'bo~import' --with-resumes --yes" in listed.stderr
    assert "bo" not in listed.stdout
    acme.succeeds("accounts", "delete", "bo~import", "--with-resumes", "--yes")
    assert "bo" not in acme("accounts", "list").stderr
