"""Functions that name, read, lease, move and write untrusted files.

Nothing is read through a symbolic link, from a pipe, socket or device, or beyond a limit.
"""

import contextlib
import ctypes
import errno
import fcntl
import filecmp
import hashlib
import itertools
import os
import re
import signal
import stat
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from resumes.text import counted, replaced
from resumes.watched_names import find_extension, find_filed_extension, is_hidden_or_temporary

MAX_STEM_BYTES = 120
"""The longest stem that leaves room for a claim, an account and `.report.json` in 255 bytes."""
MAX_NAME_CHARS = 4_096
"""The maximum length of a path in a report or note; no file system allows a longer one."""
_NOT_PLAIN = re.compile(r"[^\w ._()+,@=-]")


def escaped(name: str) -> str:
    """Return the name as harmless text (see `resumes.text`) from which each byte can be recovered.

    `\\xNN` stands for an ASCII control character or a byte that is not UTF-8, `\\uNNNN` for another
    character that is not harmless, and `\\\\` for a backslash.
    """
    return replaced(name.replace("\\", "\\\\"), _byte_by_byte)


def escaped_before(name: str) -> str:
    """Escape a name that is already escaped but may have been edited since."""
    # The end is the most useful part. Each byte of a path may have been escaped as four characters.
    return replaced(name, _byte_by_byte)[-4 * MAX_NAME_CHARS :]


def _byte_by_byte(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def split_extension(name: str) -> tuple[str, str]:
    """Return the stem and the lower-case extension; an unsupported extension stays in the stem."""
    extension = find_filed_extension(name) or ""
    return name[: len(name) - len(extension)], extension


def safe_stem(name: str) -> str:
    """Return the stem of the last part of an escaped path, safe in any file system and shell. The
    stem has 1 to 120 bytes and never starts with a dash or dot. Letters and digits of all scripts
    are kept."""
    base = name.rpartition("/")[2]
    stem = split_extension(base)[0]
    kept = _NOT_PLAIN.sub("_", stem).encode()[:MAX_STEM_BYTES].decode(errors="ignore")
    return kept.lstrip("-._ ").rstrip(" .") or "file"


_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
JSON_SPACE = b" \t\r\n"

HEAD_BYTES = 64 * 1024
"""The number of bytes that the ledger stores of a file that was not imported."""


class Signature(NamedTuple):
    """The parts of a file's status that change when the file is replaced or written to, except
    through a memory map."""

    inode: int
    size_bytes: int
    mtime_ns: int


UNREAD = Signature(0, 0, 0)
"""A signature that no file has."""


class Known(NamedTuple):
    """A file's signature, and the number of seconds for which it has been the same."""

    signature: Signature
    for_s: float


def signature_of(status: os.stat_result) -> Signature:
    return Signature(status.st_ino, status.st_size, status.st_mtime_ns)


def find_signature(path: str | Path) -> Signature | None:
    """Return the signature of the file or link at the path, or None if nothing exists there."""
    try:
        return signature_of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


class Content(NamedTuple):
    """The bytes that were read. `is_steady` means that the file's signature did not change
    meanwhile. With `is_over_limit`, `body` contains only the beginning of the file."""

    body: bytes
    signature: Signature
    is_steady: bool = True
    is_over_limit: bool = False


class NotAFile(OSError):
    """Raised if the path leads to a link, pipe, socket, device or folder."""


def open_file(path: str | Path, *, dir_fd: int | None = None) -> int:
    """Open a regular file for reading. With `dir_fd`, the path is relative to that folder. Raises
    FileNotFoundError, NotAFile and OSError."""
    try:
        descriptor = os.open(path, _FLAGS, dir_fd=dir_fd)
    except OSError:
        # For a link or socket, raise NotAFile instead of the system's error.
        if stat.S_ISREG(os.lstat(path, dir_fd=dir_fd).st_mode):
            raise
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise NotAFile(f"Not a regular file: {escaped(os.fspath(path))}")


def read_file(descriptor: int, max_bytes: int) -> Content:
    before = signature_of(os.fstat(descriptor))
    if before.size_bytes > max_bytes:
        return Content(_read(descriptor, HEAD_BYTES), before, is_over_limit=True)
    body = _read(descriptor, before.size_bytes + 1)
    after = signature_of(os.fstat(descriptor))
    is_steady = before == after and len(body) == after.size_bytes
    return Content(body, after, is_steady, is_over_limit=len(body) > max_bytes)


def _read(descriptor: int, at_most: int) -> bytes:
    body = os.read(descriptor, at_most)
    while body and len(body) < at_most and (chunk := os.read(descriptor, at_most - len(body))):
        body += chunk
    return body


def load(path: str | Path, max_bytes: int) -> Content:
    """Read a regular file. Raises FileNotFoundError, NotAFile and OSError."""
    with os.fdopen(open_file(path), "rb") as file:
        return read_file(file.fileno(), max_bytes)


def find_body(path: str | Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file, or no bytes if it cannot be read or is over the limit."""
    with contextlib.suppress(OSError):
        content = load(path, max_bytes)
        return b"" if content.is_over_limit else content.body
    return b""


def find_head(path: str | Path, *, dir_fd: int | None = None) -> bytes:
    """Return the first 64 KiB of a file, or no bytes if the file cannot be read."""
    with contextlib.suppress(OSError), os.fdopen(open_file(path, dir_fd=dir_fd), "rb") as file:
        return file.read(HEAD_BYTES)
    return b""


MAX_NAMED_FOLDERS = 3
MAX_COUNTED = 1_000
"""The maximum number of names that are counted in a system folder, since it may be very large."""


@dataclass(slots=True)
class SystemFolders:
    """The skipped system folders (recycle bins, snapshots) and the number of files in each."""

    counts: list[str] = field(default_factory=list)
    """Descriptions of the first folders that contain files, such as `3 files in ana/#recycle`."""
    others: int = 0

    def add(self, path: str, shown: str) -> None:
        """Count the files that would be imported if they were not in a system folder."""
        if len(self.counts) == MAX_NAMED_FOLDERS:
            self.others += 1
        elif count := _count_files(path):
            self.counts.append(f"{count} in {shown}")

    def __str__(self) -> str:
        """Return `2 files in ana/#recycle, 1 file in ana/@eaDir and those in 5 more folders`."""
        others = [f"those in {counted(self.others, 'more folder')}"] if self.others else []
        *named, last = [*self.counts, *others]
        return f"{', '.join(named)} and {last}" if named else last


def _count_files(folder: str) -> str:
    """Return `3 files`, `3 files or more` if there are too many names, or nothing for no files."""
    waiting = [] if os.path.islink(folder) else [folder]  # noqa: PTH114  (text, as names are)
    names = files = 0
    while waiting and names < MAX_COUNTED:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in itertools.islice(entries, MAX_COUNTED - names):
                names += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not is_hidden_or_temporary(entry.name):
                    files += find_extension(entry.name) is not None
    if not files:
        return ""
    return counted(files, "file") + (" or more" if names == MAX_COUNTED else "")


def describe(error: OSError) -> str:
    """Return the system's message for the error."""
    return error.strerror or str(error)


def digest(body: bytes) -> bytes:
    """Return the SHA-256 of a JSON value without the white space around it."""
    return hashlib.sha256(body.strip(JSON_SPACE)).digest()


HASHED_BYTES = 256 * 1024 * 1024
"""The maximum size of a file that is hashed, since everything else would wait for a larger file."""


def find_sha256(path: str | Path, max_bytes: int = HASHED_BYTES) -> str | None:
    """Return the SHA-256 of a regular file in hexadecimal, or None if the file cannot be read or is
    larger than `max_bytes` or 256 MiB."""
    with contextlib.suppress(OSError), open(open_file(path), "rb") as file:
        if os.fstat(file.fileno()).st_size <= min(max_bytes, HASHED_BYTES):
            return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def find_writer(descriptor: int) -> bool | None:
    """Return whether a file that is open for reading is also open for writing (pitfalls I4).

    The system grants a read lease only if no process has the file open or mapped for writing. The
    lease is released immediately. Return None if the system cannot tell: on network file systems,
    and for files of another user unless this process runs as root.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    except AttributeError:  # this system has no leases
        return None
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def ignore_breaks() -> None:
    """Ignore SIGIO, which kills a process by default. The system sends it when a process opens a
    file for writing while this process holds a lease on it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGIO, signal.SIG_IGN)


class Folders:
    """Open folders below one ROOT, by path.

    A user who can write there may replace a folder with a link between the scan and the move; such
    links are never followed. A link at or above ROOT is followed: only the operator can create it.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._open: dict[tuple[str, int], int] = {}

    def open(self, path: str, mode: int = os.W_OK) -> int:
        """Return the folder's descriptor. Raises FileNotFoundError, also if a link leads to it, and
        OSError."""
        found = self._open.get((path, mode))
        if found is not None:
            return found
        above: int | None = None
        name, flags = path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if path != self._root:
            parent, _, name = path.rpartition("/")
            above, flags = self.open(parent, os.X_OK), flags | os.O_NOFOLLOW
        try:
            descriptor = os.open(name, flags, dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            message = "Its path contains a symbolic link"
            raise FileNotFoundError(errno.ENOENT, message, path) from None
        # Files of a read-only folder could be imported, but not moved away.
        if not os.access(".", mode, dir_fd=descriptor, effective_ids=True):
            os.close(descriptor)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        self._open[path, mode] = descriptor
        return descriptor

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_NOT_SUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})

_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def move(source: str | Path, target: str | Path, *, source_fd: int | None = None) -> None:
    """Move a file without replacing the target.

    With `source_fd`, the source is relative to that open folder. Raises FileExistsError if the
    target exists, FileNotFoundError if the source does not (another process moved it), and OSError.
    A plain rename would silently replace the target, and do nothing if both were links to one file.
    """
    if _renameat2 is not None:
        folder = _AT_FDCWD if source_fd is None else source_fd
        names = os.fsencode(source), _AT_FDCWD, os.fsencode(target)
        if _renameat2(folder, *names, _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in _NOT_SUPPORTED:
            raise OSError(code, os.strerror(code), str(source), None, str(target))
    # If the process is killed between the two steps, the file has two names, but is not lost.
    os.link(source, target, src_dir_fd=source_fd, follow_symlinks=False)
    os.unlink(source, dir_fd=source_fd)


def is_copy(source: str | Path, target: str | Path) -> bool:
    """Return whether the target is a file with the same content. Raises OSError."""
    return os.path.isfile(target) and filecmp.cmp(source, target, shallow=False)  # noqa: PTH113


def write_over(path: Path, content: bytes, *, temporary: Path) -> None:
    """Write the content to the disk atomically, replacing any earlier file. Raises OSError."""
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            temporary.unlink()
            raise
    temporary.replace(path)
