"""Hearing of changes soon, and knowing whether that works.

Events only say "look": some are lost, and scans find everything. Two watchers hear them: one on
ROOT alone, for its own files and the folders that appear, and one on all account folders with
what is below. So our own moves into `_done` and its like are not heard; over the whole of ROOT
they would be most of what is. Where events do not come there is no watcher, and scans do alone.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from importer import listening
from importer.changes import Changes
from importer.health import SEVERITY, Health, HealthState
from importer.keeping import Identity, Keeper, Trouble
from importer.listening import Listener
from importer.mounts import polling_reason
from importer.names import escaped

SHOWN = 3
"""How many folders a sentence names."""


class Watcher:
    """Marks what changes below ROOT, as far as the system says so. For one thread."""

    def __init__(
        self,
        root: Path,
        changes: Changes,
        health: Health,
        *,
        poll: bool,
        source: listening.Source,
        why_polled: Callable[[Path], str | None],
        monotonic: Callable[[], float],
    ) -> None:
        self._root = root
        self._changes = changes
        self._health = health
        self._poll = poll
        self._source = source
        self._why_polled = why_polled
        self._monotonic = monotonic
        self._own = Keeper(self._listen_to_root, self._find_root_obstacle, monotonic=monotonic)
        self._inboxes = Keeper(
            self._listen_to_inboxes, self._find_inbox_obstacle, monotonic=monotonic
        )

    @property
    def is_polling(self) -> bool:
        """Whether some part of the inbox is left to scans for a reason that may last."""
        return bool(self._own.unheard or self._inboxes.unheard) or any(
            trouble.state is HealthState.POLLING for trouble in self._troubles()
        )

    def follow(self, folders: Iterable[str]) -> None:
        """These are the account folders now, by name; they and ROOT are watched.

        To be called after each look through ROOT, also after one that failed, then without
        names. Watchers that fail, or whose folders were replaced, are made anew only here. When
        a new one hears, everything is marked.
        """
        root = os.path.realpath(self._root)
        try:
            identity = _get_identity(root)
        except OSError as error:
            self._health.degraded("root", self._unreachable(error))
            self._own.keep({})
            self._inboxes.keep({})
        else:
            self._health.ok("root")
            self._own.keep({root: identity})
            self._inboxes.keep({} if self._own.unheard else _find_identities(root, folders))
        self._say("watcher", max(self._troubles(), key=_severity, default=None))
        self._say("polling", self._find_polled())

    def end(self) -> None:
        """Nothing is marked any more. Takes a second at most."""
        for keeper in (self._own, self._inboxes):
            keeper.stop()
        for keeper in (self._own, self._inboxes):
            keeper.end()

    def _listen_to_root(self, paths: Sequence[str]) -> Listener:
        return self._listen(paths[0], paths, is_recursive=False)

    def _listen_to_inboxes(self, paths: Sequence[str]) -> Listener:
        return self._listen(os.path.dirname(paths[0]), paths, is_recursive=True)  # noqa: PTH120  (text, as names are)

    def _listen(self, root: str, paths: Sequence[str], *, is_recursive: bool) -> Listener:
        return Listener(
            root,
            paths,
            self._changes,
            is_recursive=is_recursive,
            source=self._source,
            monotonic=self._monotonic,
        )

    def _find_root_obstacle(self, root: str) -> str | None:
        if self._poll:
            return "polling was asked for"
        return _find_name_obstacle(root) or self._why_polled(Path(root))

    def _find_inbox_obstacle(self, folder: str) -> str | None:
        return (
            _find_name_obstacle(folder)
            or (self._why_polled(Path(folder)) if os.path.ismount(folder) else None)
            or listening.find_obstacle(folder)
        )

    def _troubles(self) -> list[Trouble]:
        return [keeper.trouble for keeper in (self._own, self._inboxes) if keeper.trouble]

    def _find_polled(self) -> Trouble | None:
        unheard = {**self._own.unheard, **self._inboxes.unheard}
        if not unheard:
            return None
        shown = [f'"{escaped(path)}" ({why})' for path, why in sorted(unheard.items())[:SHOWN]]
        more = len(unheard) - len(shown)
        return Trouble(
            HealthState.POLLING,
            f"New files are found by scans alone, a little later, in {', '.join(shown)}"
            + (f" and {more} more folders" if more else ""),
        )

    def _say(self, key: str, trouble: Trouble | None) -> None:
        if trouble is None:
            self._health.ok(key)
        elif trouble.state is HealthState.POLLING:
            self._health.polling(key, trouble.sentence)
        else:
            self._health.degraded(key, trouble.sentence)

    def _unreachable(self, error: OSError) -> str:
        return (
            f'The watched folder "{escaped(str(self._root))}" cannot be reached '
            f"({error.strerror}). Nothing is imported until it is there again"
        )


@contextlib.contextmanager
def watching(
    root: Path,
    changes: Changes,
    health: Health,
    *,
    poll: bool = False,
    source: listening.Source = listening.native_events,
    why_polled: Callable[[Path], str | None] = polling_reason,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Watcher]:
    """During the block what changes is marked soon; ROOT itself from the beginning.

    With `poll` nothing is, and the health says so. `why_polled` says of a folder why its file
    system announces no changes, or None.
    """
    watcher = Watcher(
        root,
        changes,
        health,
        poll=poll,
        source=source,
        why_polled=why_polled,
        monotonic=monotonic,
    )
    try:
        watcher.follow(())
        yield watcher
    finally:
        watcher.end()


def _severity(trouble: Trouble) -> int:
    return SEVERITY[trouble.state]


def _get_identity(folder: str) -> Identity:
    """Raises OSError for what is no folder."""
    found = os.stat(folder, follow_symlinks=False)  # noqa: PTH116  (text, as names are)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return found.st_dev, found.st_ino


def _find_identities(root: str, names: Iterable[str]) -> Mapping[str, Identity]:
    """Of the folders that are there, by path."""
    found: dict[str, Identity] = {}
    for name in names:
        path = f"{root}/{name}"
        with contextlib.suppress(OSError):
            found[path] = _get_identity(path)
    return found


def _find_name_obstacle(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return None
