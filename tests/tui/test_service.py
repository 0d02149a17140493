"""Starting the terminal UI."""

import io
import sys

import pytest

from resumes.errors import InvalidArgument, NotFound
from resumes.store.engine import Store
from tests.tui.builders import a_document, an_account, stored
from tui import service
from tui.service import run


def test_without_a_terminal_it_says_so_and_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)

    assert run(store) == 2
    assert "needs a terminal" in told.getvalue()
    assert "\x1b" not in told.getvalue()


def test_an_unknown_account_is_told_before_anything_is_drawn(store: Store) -> None:
    with pytest.raises(NotFound, match="nobody"):
        run(store, account="nobody")


def test_so_is_an_unknown_screen(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="resumes, accounts, keys"):
        run(store, screen="plans")


@pytest.mark.parametrize("resume_id", ["0" * 24, "\x1b]52;c;AAAA\x07"])
def test_and_an_unknown_resume(store: Store, resume_id: str) -> None:
    with pytest.raises(NotFound, match="any account"):
        run(store, open_id=resume_id)


def test_a_resume_is_found_in_whichever_account_holds_it(store: Store) -> None:
    an_account(store, "zoe")
    (resume_id,) = stored(store, a_document(), account="zoe")

    assert service.find_owner(store, resume_id, None) == "zoe"
    with pytest.raises(NotFound, match='account "ana"'):
        service.find_owner(store, resume_id, "ana")


def test_an_account_is_that_of_resumes_and_keys(store: Store) -> None:
    session = service.prepare(store, screen="keys", account="ana", open_id=None, read_only=True)

    assert (session.account, session.keys_account, session.read_only) == ("ana", "ana", True)
