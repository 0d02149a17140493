"""The session that the command line asked for: the part of the start that needs the store."""

import os

from resumes.errors import NotFound
from resumes.settings import CONFIG_NAME, ENV_PREFIX, Settings
from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from tui.keys import MODES, Target, check_keymap
from tui.session import UiSession


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
    check_keymap(settings.keymap, keymap_source(settings))
    if account is not None:
        accounts.get_account(store, account)
    if open_id is not None:
        account = find_owner(store, open_id, account)
    return UiSession(
        store,
        read_only=read_only,
        accounts=dict.fromkeys((mode.name for mode in MODES), account),
        link=None if open_id is None else Target("resumes", account, opens=open_id),
        settings=settings,
        program=program,
    )


def keymap_source(settings: Settings) -> str:
    """Return where the user's keys are set: the environment takes precedence over the file."""
    variable = f"{ENV_PREFIX}KEYMAP"
    return variable if os.environ.get(variable) else str(settings.home / CONFIG_NAME)


def find_owner(store: Store, resume_id: str, account: str | None) -> str:
    """Return the name of the account that holds the resume. Raises NotFound."""
    for candidate in accounts.list_accounts(store):
        if account not in (None, candidate.name):
            continue
        try:
            stored_resumes.get_resume(store, candidate.id, resume_id)
        except NotFound:
            continue
        return candidate.name
    where = "any account" if account is None else f'account "{account}"'
    raise NotFound(
        f'Resume not found in {where}: "{resume_id[:80]}". `resumes list --filter TEXT` finds '
        "resumes by title, name or e-mail address"
    )
