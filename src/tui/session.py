"""The state that the screens share while the terminal UI runs, and its initial values."""

import os
from collections.abc import Callable, Iterable
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
"""The modes that can show one account; the others show everything."""


class TrailStep(NamedTuple):
    """A link that was followed: the mode it started from, and the path in its title line."""

    mode: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """What was chosen in the export dialog, in its words; empty before. `is_all`: all that the list shows."""

    kind: str = ""
    folder: str = ""
    layout: str = ""
    paper: str = ""
    anonymous: str = ""
    is_all: bool = False


@dataclass(slots=True)
class UiSession:
    """The store, the effective settings, and the current position in the UI.

    `accounts` maps a mode to the account that it shows; None or no entry means all accounts, for
    resumes the first. `program` is the name of the program in commands shown to the user.
    """

    store: Store
    read_only: bool = False
    accounts: dict[str, str | None] = field(default_factory=dict)
    link: Target | None = None
    """The link for the next list to follow; None once followed."""

    trail: list[TrailStep] = field(default_factory=list)
    """The links that led here, oldest first, each from another mode."""

    settings: Settings = field(default_factory=Settings)
    program: str = "resumes"
    forget: Callable[[Iterable[str]], None] | None = None
    """Erases the persons of these resumes, once the user has agreed in the terminal."""

    deletions: Deletions = field(default_factory=Deletions)
    refresh_s: float | None = None
    """The refresh interval; None for each screen's default."""

    cache: QueryCache = field(default_factory=QueryCache)
    last_export: ExportChoice | None = None

    pdfs: PdfFiles = field(init=False)
    first: FirstRows | None = None
    """The rows shown while the store was being opened."""

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
    forget: Callable[[Iterable[str]], None] | None = None,
) -> UiSession:
    """Return the session. Raises NotFound if the account or resume does not exist.

    `account` selects resumes, keys and imports; None means the first account's resumes, and the
    keys and imports of all. `open_id` is a resume to open first, searched in all accounts if
    `account` is None. Raises InvalidArgument for an invalid keymap.
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
        forget=forget,
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
        f'Resume not found in {where}: "{resume_id[:80]}". `resumes list --filter TEXT` finds resumes'
    )
