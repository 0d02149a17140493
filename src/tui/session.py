"""What the screens share for as long as the terminal UI runs, and what that is at the start."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from resumes.errors import NotFound
from resumes.health.metrics import QueryCache
from resumes.settings import CONFIG_NAME, ENV_PREFIX, Settings
from resumes.store import accounts, stored_resumes
from resumes.store.sqlite.first_rows import FirstRows
from resumes.store.store import Store
from tui.deletions import Deletions
from tui.keys import Target, check_keymap
from tui.pdf_files import PdfFiles

OF_AN_ACCOUNT: Final = ("resumes", "imports", "keys")
"""The modes that show what an account has; the others show all."""


class TrailStep(NamedTuple):
    """A link that was followed: from which mode, and where that was, as the title line says it."""

    mode: str
    path: tuple[str, ...]


@dataclass(slots=True)
class UiSession:
    """The store, the settings in force, and where the reader is.

    `accounts` has the name of the account that each mode shows; None, or none, means all, or of
    resumes the first. `program` is how commands begin that are shown to be typed elsewhere.
    """

    store: Store
    read_only: bool = False
    accounts: dict[str, str | None] = field(default_factory=dict)
    link: Target | None = None
    """What the list that is shown next is to show; None once it did."""

    trail: list[TrailStep] = field(default_factory=list)
    """The links that led here, each from another mode."""

    settings: Settings = field(default_factory=Settings)
    program: str = "resumes"
    deletions: Deletions = field(default_factory=Deletions)
    refresh_s: float | None = None
    """How often what is seen is read again; None is each screen's own choice."""

    cache: QueryCache = field(default_factory=QueryCache)
    pdfs: PdfFiles = field(init=False)
    first: FirstRows | None = None
    """What was shown of the resumes while the store was being opened."""

    def __post_init__(self) -> None:
        self.pdfs = PdfFiles(self.settings.format, self.settings.home)


def prepare(
    store: Store,
    *,
    account: str | None = None,
    open_id: str | None = None,
    read_only: bool = False,
    settings: Settings | None = None,
    program: str = "resumes",
) -> UiSession:
    """Return the session. Raises NotFound if the account or resume does not exist.

    `account` names whose resumes, keys and imports are shown; None means the first one's resumes
    and everything else of all. `open_id` is a resume to open first; without an account it is
    looked for in all. Raises InvalidArgument for keys of the user's own that cannot be used.
    """
    settings = settings or Settings()
    # The environment takes precedence over the file.
    variable, file = f"{ENV_PREFIX}KEYMAP", settings.home / CONFIG_NAME
    check_keymap(settings.keymap, variable if os.environ.get(variable) else str(file))
    if account is not None:
        accounts.get_account(store, account)
    if open_id is not None:
        account = find_owner(store, open_id, account)
    return UiSession(
        store,
        read_only=read_only,
        accounts=dict.fromkeys(OF_AN_ACCOUNT, account),
        link=None if open_id is None else Target("resumes", account, opens=open_id),
        settings=settings,
        program=program,
    )


def find_owner(store: Store, resume_id: str, account: str | None) -> str:
    """Return the name of the account that holds the resume. Raises NotFound."""
    for candidate in accounts.list_accounts(store):
        if account in (None, candidate.name):
            with suppress(NotFound):
                stored_resumes.get_resume(store, candidate.id, resume_id)
                return candidate.name
    where = "any account" if account is None else f'account "{account}"'
    raise NotFound(
        f'Resume not found in {where}: "{resume_id[:80]}". `resumes list --filter TEXT` finds '
        "resumes by title, name or email address"
    )
