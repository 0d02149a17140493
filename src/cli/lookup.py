"""Finding one resume by what was typed, or saying what to type instead."""

from typing import TYPE_CHECKING

from cli.session import Session
from resumes.errors import NotFound

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo
    from resumes.store.stored_resumes import StoredResume


def get_resume(
    session: Session, store: "Store", account: "AccountInfo", resume_id: str
) -> "StoredResume":
    """The stored resume. Raises NotFound, which names the id, the account and the way on."""
    from resumes.store import stored_resumes

    try:
        return stored_resumes.get_resume(store, account.id, resume_id)
    except NotFound:
        raise not_found(session, account, resume_id) from None


def not_found(session: Session, account: "AccountInfo", resume_id: str) -> NotFound:
    """That the account has no resume of this id."""
    line = session.command_line("list", "--account", account.name, "--filter", "TEXT")
    return NotFound(
        f'Resume not found in account "{account.name}": "{resume_id[:80]}". '
        f"`{line}` finds resumes by title, name or e-mail address"
    )
