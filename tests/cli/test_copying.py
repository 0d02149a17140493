"""`resumes db copy` and `resumes db reopen`."""

import json
import resource
from pathlib import Path

import pytest

from cli.copying import reopening
from resumes.store import accounts, open_store
from tests import postgres
from tests.cli.conftest import CommandLine, a_resume, store_resumes


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
    assert "Both hold the same." in result.stderr
    assert f"`resumes --database {store_url(acme)} db reopen`" in result.stderr
    with open_store(target) as copy:
        assert accounts.get_account(copy, "acme").resume_count == 2


def test_the_way_back_can_be_typed_and_holds_no_secret() -> None:
    assert reopening("sqlite:////srv/a home/resumes.db") == (
        "`resumes --database 'sqlite:////srv/a home/resumes.db' db reopen`"
    )
    assert reopening("postgresql+psycopg://resumes@db/resumes?sslmode=require") == (
        "`resumes --database 'postgresql://resumes@db/resumes?sslmode=require' db reopen`"
    )
    assert reopening("postgresql://resumes:s3cret-pass@db/resumes") == (
        "`resumes db reopen`, with RESUMES_DATABASE set to its address and password"
    )


def test_a_copy_without_room_is_one_line_and_makes_nothing(
    acme: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100_000, 100_000))
    place = tmp_path / "copy.db"
    said = acme.fails(3, "db", "copy", store_url(acme), f"sqlite:///{place}")
    assert said.startswith("A file may have 0.1 MB here")
    assert not list(tmp_path.glob("copy.db*"))
    acme.succeeds("accounts", "create", "late")


def test_a_copy_answers_in_json(acme: CommandLine, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    answer = acme.answers("db", "copy", store_url(acme), target, "--json")
    assert (answer["from"], answer["to"]) == (store_url(acme), target)
    rows = {table["name"]: table["rows"] for table in answer["tables"]}
    assert (rows["accounts"], rows["documents"]) == (1, 0)


def test_s13_a_store_that_was_moved_says_where_to_and_can_be_taken_back(
    acme: CommandLine, tmp_path: Path
) -> None:
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    acme.succeeds("db", "copy", store_url(acme), target)

    assert target in acme.fails(3, "accounts", "create", "late")
    assert "takes writes again" in acme("db", "reopen").stderr
    assert "was not being moved" in acme("db", "reopen").stderr
    acme.succeeds("accounts", "create", "late")
    assert acme.answers("db", "reopen", "--json")["movedTo"] is None


def test_a_target_with_content_is_refused_by_name(acme: CommandLine, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path / 'other.db'}"
    with open_store(target) as other:
        accounts.create_account(other, "mine")
    assert 'account "mine"' in acme.fails(1, "db", "copy", store_url(acme), target)
    acme.succeeds("accounts", "create", "late")


def test_a_source_that_is_not_there_is_not_made(run: CommandLine, tmp_path: Path) -> None:
    source = tmp_path / "absent.db"
    words = run.fails(3, "db", "copy", f"sqlite:///{source}", f"sqlite:///{tmp_path / 'to.db'}")
    assert "Database not found" in words
    assert not source.exists()


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
    assert [result.exit_code for result in results] == [0, 1, 3, 0, 0, 3, 1, 0, 3]
    assert json.loads(results[0].stdout)["to"].startswith("postgresql://127.0.0.1:")
    for result in results:
        assert "s3cret-pass" not in result.output
    for name in ("resumes-home/resumes.db", "back.db", "backup.db"):
        assert b"s3cret-pass" not in (tmp_path / name).read_bytes()
