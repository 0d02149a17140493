"""Watched folders: the store that owns each, where filed files are, and files of unknown accounts.

    ROOT/.importer/store    {"store": "<the store's id>", "address": "<its address, for people>"}

The first importer of a folder writes this, and the importers of other stores refuse the folder. An
importer with the wrong folder or store would import files into the wrong accounts, and would not
report those that wait there for accounts that its store has never had (docs/decisions/0013). The
file keeps its mtime when it is rewritten, which says since when the folder is watched.

    HOME/watched-folders    the folders that are watched from a home, a JSON string on each line
"""

import contextlib
import json
import os
import re
import secrets
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from resumes.errors import InvalidArgument, NotFound
from resumes.store.accounts import NAME
from resumes.store.import_history import FileRow, get_file
from resumes.store.import_ledger import FileOutcome, find_claim
from resumes.store.store import Store, read_fact
from resumes.text import counted, escaped
from resumes.watched_names import OWN, REPORT, find_filed_extension, is_hidden

MARK: Final = "store"
MAX_MARK_BYTES: Final = 4_096
MAX_NAMED: Final = 3
WATCHED: Final = "watched-folders"
UNKNOWN_ACCOUNTS: Final = "unknown accounts"
"""The key of an importer's finding on files that wait for accounts unknown to the store."""

DONE: Final = "_done"
FAILED: Final = "_failed"
DUPLICATE: Final = "_duplicate"
HELD: Final = "_held"
HELD_NAME: Final = re.compile(r"([0-9a-f]{24})-([0-9a-f]{16})-.+", re.DOTALL)
"""The names of held files: a claim's id, an account's id, the file's own name."""

FILED: Final = ".filed"
"""In each folder of failed files, a folder with an empty one for each file that was put there, named after
the end of the claim's id, as the file is. Only where a folder says that a file was in it, and it is not,
is the file gone: at the folder's path may be an empty mount point, or another disk (pitfalls I21)."""
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
    """Return the watched folder in the form that the ledger, importers and findings write and compare."""
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
    """Return the path of a filed file; None if it is on another machine or was moved.

    It is looked for in the folders that are watched from the home, since these may have been moved or
    copied, then in the folder that it was dropped into. A link or a pipe with its name is not the file.
    """
    if file.is_under_way:
        return None
    # An imported account may have another name than the account that the file was dropped for.
    names = file.account, *file.former_accounts.split(), file.name.partition("/")[0]
    accounts = [name for name in dict.fromkeys(names) if NAME.fullmatch(name)]
    folders = [
        root / outcome_folder(file.outcome, file.reason, account, file.claimed_at)
        for root in find_roots(file, inbox)
        for account in accounts
    ]
    return _find_of_claim(folders, file.claim_id)


def find_dismissed(claim_id: str, roots: Iterable[Path]) -> Path | None:
    """Return the path of a failed or held file that is no longer in the ledger; None if not found."""
    outcomes = [root / outcome for root in roots for outcome in (FAILED, HELD)]
    folders = [Path(path) for outcome in outcomes for path in list_folders(outcome)]
    return _find_of_claim(folders, claim_id)


def describe_root(file: FileRow) -> str | None:
    """Return the watched folder that the file was dropped into, for people; None if unknown."""
    if file.root is None or "\\" in file.root or os.path.isdir(file.root):  # noqa: PTH112
        return file.root
    return f"{file.root} (not on this machine)"


class SourceFile(NamedTuple):
    """The file that a resume was imported from. `file` is None if it was dismissed, `path` if it is not
    found."""

    claim_id: str
    file: FileRow | None
    path: Path | None

    @property
    def sentence(self) -> str:
        """Where the file is, for people."""
        if self.file is None:
            where = "no longer where it was put" if self.path is None else f"still at {self.path}"
            return f"Its file was dismissed. It is {where}."
        if self.path is None:
            folder = describe_root(self.file) or "its folder"
            return f"Imported from {self.file.name}, which is no longer in {folder}."
        return f"Imported from {self.file.name}, which is now {self.path}."


def find_source(store: Store, account_id: str, resume_id: str, inbox: Path) -> SourceFile | None:
    """Return the file that the resume was imported from; None if none is known. `inbox` is that of the
    home."""
    claim_id = find_claim(store, account_id, resume_id)
    if claim_id is None:
        return None
    try:
        file = get_file(store, claim_id, account_id=account_id)
    except NotFound:
        return SourceFile(claim_id, None, find_dismissed(claim_id, list_roots(inbox)))
    return SourceFile(claim_id, file, find_filed(file, inbox))


def list_roots(inbox: Path) -> list[Path]:
    """Return the inbox of a home, and the other folders that are watched from there."""
    return [inbox.absolute(), *list_watched(inbox.parent)]


def find_roots(file: FileRow, inbox: Path) -> list[Path]:
    """Return the folders on this machine that the file may be in."""
    # A name that was escaped in the ledger is no longer a path.
    known = [Path(file.root)] if file.root and "\\" not in file.root else []
    roots = dict.fromkeys([*list_roots(inbox), *known])
    # Path.is_dir raises in an unsearchable folder, and for a name that is too long for this machine.
    return [root for root in roots if os.path.isdir(root)]  # noqa: PTH112


def _find_of_claim(folders: Iterable[Path], claim_id: str) -> Path | None:
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:  # there is no such folder
            filed = [
                entry.path
                for entry in entries
                if _is_of_claim(entry.name, claim_id) and entry.is_file(follow_symlinks=False)
            ]
            if len(filed) == 1:
                return Path(filed[0])
    return None


def _is_of_claim(name: str, claim_id: str) -> bool:
    """Return whether this is the name of the claim's file, and not of its report or an editor's backup or
    lock."""
    extension = find_filed_extension(name)
    if extension is None or is_hidden(name) or name.endswith(REPORT):
        return False
    return name.startswith(claim_id) or name.lower().endswith(f"{claim_id[-8:]}{extension}")


class Owner(NamedTuple):
    """The store that owns a folder. `address` is its address when this was written."""

    store_id: str
    address: str


def owner_of(store: Store) -> Owner:
    """Return the store as an owner of folders. Raises StoreError."""
    with store.session() as session:
        return Owner(read_fact(session, "store_id"), store.label)


def find_owner(root: Path) -> Owner | None:
    """Return the folder's owner; None if it names none that can be parsed.

    Raises OSError, with the mark's path, if it cannot be read.
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
        # It may have been edited by any user who can write there.
        owner = json.loads(content)
        return Owner(str(owner["store"]), str(owner["address"]))
    return None


@contextlib.contextmanager
def opened(path: Path | str, flags: int, *, dir_fd: int | None = None) -> Iterator[int]:
    """Open a file or a folder for the block, and yield its descriptor. Raises OSError."""
    descriptor = os.open(path, flags, 0o600, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def find_other(root: Path, owner: Owner) -> Owner | None:
    """Return the folder's owner if it is a different one; None if it is this one or there is none.

    Raises OSError.
    """
    found = find_owner(root)
    return None if found is None or found.store_id == owner.store_id else found


def check_owner(root: Path, owner: Owner) -> None:
    """Raise InvalidArgument, with what to do, for the folder of another store. Raises OSError."""
    other = find_other(root, owner)
    if other is not None:
        raise InvalidArgument(f"{describe_other(root, other)}. {remedy_for_other(root)}")


def set_owner(root: Path, owner: Owner, *, adopts: bool = False) -> None:
    """Make the store the folder's owner; with `adopts`, also of a folder of another store.

    Raises InvalidArgument, with what to do, for the folder of another store; OSError.
    """
    if not adopts:
        check_owner(root, owner)
    if find_owner(root) != owner:
        _write(root, owner)


def replace_owner(root: Path, replaced_id: str, owner: Owner) -> None:
    """Make the store the owner of a folder that the replaced store owns. Raises OSError.

    Any other folder stays as it is.
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
            with contextlib.suppress(OSError):  # there is none yet
                times = os.stat(MARK, dir_fd=folder, follow_symlinks=False)
                os.utime(temporary, ns=(times.st_atime_ns, times.st_mtime_ns), dir_fd=folder)
            os.replace(temporary, MARK, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise


def note_watched(home: Path, root: Path) -> None:
    """Add the folder to those that are watched from this home. Raises OSError."""
    if root in list_watched(home):
        return
    with opened(home / WATCHED, _APPEND_FLAGS) as descriptor:
        os.write(descriptor, f"{json.dumps(str(root))}\n".encode("ascii"))


def list_watched(home: Path) -> list[Path]:
    """Return the folders that are or were watched from this home, in the order of their first watch."""
    roots: dict[Path, None] = {}
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(home / WATCHED, _READ_FLAGS), "rb") as file:
            lines = file.read().splitlines()
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):  # cut off, or edited by hand
                if isinstance(root := json.loads(line), str) and Path(root).is_absolute():
                    roots[Path(root)] = None
    return list(roots)


def describe_other(root: Path, other: Owner) -> str:
    """Return a sentence that the folder belongs to another store."""
    return f"{shown_root(root)} belongs to another store, known as {escaped(other.address)}"


def remedy_for_other(root: Path) -> str:
    """Return what to do about a folder that belongs to another store."""
    return (
        "Use that store with --home or --database, restore its backup, or take over the folder: "
        f"`resumes watch {shlex.quote(shown_root(root))} --adopt --once`"
    )


def count_held(root: Path) -> Mapping[tuple[str, str], int]:
    """Count the held files by their folder below ROOT and their account's id."""
    counts: Counter[tuple[str, str]] = Counter()
    for folder in list_folders(root / HELD):
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208  (names are all that is asked for)
                held = HELD_NAME.fullmatch(name)
                if held is not None and not name.endswith(REPORT):
                    counts[os.path.relpath(folder, root), held[2]] += 1
    return counts


def list_folders(folder: Path) -> list[str]:
    """Return the paths of the folders in it, links not followed; none if it cannot be listed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


class FailedFolder(NamedTuple):
    """The files that are, and that were filed, in a folder of failed files, by the ends of their ids."""

    present: frozenset[str]
    filed: frozenset[str]


def end_of(name: str) -> str:
    """Return the end of the name's stem, which is that of an id if the importer gave the name."""
    return name[: len(name) - len(find_filed_extension(name) or "")][-8:]


def read_failed(path: str | Path) -> FailedFolder:
    """Read a folder of failed files. Raises OSError."""
    with opened(path, FOLDER_FLAGS & ~os.O_NOFOLLOW) as folder:
        return _read_failed(folder)


def _read_failed(folder: int) -> FailedFolder:
    # Read both from the same descriptor, in case another disk is mounted there meanwhile.
    present = frozenset(filter(_END.fullmatch, map(end_of, os.listdir(folder))))
    filed = frozenset[str]()
    with contextlib.suppress(FileNotFoundError), opened(FILED, FOLDER_FLAGS, dir_fd=folder) as ends:
        filed = frozenset(filter(_END.fullmatch, os.listdir(ends)))  # noqa: PTH208
    return FailedFolder(present, filed)


def note_filed(path: str, claim_id: str) -> None:
    """Note in the folder that a file was filed there, if it is writable."""
    for _ in range(2):
        try:
            with opened(f"{path}/{FILED}", FOLDER_FLAGS) as ends:
                os.mkdir(claim_id[-8:], dir_fd=ends)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                os.mkdir(f"{path}/{FILED}")  # noqa: PTH102  (text, as names are)
            continue
        except OSError:
            pass
        return


def replace_filed(path: str, known: FailedFolder, filed: frozenset[str]) -> None:
    """Replace a folder's notes, unless they differ from `known` by now. Raises OSError."""
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
    """Return a sentence on the files that wait for unknown accounts; None if there are none."""
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
