"""`resumes db`."""

from resumes.store import migrations
from tests.cli.conftest import CommandLine


def test_upgrade_says_which_schema_the_store_has(acme: CommandLine) -> None:
    newest = max(path.name[:4] for path in (migrations.FOLDER / "versions").glob("[0-9]*.py"))
    assert f"is current (schema {newest})" in acme("db", "upgrade").stderr
    assert acme.answers("db", "upgrade", "--json")["revision"] == newest


def test_upgrade_makes_nothing_that_is_not_there(run: CommandLine) -> None:
    assert "Database not found" in run.fails(3, "db", "upgrade")
    assert not run.home.exists()


def test_an_address_of_another_engine_is_a_usage_error(run: CommandLine) -> None:
    message = run.fails(2, "--database", "mysql://me:secret@host/db", "db", "upgrade")

    assert message == (
        'Invalid database "mysql://…": use sqlite:///PATH or postgresql://USER@HOST/NAME'
    )
