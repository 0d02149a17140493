"""What `up` and `demo` both set up: an account with an inbox, the API's and importer's commands."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.session import Session
from resumes.errors import Conflict, InvalidArgument

if TYPE_CHECKING:
    from resumes.settings import Settings
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo

DATABASE = "RESUMES_DATABASE"
"""The setting of the store's address, in the environment."""

PLAN = "business"
"""The plan of an account that nobody chose a plan for."""


@contextlib.contextmanager
def naming_commands(session: Session) -> Iterator[None]:
    """Have the commands that a refusal in the block names lead to this session's home and store."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(session.installation().typeable(error.message)) from None


def find_or_make_account(store: "Store", inbox: Path, name: str) -> "AccountInfo":
    """The account, with a folder in the inbox; a new one is on the business plan."""
    from resumes.store import accounts

    account = accounts.find_account(store, name) or _make_account(store, name)
    (inbox / name).mkdir(parents=True, exist_ok=True)
    return account


def _make_account(store: "Store", name: str) -> "AccountInfo":
    from resumes.store import accounts

    try:
        return accounts.create_account(store, name, plan=PLAN)
    except Conflict:  # another machine has made it just now
        return accounts.get_account(store, name)


def check_address(settings: "Settings") -> None:
    """The API can listen where the settings say, at present. Raises what a server that cannot would:
    asked before anything is made, so that what was made is not left without a word about it."""
    from server.service import listen

    listen(settings).close()


def serve_arguments(settings: "Settings") -> list[str]:
    """The command line of the API's process."""
    access_log = {None: [], True: ["--access-log"], False: ["--no-access-log"]}
    return [
        *_home_arguments(settings),
        "serve",
        *("--port", str(settings.port)),
        *("--log-format", settings.log_format),
        *access_log[settings.access_log],
    ]


def watch_arguments(settings: "Settings") -> list[str]:
    """The command line of the importer's process."""
    return [
        *_home_arguments(settings),
        "watch",
        str(settings.inbox),
        *("--log-format", settings.log_format),
    ]


def _home_arguments(settings: "Settings") -> list[str]:
    return ["--home", str(settings.home.absolute())]


def store_environment(database: str | None) -> dict[str, str]:
    """By what our processes find the store, where a setting or a flag names it.

    Not on their command lines: every user of the machine can read those, and a password may stand
    in the address.
    """
    return {} if database is None else {DATABASE: database}
