"""What is looked at."""

from pathlib import Path

from resumes.health.installation import Installation, installation_of
from resumes.settings import Settings
from resumes.store import Store, accounts


def test_the_home_s_inbox_is_watched_by_up(installation: Installation, tmp_path: Path) -> None:
    inbox = str((tmp_path / "inbox").resolve())

    assert installation.start_line(inbox) == "resumes up"
    assert installation.start_line(None) == "resumes up"
    assert installation.start_line("/srv/in box") == "resumes watch '/srv/in box'"


def test_commands_begin_as_the_program_was_called(store: Store, tmp_path: Path) -> None:
    installation = installation_of(store, Settings(home=tmp_path), "resumes --home '/srv/a b'")

    assert (
        installation.command_line("accounts", "create", "$x")
        == "resumes --home '/srv/a b' accounts create '$x'"
    )


def test_a_store_that_is_open_stays_open(store: Store, tmp_path: Path) -> None:
    with installation_of(store, Settings(home=tmp_path), "resumes").store():
        pass

    assert accounts.list_accounts(store) == []
