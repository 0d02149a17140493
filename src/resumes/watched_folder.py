"""Manage watched folders: the store that owns each, its filed files, and files of unknown accounts.

    ROOT/.importer/store    {"store": "<the store's ID>", "address": "<its address, for people>"}

The first importer of a folder writes this file, and importers of other stores reject the folder. An
importer with the wrong folder or store would import files into the wrong accounts, and would not
report files that wait there for accounts that its store has never had (docs/decisions/0013). When
the file is rewritten, it keeps its mtime, which records since when the folder has been watched.

    HOME/watched-folders    the folders that are watched from a home, a JSON string on each line
"""

import contextlib
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from resumes.errors import InvalidArgument, NotFound
from resumes.store.accounts import NAME
from resumes.store.import_history import FileRow, get_file
from resumes.store.import_ledger import FileOutcome, find_claim
from resumes.store.store import Store, read_fact
from resumes.text import counted, escaped, shell_line
from resumes.watched_names import OWN, REPORT, find_filed_extension, is_hidden

MARK: Final = "store"
MAX_MARK_BYTES: Final = 4_096
MAX_NAMED: Final = 3
WATCHED: Final = "watched-folders"
UNKNOWN_ACCOUNTS: Final = "unknown accounts"
"""The key of an importer's finding about files that wait for accounts unknown to the store."""

DONE: Final = "_done"
FAILED: Final = "_failed"
DUPLICATE: Final = "_duplicate"
HELD: Final = "_held"
HELD_NAME: Final = re.compile(r"([0-9a-f]{24})-([0-9a-f]{16})-.+", re.DOTALL)
"""The name of a held file: the claim ID, the account's ID and the file's own name."""

FILED: Final = ".filed"
"""A folder in each folder of failed files. For each file that was put there, it contains an empty
folder, which is named after the end of the claim ID, like the file. A file is gone only if such a
folder exists and the file does not: the path could also lead to an empty mount point or to another
disk (pitfalls I21)."""
_END: Final = re.compile(r"[0-9a-f]{8}")

UNKNOWN_REMEDY: Final = (
    "Restore a backup that has the account, or move the files into another account's folder"
)

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_APPEND_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)


def shown_root(root: Path | str) -> str:
    """Return the watched folder in the form that the ledger, importers and findings contain."""
    return escaped(str(root))


def outcome_folder(outcome: FileOutcome, reason: str | None, account: str, claimed_at: str) -> str:
    """Return the folder below ROOT for files of this outcome (docs/importing.md, Where files go)."""
    match outcome:
        case FileOutcome.DONE:
            return f"{DONE}/{claimed_at[:10]}/{account}"
        case FileOutcome.DUPLICATE:
            return DUPLICATE
        case FileOutcome.HELD:
            return f"{HELD}/{account}"
        case FileOutcome.FAILED:
            return f"{FAILED}/{reason}"


def find_filed(file: FileRow, inbox: Path) -> Path | None:
    """Return the path of a filed file, or None if it is on another machine or was moved.

    Search the folders that are watched from the home, since folders may have been moved or copied,
    then the folder that the file was dropped into. A link or pipe with its name is ignored.
    """
    if file.is_under_way:
        return None
    # An imported account can have a different name from the account that the file was dropped for.
    names = file.account, *file.former_accounts.split(), file.name.partition("/")[0]
    accounts = [name for name in dict.fromkeys(names) if NAME.fullmatch(name)]
    folders = [
        root / outcome_folder(file.outcome, file.reason, account, file.claimed_at)
        for root in find_roots(file, inbox)
        for account in accounts
    ]
    return _find_of_claim(folders, file.claim_id)


def find_dismissed(claim_id: str, roots: Iterable[Path]) -> Path | None:
    """Return the path of a failed or held file that is no longer in the ledger, or None."""
    outcomes = [root / outcome for root in roots for outcome in (FAILED, HELD)]
    folders = [Path(path) for outcome in outcomes for path in list_folders(outcome)]
    return _find_of_claim(folders, claim_id)


def describe_root(file: FileRow) -> str | None:
    """Describe the watched folder that the file was dropped into. Return None if it is unknown."""
    if file.root is None or "\\" in file.root or os.path.isdir(file.root):  # noqa: PTH112
        return file.root
    return f"{file.root} (not on this machine)"


class SourceFile(NamedTuple):
    """The file that a resume was imported from.

    `file` is None if it was dismissed, and `path` is None if the file cannot be found."""

    claim_id: str
    file: FileRow | None
    path: Path | None

    @property
    def sentence(self) -> str:
        """A sentence that explains where the file is."""
        if self.file is None:
            where = "no longer where it was put" if self.path is None else f"still at {self.path}"
            return f"Its file was dismissed. It is {where}."
        if self.path is None:
            folder = describe_root(self.file) or "its folder"
            return f"Imported from {self.file.name}, which is no longer in {folder}."
        return f"Imported from {self.file.name}, which is now {self.path}."


def find_source(store: Store, account_id: str, resume_id: str, inbox: Path) -> SourceFile | None:
    """Return the file that the resume was imported from, or None. `inbox` is the home's inbox."""
    claim_id = find_claim(store, account_id, resume_id)
    if claim_id is None:
        return None
    try:
        file = get_file(store, claim_id, account_id=account_id)
    except NotFound:
        return SourceFile(claim_id, None, find_dismissed(claim_id, list_roots(inbox)))
    return SourceFile(claim_id, file, find_filed(file, inbox))


def list_roots(inbox: Path) -> list[Path]:
    """Return the inbox of a home, and the other folders that are watched from the home."""
    return [inbox.absolute(), *list_watched(inbox.parent)]


def find_roots(file: FileRow, inbox: Path) -> list[Path]:
    """Return the watched folders on this machine that may contain the file."""
    # A folder whose name is escaped in the ledger cannot be used as a path.
    known = [Path(file.root)] if file.root and "\\" not in file.root else []
    roots = dict.fromkeys([*list_roots(inbox), *known])
    # Path.is_dir raises in a folder that cannot be searched, or if a name is too long here.
    return [root for root in roots if os.path.isdir(root)]  # noqa: PTH112


def _find_of_claim(folders: Iterable[Path], claim_id: str) -> Path | None:
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:  # may not exist
            filed = [
                entry.path
                for entry in entries
                if _is_of_claim(entry.name, claim_id) and entry.is_file(follow_symlinks=False)
            ]
            if len(filed) == 1:
                return Path(filed[0])
    return None


def _is_of_claim(name: str, claim_id: str) -> bool:
    """Return whether this is the name of the claim's file, not of a report or an editor's file."""
    extension = find_filed_extension(name)
    if extension is None or is_hidden(name) or name.endswith(REPORT):
        return False
    return name.startswith(claim_id) or name.lower().endswith(f"{claim_id[-8:]}{extension}")


class Owner(NamedTuple):
    """The store that owns a folder. `address` is its address at the time of writing."""

    store_id: str
    address: str


def owner_of(store: Store) -> Owner:
    """Return the store as the owner of folders. Raises StoreError."""
    with store.session() as session:
        return Owner(read_fact(session, "store_id"), store.label)


def find_owner(root: Path) -> Owner | None:
    """Return the folder's owner, or None if the folder has no valid mark.

    Raises OSError with the mark's path if the mark cannot be read.
    """
    try:
        with (
            opened(root / OWN, FOLDER_FLAGS) as folder,
            opened(MARK, _READ_FLAGS, dir_fd=folder) as mark,
        ):
            content = os.read(mark, MAX_MARK_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(root / OWN / MARK)) from error
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        # Any user who can write to the folder may have edited the mark.
        owner = json.loads(content)
        return Owner(str(owner["store"]), str(owner["address"]))
    return None


@contextlib.contextmanager
def opened(path: Path | str, flags: int, *, dir_fd: int | None = None) -> Iterator[int]:
    """Open a file or folder for the block, and yield its descriptor. Raises OSError."""
    descriptor = os.open(path, flags, 0o600, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def find_other(root: Path, owner: Owner) -> Owner | None:
    """Return the folder's owner if it is another store, otherwise None. Raises OSError."""
    found = find_owner(root)
    return None if found is None or found.store_id == owner.store_id else found


def check_owner(root: Path, owner: Owner) -> None:
    """Raise InvalidArgument with a remedy if another store owns the folder. Also raises OSError."""
    other = find_other(root, owner)
    if other is not None:
        raise InvalidArgument(f"{describe_other(root, other)}. {remedy_for_other(root)}")


def set_owner(root: Path, owner: Owner, *, adopts: bool = False) -> None:
    """Make the store the folder's owner; with `adopts`, even if another store owns the folder.

    Otherwise, raises InvalidArgument with a remedy if another store owns it. Also raises OSError.
    """
    if not adopts:
        check_owner(root, owner)
    if find_owner(root) != owner:
        _write(root, owner)


def replace_owner(root: Path, replaced_id: str, owner: Owner) -> None:
    """Make the store the owner of a folder that the replaced store owns. Raises OSError.

    The owner of any other folder is not changed.
    """
    found = find_owner(root)
    if found is not None and found.store_id == replaced_id:
        _write(root, owner)


def _write(root: Path, owner: Owner) -> None:
    with contextlib.suppress(FileExistsError):
        (root / OWN).mkdir()
    content = json.dumps({"store": owner.store_id, "address": owner.address}) + "\n"
    temporary = f"{MARK}.{secrets.token_hex(4)}"
    with opened(root / OWN, FOLDER_FLAGS) as folder:
        descriptor = os.open(temporary, _WRITE_FLAGS, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
            with contextlib.suppress(OSError):  # there may be no mark yet
                times = os.stat(MARK, dir_fd=folder, follow_symlinks=False)
                os.utime(temporary, ns=(times.st_atime_ns, times.st_mtime_ns), dir_fd=folder)
            os.replace(temporary, MARK, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise


def note_watched(home: Path, root: Path) -> None:
    """Add the folder to the list of folders that are watched from this home. Raises OSError."""
    if root in list_watched(home):
        return
    with opened(home / WATCHED, _APPEND_FLAGS) as descriptor:
        os.write(descriptor, f"{json.dumps(str(root))}\n".encode("ascii"))


def list_watched(home: Path) -> list[Path]:
    """Return the folders that are or were watched from this home, the first one first."""
    roots: dict[Path, None] = {}
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(home / WATCHED, _READ_FLAGS), "rb") as file:
            lines = file.read().splitlines()
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):  # an incomplete or edited line
                if isinstance(root := json.loads(line), str) and Path(root).is_absolute():
                    roots[Path(root)] = None
    return list(roots)


def describe_other(root: Path, other: Owner) -> str:
    """Return a sentence that names the other store that owns the folder."""
    return f"{shown_root(root)} belongs to another store, known as {escaped(other.address)}"


def remedy_for_other(root: Path) -> str:
    """Return what to do about a folder that belongs to another store."""
    return (
        "Use that store with --home or --database, restore its backup, or take over the folder: "
        f"`resumes watch {shell_line(str(root))} --adopt --once`"
    )


def count_held(root: Path) -> Mapping[tuple[str, str], int]:
    """Count the held files by their folder below ROOT and their account's ID."""
    counts: Counter[tuple[str, str]] = Counter()
    for folder in list_folders(root / HELD):
        with contextlib.suppress(OSError):
            for _, account_id, _ in iter_held(folder):
                counts[os.path.relpath(folder, root), account_id] += 1
    return counts


def iter_held(folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield the claim, the account and the path of each held file in the folder. Raises OSError."""
    for name in os.listdir(folder):  # noqa: PTH208  (names are all that is asked for)
        held = HELD_NAME.fullmatch(name)
        if held and find_filed_extension(name) and not name.endswith(REPORT):
            yield held[1], held[2], f"{folder}/{name}"


def list_folders(folder: Path) -> list[str]:
    """Return the paths of the folders in a folder, except links; none if it cannot be listed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


class FailedFolder(NamedTuple):
    """The files that are, and the files that were filed, in a folder of failed files.

    Each set contains the ends of claim IDs."""

    present: frozenset[str]
    filed: frozenset[str]


def end_of(name: str) -> str:
    """Return the end of the name's stem, the end of a claim ID if the importer gave the name."""
    return name[: len(name) - len(find_filed_extension(name) or "")][-8:]


def read_failed(path: str | Path) -> FailedFolder:
    """Read a folder of failed files. Raises OSError."""
    with opened(path, FOLDER_FLAGS & ~os.O_NOFOLLOW) as folder:
        return _read_failed(folder)


def _read_failed(folder: int) -> FailedFolder:
    # Read both with the same descriptor, in case another disk is mounted there in the meantime.
    present = frozenset(filter(_END.fullmatch, map(end_of, os.listdir(folder))))
    filed = frozenset[str]()
    with contextlib.suppress(FileNotFoundError), opened(FILED, FOLDER_FLAGS, dir_fd=folder) as ends:
        filed = frozenset(filter(_END.fullmatch, os.listdir(ends)))  # noqa: PTH208
    return FailedFolder(present, filed)


def note_filed(path: str, claim_id: str) -> None:
    """Record in the folder that a file was filed there, if the folder is writable."""
    for _ in range(2):
        try:
            with opened(f"{path}/{FILED}", FOLDER_FLAGS) as ends:
                os.mkdir(claim_id[-8:], dir_fd=ends)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                os.mkdir(f"{path}/{FILED}")  # noqa: PTH102  (the path is a string)
            continue
        except OSError:
            pass
        return


def replace_filed(path: str, known: FailedFolder, filed: frozenset[str]) -> None:
    """Replace a folder's records, unless they no longer equal `known`. Raises OSError."""
    if filed == known.filed:
        return
    with opened(path, FOLDER_FLAGS & ~os.O_NOFOLLOW) as folder:
        if _read_failed(folder) != known:
            return
        with contextlib.suppress(FileExistsError):
            os.mkdir(FILED, dir_fd=folder)
        with opened(FILED, FOLDER_FLAGS, dir_fd=folder) as ends:
            for end in filed - known.filed:
                os.mkdir(end, dir_fd=ends)
            for end in known.filed - filed:
                os.rmdir(end, dir_fd=ends)


def describe_unknown(
    waiting: Mapping[tuple[str, str], int], unknown: Collection[str]
) -> str | None:
    """Return a sentence about files that wait for unknown accounts, or None if none do."""
    counts: Counter[str] = Counter()
    for (folder, account_id), files in waiting.items():
        if account_id in unknown:
            counts[folder] += files
    if not counts:
        return None
    count = sum(counts.values())
    named = ", ".join(escaped(folder) for folder in sorted(counts)[:MAX_NAMED])
    more = (
        f" and {counted(len(counts) - MAX_NAMED, 'more folder')}" if len(counts) > MAX_NAMED else ""
    )
    wait = "is waiting for an account" if count == 1 else "are waiting for accounts"
    return f"{counted(count, 'file')} in {named}{more} {wait} that this store does not have"
