"""What the screens share for as long as the terminal UI runs."""

from dataclasses import dataclass

from resumes.store.engine import Store


@dataclass(slots=True)
class Session:
    """The store, and where the reader is.

    `account` is the name of the account whose resumes are shown; None means the first.
    `keys_account` is the one whose keys are shown; None means all.
    """

    store: Store
    read_only: bool = False
    account: str | None = None
    keys_account: str | None = None
    open_id: str | None = None
    """The resume to show first; None once it was."""
