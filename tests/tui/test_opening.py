"""From the command line to a session."""

import pytest

from resumes.errors import NotFound
from resumes.store.engine import Store
from tests.tui.builders import a_document, an_account, stored
from tui.opening import find_owner, prepare


def test_an_unknown_account_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match="nobody"):
        prepare(store, account="nobody")


@pytest.mark.parametrize("resume_id", ["0" * 24, "\x1b]52;c;AAAA\x07"])
def test_and_an_unknown_resume(store: Store, resume_id: str) -> None:
    with pytest.raises(NotFound, match="any account"):
        prepare(store, open_id=resume_id)


def test_a_resume_is_found_in_whichever_account_holds_it(store: Store) -> None:
    an_account(store, "zoe")
    (resume_id,) = stored(store, a_document(), account="zoe")

    assert find_owner(store, resume_id, None) == "zoe"
    with pytest.raises(NotFound, match='account "ana"'):
        find_owner(store, resume_id, "ana")
    assert prepare(store, open_id=resume_id).account == "zoe"


def test_an_account_is_that_of_every_screen(store: Store) -> None:
    session = prepare(store, account="ana", read_only=True)

    assert (session.account, session.keys_account, session.imports_account) == ("ana",) * 3
    assert session.read_only
