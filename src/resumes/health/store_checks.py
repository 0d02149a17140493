"""A store's file as others see it: who may open it, and whether all have the same one open."""

import os
import pwd
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import text

from resumes.clock import later
from resumes.health.findings import MAX_NAMED, Finding, Installation, notice
from resumes.output_files import SIDE_FILES
from resumes.store import api_keys
from resumes.store.accounts import AccountInfo
from resumes.store.api_keys import KeyState
from resumes.store.locks import find_holders
from resumes.store.plans import PlanInfo
from resumes.store.processes import name_processes
from resumes.store.store import Size, Store
from resumes.text import counted

OWN_RIGHTS: Final = stat.S_IRUSR | stat.S_IWUSR


def find_owner(path: Path) -> str | None:
    """The name of the user whose it is, or the number of one without a name; None: it cannot be seen."""
    try:
        return _name(path.stat().st_uid)
    except OSError:
        return None


def remedy_for(path: Path, user_id: int | None = None) -> str:
    """What gives this user, or `user_id`, the use of what is there.

    Whoever is not the owner is more likely the wrong user than the owner is; only a folder may have
    been made by somebody else for this user.
    """
    user_id = os.getuid() if user_id is None else user_id
    try:
        found = path.stat()
    except OSError:
        return f"Give user {_name(user_id)} the right to look into its folder"
    if found.st_uid != user_id and user_id != 0:
        way = f"Run this as its owner, {_name(found.st_uid)}"
        return f"{way}, or chown it to {_name(user_id)}" if stat.S_ISDIR(found.st_mode) else way
    if found.st_mode & OWN_RIGHTS != OWN_RIGHTS:
        return shlex.join(["chmod", "u+rwX", str(path)])
    return "See why its file system takes no writes: mount says how it is mounted"


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


PROCESSES: Final = Path("/proc")
"""Where the system shows what each process has open; elsewhere nothing is found."""


def find_refusal(path: Path) -> Finding | None:
    """The file of the store that this user may not read or write, if any."""
    for one in (path.with_name(path.name + ending) for ending in ("", *SIDE_FILES)):
        try:
            one.lstat()
        except FileNotFoundError:
            continue
        except OSError:
            return Finding("store", f"{one} cannot be seen by this user", remedy_for(path.parent))
        if not os.access(one, os.R_OK | os.W_OK):
            owner = find_owner(one) or "nobody known"
            return Finding("store", f"{one} of {owner} may not be opened", remedy_for(one))
    return None


def find_strays(path: Path, pids: Iterable[int] | None = None) -> Finding | None:
    """Who has a file open that had the path once, and is not the one that has it now.

    `pids` are those who use the store, by default all that the system knows of. Of a process of
    another user it says nothing.
    """
    if pids is None:
        pids = _find_users(path)
    strays = [pid for pid in pids if _has_another_open(pid, path)]
    if not strays:
        return None
    what = "removed" if _identity(path) is None else "replaced"
    return Finding(
        "store",
        f"{path} was {what} while process {name_processes(strays)} had it open, which reads and "
        "writes nothing any more",
        "End that process, put the file back or restore a backup, then start it again",
    )


def _find_users(path: Path) -> set[int]:
    holders = find_holders(path.with_name(f"{path.name}.lock"))
    if holders or _identity(path) is not None:
        return holders
    # The lock's file may have gone with the others.
    try:
        return {int(one.name) for one in PROCESSES.iterdir() if one.name.isdigit()}
    except OSError:
        return set()


def _has_another_open(pid: int, path: Path) -> bool:
    own = {f"{path}{name}{gone}" for name in ("", "-wal") for gone in ("", " (deleted)")}
    identity = _identity(path)
    has_store = False
    try:
        descriptors = list((PROCESSES / str(pid) / "fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        has_store |= _target(descriptor) in own
        if identity is not None and _identity(descriptor) == identity:
            return False
    return has_store


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


LARGE_LOG_BYTES = 256 * 1024 * 1024
"""Four times what the store lets a log keep: something has held it back for long."""


def check_size(size: Size) -> Finding:
    """Whether the log, which every reader looks through, is short enough."""
    if size.log_bytes is None:
        return Finding("size", in_bytes(size.data_bytes))
    text = f"{in_bytes(size.data_bytes)}, and {in_bytes(size.log_bytes)} of log"
    if size.log_bytes < LARGE_LOG_BYTES:
        return Finding("size", text)
    return notice(
        "size",
        text,
        "End programs that have been reading the database for long, such as a shell or a backup: "
        "the log is cut with the next writes",
    )


def in_bytes(count: int) -> str:
    """`512 B`, `1.5 KiB`, `12 MiB`, `1,024 GiB`: in the largest unit of which there is one."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        amount = count / 1_024**power
        if amount >= 1:
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{count} B"


READING = timedelta(minutes=10)
"""A new key may be on somebody's screen for so long before it is said to have been shown."""


def iter_key_findings(installation: Installation, store: Store) -> Iterator[Finding]:
    """The keys that were made and never shown; they are of no use to anybody."""
    active = [key for key in api_keys.list_keys(store) if key.state is KeyState.ACTIVE]
    made_before = later(store.clock(), -READING)
    unseen = [key for key in active if key.shown_at is None and key.created_at < made_before]
    for key in unseen[:MAX_NAMED]:
        command = installation.command_line("keys", "revoke", key.id)
        yield notice(
            "keys",
            f"{key.id} of {key.account} was never shown, so nobody can use it",
            f"Revoke it and make another: {command}",
            command,
            about=key.id,
        )
    if len(unseen) > MAX_NAMED:
        command = installation.command_line("keys", "list")
        more = counted(len(unseen) - MAX_NAMED, "further key")
        yield notice(
            "keys", f"{more} never shown", f"{command} shows all", command, about="further"
        )
    if not unseen:
        yield Finding("keys", f"{counted(len(active), 'key')} in use or ready to be")


def iter_quota_findings(
    installation: Installation, known: Sequence[AccountInfo], plans: Sequence[PlanInfo]
) -> Iterator[Finding]:
    """The accounts that can take nothing more, the first of them by name."""
    full = [account for account in known if account.free_places == 0]
    for account in full[:MAX_NAMED]:
        yield _full(installation, account, plans)
    if len(full) > MAX_NAMED:
        yield notice(
            "quota",
            f"{counted(len(full) - MAX_NAMED, 'further account')} can take no more resumes",
            f"{installation.command_line('accounts', 'list')} shows all",
            installation.command_line("accounts", "list"),
            about="further",
        )
    if not full:
        yield Finding("quota", "every account has room for more resumes")


def _full(installation: Installation, account: AccountInfo, plans: Sequence[PlanInfo]) -> Finding:
    # The smallest plan with room; where there is none, the account's own can be made larger.
    larger = next((plan.name for plan in plans if _has_room(plan, account)), None)
    if larger is not None:
        command = installation.command_line("accounts", "set-plan", account.name, larger)
    else:
        command = installation.command_line("plans", "list")
    way = "move it to a larger plan" if larger is not None else "make its plan larger"
    return notice(
        "quota",
        f"{account.name} holds {account.resume_count:,} of the {account.max_resumes or 0:,} "
        f"resumes of its plan {account.plan}, so new ones are refused and files held",
        f"Delete resumes, or {way}: {command}",
        command,
        about=account.name,
    )


def _has_room(plan: PlanInfo, account: AccountInfo) -> bool:
    return plan.max_resumes is None or plan.max_resumes > account.resume_count


CONNECTIONS_OF_A_WORKER: Final = 7
"""Of each API process at most: those that write, one that reads for requests, two that watch."""

CONNECTIONS_OF_OTHERS: Final = 20
"""For an importer with its helpers, a terminal UI, and a command now and then."""

# What a server does not know is null: others than PostgreSQL speak its protocol.
FACTS: Final = text(
    "SELECT current_setting('server_version', true), current_setting('synchronous_commit', true),"
    " current_setting('fsync', true), current_setting('full_page_writes', true),"
    " current_setting('max_connections', true),"
    " current_setting('superuser_reserved_connections', true),"
    " current_setting('reserved_connections', true),"
    " pg_is_in_recovery()"
)


class ServerFacts(NamedTuple):
    """What a server says of itself. None: it does not say."""

    version: str | None
    synchronous_commit: str | None
    fsync: str | None
    full_page_writes: str | None
    connections: str | None
    """How many it takes in all, those among them that it keeps for its own people."""

    reserved_for_superusers: str | None = None
    reserved: str | None = None
    is_standby: bool = False

    @property
    def room(self) -> int | None:
        """For how many connections of ours there is room."""
        if self.connections is None:
            return None
        kept = int(self.reserved_for_superusers or 0) + int(self.reserved or 0)
        return int(self.connections) - kept


def read_facts(store: Store) -> ServerFacts:
    """What the server of the store says of itself. Raises StoreError."""
    with store.read() as connection:
        return ServerFacts(*connection.execute(FACTS).one())


def iter_server_findings(facts: ServerFacts, *, workers: int) -> Iterator[Finding]:
    """What it is, and what of it wants a look. `workers` are API processes on this machine."""
    yield Finding("server", f"version {facts.version or 'unknown'}")
    if facts.is_standby:
        yield Finding(
            "server",
            "is a standby, which takes no writes",
            "Name the primary, or all servers with ?target_session_attrs=read-write behind them",
            about="standby",
        )
    if facts.synchronous_commit == "off":
        yield notice(
            "server",
            "synchronous_commit is off: when it crashes, resumes that were acknowledged are lost",
            "Set synchronous_commit to on",
            about="synchronous_commit",
        )
    for name, value in (("fsync", facts.fsync), ("full_page_writes", facts.full_page_writes)):
        if value == "off":
            yield notice(
                "server",
                f"{name} is off: when its machine crashes, the store is lost",
                f"Set {name} to on",
                about=name,
            )
    needed = workers * CONNECTIONS_OF_A_WORKER + CONNECTIONS_OF_OTHERS
    if facts.room is not None and facts.room < needed:
        yield notice(
            "server",
            f"takes {facts.room} connections, and this machine alone may want {needed}",
            f"Set max_connections to {needed + 20} or more for each machine that uses it, start "
            "fewer workers, or put a pooler between",
            about="max_connections",
        )
