"""What `up` and `demo` both set up: an account with an inbox, the API's and importer's commands."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resumes.settings import Settings
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo

PLAN = "business"
"""The plan of an account that nobody chose a plan for."""


def find_or_make_account(store: "Store", inbox: Path, name: str) -> "AccountInfo":
    """The account, with a folder in the inbox; a new one is on the business plan."""
    from resumes.store import accounts

    account = accounts.find_account(store, name) or accounts.create_account(store, name, plan=PLAN)
    (inbox / name).mkdir(parents=True, exist_ok=True)
    return account


def serve_arguments(settings: "Settings") -> list[str]:
    """The command line of the API's process."""
    access_log = {None: [], True: ["--access-log"], False: ["--no-access-log"]}
    return [
        *_store_arguments(settings),
        "serve",
        *("--port", str(settings.port)),
        *("--log-format", settings.log_format),
        *access_log[settings.access_log],
    ]


def watch_arguments(settings: "Settings") -> list[str]:
    """The command line of the importer's process."""
    return [
        *_store_arguments(settings),
        "watch",
        str(settings.inbox),
        *("--log-format", settings.log_format),
    ]


def _store_arguments(settings: "Settings") -> list[str]:
    database = [] if settings.database is None else ["--database", settings.database]
    return ["--home", str(settings.home.absolute()), *database]
