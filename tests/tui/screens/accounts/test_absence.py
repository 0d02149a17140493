"""What is said while there are no accounts."""

from resumes.settings import Settings
from resumes.store.engine import Store
from tui.screens.accounts.absence import no_accounts
from tui.session import Session


def told(session: Session) -> list[str]:
    return [line.plain for line in no_accounts(session)]


def test_the_key_and_the_command_are_named_as_they_work_here(empty_store: Store) -> None:
    session = Session(
        empty_store,
        program="resumes --home /srv",
        settings=Settings(keymap={"accounts.create": "f7"}),
    )

    assert told(session) == [
        "There are no accounts yet.",
        "f7 in Accounts makes one, as does",
        "`resumes --home /srv accounts create NAME`",
    ]


def test_where_nothing_can_change_only_the_command_is_named(empty_store: Store) -> None:
    session = Session(empty_store, read_only=True)

    assert told(session)[1:] == ["`resumes accounts create NAME` makes one."]
