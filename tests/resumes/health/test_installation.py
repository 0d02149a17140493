"""What is looked at."""

from pathlib import Path

from resumes.health.installation import Installation, installation_of
from resumes.settings import Settings
from resumes.store import Store, accounts


def test_only_the_home_s_inbox_is_watched_by_a_command(
    installation: Installation, tmp_path: Path
) -> None:
    inbox = str((tmp_path / "inbox").resolve())

    assert installation.start_line() == "resumes up"
    assert installation.watches(inbox)
    assert installation.watches(None)
    assert not installation.watches("/srv/inbox")
    assert installation.how_to_watch(inbox) == "`resumes up` starts one"
    assert installation.how_to_watch("/srv/inbox").startswith("start the one of /srv/inbox again")


def test_commands_in_messages_get_the_installation_s_flags(store: Store, tmp_path: Path) -> None:
    installation = installation_of(store, Settings(home=tmp_path), "resumes --home '/srv/a b'")

    assert (
        installation.typeable("No store. `resumes up` makes one, `make demo` too")
        == "No store. `resumes --home '/srv/a b' up` makes one, `make demo` too"
    )
    told = installation.typeable("Run `resumes db upgrade`")
    assert installation.typeable(told) == told


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
