"""The state that the screens share while the terminal UI runs, and its initial values."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from resumes.errors import NotFound
from resumes.health.metrics import QueryCache
from resumes.settings import CONFIG_NAME, ENV_PREFIX, Settings
from resumes.store import accounts, stored_resumes
from resumes.store.sqlite.first_rows import FirstRows
from resumes.store.store import Store
from tui.deletions import Deletions
from tui.keys import Target, check_keymap
from tui.pdf_files import PdfFiles


class TrailStep(NamedTuple):
    """Where a link was followed: the mode, and the path in the title of its screen."""

    mode: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """The texts chosen in the export dialog, initially empty. `is_all` means all listed resumes."""

    kind: str = ""
    folder: str = ""
    layout: str = ""
    paper: str = ""
    anonymous: str = ""
    is_all: bool = False


@dataclass(slots=True)
class UiSession:
    """The store, the effective settings, and the current position in the UI.

    `accounts` maps a mode to the account that it shows; None or no entry means all accounts or, for
    resumes, the first account. `program` is the program's name in commands shown to the user.
    """

    store: Store
    read_only: bool = False
    accounts: dict[str, str | None] = field(default_factory=dict)
    link: Target | None = None
    """The link that the next list must follow; None if there is none."""

    trail: list[TrailStep] = field(default_factory=list)
    """The links that led here, oldest first, each from a different mode."""

    settings: Settings = field(default_factory=Settings)
    program: str = "resumes"
    forget: Callable[[Iterable[str]], None] | None = None
    """Erases the people whom these resumes describe, after the user has confirmed it."""

    deletions: Deletions = field(default_factory=Deletions)
    refresh_s: float | None = None
    """The refresh interval; None means that each screen uses its default."""

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

    `account` owns the resumes, keys and imports to show; None means the resumes of the first
    account, and all keys and imports. `open_id` is the ID of a resume to open first; it may be in
    any account if `account` is None. Raises InvalidArgument for an invalid keymap.
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
        accounts=dict.fromkeys(("resumes", "imports", "keys"), account),
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
