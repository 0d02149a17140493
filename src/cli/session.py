"""Handle the global flags of a run, which select the settings, the store and an account."""

import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cli.output import put_json, say
from resumes.errors import InvalidArgument, NotFound, StoreUnavailable
from resumes.text import shell_line

if TYPE_CHECKING:
    from pathlib import Path

    from resumes.health.findings import Installation
    from resumes.settings import Settings
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo

NAME = "resumes"


@dataclass(slots=True)
class Session:
    """The flags that all commands accept. None means that a flag was not given."""

    home: "Path | None" = None
    database: str | None = None
    as_json: bool = False

    def settings(self, **flags: Any) -> "Settings":
        """Return the settings in effect with a command's flags. A flag of None was not given."""
        from resumes.settings import load_settings

        return load_settings(home=self.home, database=self.database, **flags)

    def store(self, *, create: bool = False, read_cache_bytes: int | None = None) -> "Store":
        """Open the store. With `create`, create a missing store and home, or upgrade an old store.

        Without `create`, an old store is rejected, because reading must not change it.
        `read_cache_bytes` is the cache size of each reading thread, or None for the store's
        default.
        """
        from resumes.store import open_store

        settings = self.settings()
        if create:
            make_home(settings.home)
        elif settings.database is None and not settings.home.is_dir():
            raise StoreUnavailable(
                f"No store yet: {settings.home} does not exist. Create one with `resumes up`, "
                "or choose another home with --home"
            )
        return open_store(settings.database_url, upgrade=create, read_cache_bytes=read_cache_bytes)

    def answer(self, document: Any, sentence: str) -> None:
        """Print the document with `--json`, otherwise the sentence. The caller escapes its data."""
        if self.as_json:
            put_json(document)
        else:
            say(sentence)

    def installation(self) -> "Installation":
        """Return the installation that these flags select, for health checks."""
        from resumes.health.findings import Installation

        return Installation(self.settings, self.store, self.command_line)

    def command_line(self, *words: str) -> str:
        """Return a command to run next, with the flags of this run but without any password."""
        flags: list[str] = []
        if self.home is not None:
            flags += ["--home", str(self.home)]
        if self.database is not None:
            from resumes.store.addresses import find_without_secrets

            shown = find_without_secrets(self.database)
            flags += ["--database", shown] if shown is not None else []
        return shell_line(program(), *flags, *words)


def program() -> str:
    """Return the command for this program: its name if the shell finds it, otherwise its path."""
    from pathlib import Path

    called = Path(sys.argv[0])
    if called.name != NAME:  # it is run as a module
        return NAME
    found = shutil.which(NAME)
    if found is not None and called.exists() and called.samefile(found):
        return NAME
    try:
        here = Path.cwd()
    except OSError:  # the folder was removed
        return NAME
    called = called.absolute()
    # A path relative to / would not help: services run in /, and users read their log elsewhere.
    if here != Path("/") and called.is_relative_to(here):
        return str(called.relative_to(here))
    return str(called)


pass_session = click.make_pass_decorator(Session)


def make_home(home: "Path") -> None:
    """Create the folder if needed, for its owner only, because it contains personal data."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot create the home {home}: {error.strerror}. Choose another with --home"
        ) from error


def choose_account(session: Session, store: "Store", name: str | None) -> "AccountInfo":
    """Return the account with this name, or by default the account in the settings or the only one.

    Raises NotFound, and InvalidArgument if there are several accounts to choose from.
    """
    from resumes.store import accounts

    name = name or session.settings().account
    if name is not None:
        return accounts.get_account(store, name)
    known = accounts.list_accounts(store)
    if len(known) == 1:
        return known[0]
    if not known:
        raise NotFound("No accounts yet. Create one with `resumes accounts create NAME`")
    names = ", ".join(account.name for account in known[:10])
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    raise InvalidArgument(f"Several accounts exist. Choose one with --account: {names}{more}")
