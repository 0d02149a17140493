"""`resumes db check`."""

from sqlalchemy import text

from resumes.store import accounts
from resumes.store.sqlite.database import sqlite_engine
from tests.cli.conftest import CommandLine, a_resume, open_home, store_resumes


def harm(run: CommandLine) -> None:
    engine = sqlite_engine(run.home / "resumes.db", transactions=False)
    with engine.connect() as connection:
        connection.execute(text("UPDATE account_usage SET resume_count = 5"))
    engine.dispose()


def test_a_store_that_is_well_ends_with_0(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())
    checked = acme("db", "check")
    assert checked.exit_code == 0
    assert checked.stdout == ""
    assert "Looked at 1 account with 1 resume: all is well." in checked.stderr


def test_what_is_wrong_is_said_with_its_remedy_and_ends_with_1(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())
    harm(acme)
    with open_home(acme.home) as store:
        account = accounts.get_account(store, "acme")
    checked = acme("db", "check")
    assert checked.exit_code == 1
    wrong, remedy = checked.stdout.splitlines()
    assert wrong.startswith("WRONG  acme: The counter says 5 resumes and there are 1;")
    assert remedy.strip().endswith(
        f"UPDATE account_usage SET resume_count = 1 WHERE account_id = '{account.id}'"
    )
    assert "1 thing to put right" in checked.stderr


def test_findings_are_printed_as_json(acme: CommandLine) -> None:
    assert acme.answers("db", "check", "--json") == {
        "ok": True, "accounts": 1, "resumes": 0, "findings": [],
    }  # fmt: skip
    harm(acme)
    checked = acme("db", "check", "--json")
    assert checked.exit_code == 1
    assert '"defect": "counter"' in checked.stdout
    assert '"count": 5' in checked.stdout
