import errno
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest
import watchfiles

from importer.changes import Changes
from importer.listening import (
    Change,
    Ending,
    Listener,
    Source,
    find_limit,
    find_obstacle,
    native_events,
)
from tests.importer.builders import FakeMonotonic, drop, wait_until

ADDED, MODIFIED, DELETED = watchfiles.Change


def passing_on(*groups: Collection[Change]) -> Source:
    """A source that hears these and then nothing."""

    def source(
        paths: Sequence[str], *, is_recursive: bool, ending: Ending
    ) -> Iterator[Collection[Change]]:
        ending.is_set()
        yield from groups
        pause = threading.Event()
        while not ending.is_set():
            pause.wait(0.01)

    return source


@pytest.fixture
def listeners() -> Iterator[list[Listener]]:
    made: list[Listener] = []
    yield made
    for listener in made:
        listener.end(5)


def heard(
    root: Path, listeners: list[Listener], *group: Change, is_recursive: bool = True
) -> tuple[frozenset[str], Listener]:
    """The names that are marked for one group of changes, told apart from its beginning."""
    changes = Changes()
    gate = threading.Event()

    def source(
        paths: Sequence[str], *, is_recursive: bool, ending: Ending
    ) -> Iterator[Collection[Change]]:
        ending.is_set()
        assert changes.take().is_all
        yield group
        gate.set()
        yield from passing_on()(paths, is_recursive=is_recursive, ending=ending)

    paths = [str(root / "ana"), str(root / "bob")] if is_recursive else [str(root)]
    listeners.append(Listener(str(root), paths, changes, is_recursive=is_recursive, source=source))
    assert gate.wait(60)
    marked = changes.take()
    return marked.names | ({"*"} if marked.is_all else frozenset()), listeners[-1]


def test_an_event_marks_its_folder_alone(root: Path, listeners: list[Listener]) -> None:
    names, listener = heard(
        root,
        listeners,
        (ADDED, str(root / "ana" / "deep" / "1.json")),
        (MODIFIED, str(root / "ana" / "2.json")),
    )
    assert names == {"ana"}
    assert not listener.is_outdated


def test_what_is_removed_or_never_imported_marks_nothing(
    root: Path, listeners: list[Listener]
) -> None:
    names, listener = heard(
        root,
        listeners,
        (DELETED, str(root / "ana" / "1.json")),
        (ADDED, str(root / "ana" / ".1.json.x7Yz")),
        (MODIFIED, str(root / "ana" / "1.json.part")),
        (ADDED, str(root / "_done")),
        (ADDED, str(root / ".work")),
        (ADDED, str(root / ".hidden")),
    )
    assert names == frozenset()
    assert not listener.is_outdated


def test_in_root_a_folder_marks_itself_and_a_file_roots_own(
    root: Path, listeners: list[Listener]
) -> None:
    (root / "cid").mkdir()
    drop(root, "1.json")
    folder, _ = heard(root, listeners, (ADDED, str(root / "cid")), is_recursive=False)
    file, _ = heard(root, listeners, (ADDED, str(root / "1.json")), is_recursive=False)
    gone, _ = heard(root, listeners, (ADDED, str(root / "gone")), is_recursive=False)
    itself, _ = heard(root, listeners, (MODIFIED, str(root)), is_recursive=False)
    assert [set(names) for names in (folder, file, gone, itself)] == [{"cid"}, {""}, {""}, {""}]


@pytest.mark.parametrize("is_recursive", [True, False])
def test_a_watched_folder_that_is_removed_outdates_the_listener(
    root: Path, listeners: list[Listener], is_recursive: bool
) -> None:
    path = root / "ana" if is_recursive else root
    names, listener = heard(root, listeners, (DELETED, str(path)), is_recursive=is_recursive)
    assert listener.is_outdated
    assert names == {"*"}


def test_a_new_folder_with_a_link_in_it_outdates_the_listener(
    root: Path, listeners: list[Listener]
) -> None:
    (root / "ana" / "new").mkdir(parents=True)
    (root / "ana" / "new" / "link").symlink_to("/")
    names, listener = heard(root, listeners, (ADDED, str(root / "ana" / "new")))
    assert listener.is_outdated
    assert names == {"*", "ana"}


def test_a_listener_marks_everything_once_it_hears(
    root: Path, listeners: list[Listener], monotonic: FakeMonotonic
) -> None:
    changes = Changes()
    listener = Listener(
        str(root),
        [str(root)],
        changes,
        is_recursive=False,
        source=native_events,
        monotonic=monotonic,
    )
    listeners.append(listener)
    wait_until(lambda: listener.alive_since_s is not None)
    assert listener.alive_since_s == monotonic.now_s
    assert changes.take().is_all


@pytest.mark.parametrize("error", [OSError("limit"), RuntimeError("whatever"), None])
def test_a_source_that_ends_by_itself_has_failed_and_everything_is_marked(
    root: Path, listeners: list[Listener], error: Exception | None
) -> None:
    def source(
        paths: Sequence[str], *, is_recursive: bool, ending: Ending
    ) -> Iterator[Collection[Change]]:
        if error is not None:
            raise error
        yield from ()

    changes = Changes()
    listener = Listener(str(root), [str(root)], changes, is_recursive=False, source=source)
    listeners.append(listener)
    wait_until(lambda: listener.is_over)
    assert listener.error is error
    wait_until(lambda: changes.take().is_all)


def test_a_listener_that_was_ended_has_not_failed(root: Path) -> None:
    changes = Changes()
    listener = Listener(str(root), [str(root)], changes, is_recursive=False, source=native_events)
    listener.end(10)
    assert not listener.is_over
    assert listener.error is None


def test_native_events_come_from_below_when_recursive(
    root: Path, listeners: list[Listener]
) -> None:
    (root / "ana").mkdir()
    changes = Changes()
    listener = Listener(
        str(root), [str(root / "ana")], changes, is_recursive=True, source=native_events
    )
    listeners.append(listener)
    wait_until(lambda: listener.alive_since_s is not None)
    drop(root, "ana/deep/er/1.json")
    wait_until(lambda: "ana" in changes.take().names)


def test_native_events_of_folders_that_are_gone_fail_as_not_found(
    root: Path, listeners: list[Listener]
) -> None:
    listener = Listener(
        str(root), [str(root / "ana")], Changes(), is_recursive=True, source=native_events
    )
    listeners.append(listener)
    wait_until(lambda: listener.is_over)
    assert isinstance(listener.error, FileNotFoundError)


def test_links_anywhere_in_a_folder_are_an_obstacle(root: Path) -> None:
    drop(root, "ana/deep/1.json")
    assert find_obstacle(str(root / "ana")) is None
    (root / "ana" / "deep" / "2.json").symlink_to("1.json")
    assert find_obstacle(str(root / "ana")) == "it has links in it"


def test_a_folder_that_may_not_be_listed_is_an_obstacle(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests as root may list everything, so the system's answer is played.
    closed = root / "ana" / "closed"
    closed.mkdir(parents=True)
    scandir = os.scandir

    def guarded(path: str) -> "os._ScandirIterator[str]":
        if path == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert find_obstacle(str(root / "ana")) == "it has a folder in it that may not be listed"


def test_a_folder_that_is_gone_is_no_obstacle(root: Path) -> None:
    assert find_obstacle(str(root / "ana")) is None


def test_limits_are_known_by_number_and_by_watchfiles_text() -> None:
    watches, instances = "fs.inotify.max_user_watches", "fs.inotify.max_user_instances"
    assert find_limit(OSError(errno.ENOSPC, "No space left on device")) == watches
    assert find_limit(OSError("OS file watch limit reached. about …")) == watches
    assert find_limit(OSError(errno.EMFILE, "")) == instances
    assert find_limit(OSError(errno.ENFILE, "")) == instances
    assert find_limit(RuntimeError("… Too many open files (os error 24)")) == instances
    assert find_limit(FileNotFoundError(errno.ENOENT, "")) is None
    assert find_limit(None) is None
