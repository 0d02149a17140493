"""What happened to a resume; with a real importer in test_source."""

from resumes.store import accounts, listing
from resumes.store.engine import Store
from tests.tui.builders import HOSTILE, a_document, stored
from tui.screens.resumes.history import history_paragraphs


def told(store: Store, resume_id: str) -> str:
    account = accounts.get_account(store, "ana")
    resume = listing.get_resume(store, account.id, resume_id)
    return "\n".join(one.content.plain for one in history_paragraphs(store, account, resume))


def test_a_resume_without_oddities_says_so(store: Store) -> None:
    (resume_id,) = stored(store, a_document())

    assert "Nothing about it was odd." in told(store, resume_id)


def test_warnings_are_listed_with_their_places(store: Store) -> None:
    (resume_id,) = stored(store, a_document() | {"odd": 1, HOSTILE: 2})

    history = told(store, resume_id)

    assert "2 warnings" in history
    assert "odd is not a known field" in history
    assert "\x1b" not in history
