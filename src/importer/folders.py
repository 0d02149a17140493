"""The folders that files are read in and moved out of, held open while a batch is under way."""

import errno
import os

from importer.claims import Claim

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folders:
    """Open folders by their path below ROOT.

    Files wait between the look and the move; nobody who may write there can lead us elsewhere
    meanwhile by putting a link in a folder's place.
    """

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def open(self, claim: Claim, root: str) -> int:
        """The folder that the claim's file lies in. Raises FileNotFoundError, too for one that a
        link leads to, and OSError."""
        below = claim.source.rpartition("/")[0]
        descriptor = self._open.get(below)
        if descriptor is None:
            descriptor = self._open[below] = _open(f"{root}/{below}" if below else root)
        return descriptor

    def close(self) -> None:
        """No folder is open any more."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


def _open(path: str) -> int:
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _missing(path) from None
        raise
    if _real_path(descriptor) not in (path, None):
        os.close(descriptor)
        raise _missing(path)
    if not os.access(
        path, os.W_OK, effective_ids=True
    ):  # its files could be imported, and not be moved away
        os.close(descriptor)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return descriptor


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "A link lies in its way", path)


def _real_path(descriptor: int) -> str | None:
    """Where an open folder really lies; None where the system does not say."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except OSError:
        return None
