"""What is in a store, as those who manage it read it."""

from resumes.store import Store, stored_resumes
from resumes.store.stored_resumes import Entry
from tests.stateful.model import Account


def list_entries(store: Store, account: Account) -> list[Entry]:
    """All resumes of the account, in the order of their ids."""
    entries: list[Entry] = []
    cursor: str | None = ""
    while cursor is not None:
        page = stored_resumes.list_page(
            store, account.id, cursor=cursor, limit=stored_resumes.MAX_LIMIT
        )
        entries += page.entries
        cursor = page.cursor
    return entries
