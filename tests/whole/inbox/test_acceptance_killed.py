"""Writers that add, replace, rewrite and move files while importers are killed, and what must come of it.

Every version of a file is a resume with a name of its own, so the store tells which versions were
imported, and how often. It is asked after the writers have ended and all is drained:

- the last version of each file is stored: whoever was read before was not the last word;
- a version is stored once at most in an account (in two, if its file was moved between them while
  it was read);
- what lies in `_done` is stored: nothing was put away that nobody has read.
"""

import contextlib
import json
import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.inbox import oracle
from tests.support.inbox.havoc import Havoc
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document

ACCOUNTS: Final = ("ana", "bo")
SEED: Final = "IMPORTER_CAMPAIGN_SEED"
"""The environment variable that has the writers and the kills go as they went before."""

NAMES: Final = 12
"""How many files a writer has under way at a time: few, so that it meets them again."""


class Writer:
    """Writes to files of its own, at random, in its own thread."""

    def __init__(self, number: int, root: Path, spare: Path, seed: int) -> None:
        self._number = number
        self._root = root
        self._spare = spare
        self._chosen = random.Random(seed)
        self._ways = [self._put, self._put, self._rewrite, self._overwrite, self._move]
        self._tried = 0
        self._files = 0
        self._open: list[Path] = []
        self.last: dict[Path, str] = {}
        """By its path, the last version of each file that was written."""
        self.moved: set[str] = set()
        """Versions that lay in two accounts, one after the other."""
        self.versions = 0
        """How many versions it has written."""

    def write(self, over: threading.Event, pause_s: float) -> None:
        """Write until it is over, with a pause of about this between two versions."""
        while not over.wait(self._chosen.uniform(0, 2 * pause_s)):
            with contextlib.suppress(FileNotFoundError):  # it was put away just now
                self._chosen.choice(self._ways)()

    def _version(self) -> tuple[str, bytes]:
        self._tried += 1
        # Of one length, so that one can take the place of another unnoticed by its size.
        version = f"writer {self._number:02} version {self._tried:08}"
        return version, a_document(version)

    def _is_written(self, path: Path, version: str) -> None:
        self.versions += 1
        self.last[path] = version

    def _some_file(self) -> Path:
        if len(self._open) < NAMES or self._chosen.random() < 0.2:
            self._files += 1
            account = self._chosen.choice(ACCOUNTS)
            self._open.append(self._root / account / f"{self._number:02}-{self._files:06}.json")
            del self._open[:-NAMES]
        return self._chosen.choice(self._open)

    def _put(self) -> None:
        """Put a whole file in the place of what has the name, if anything does."""
        path = self._some_file()
        version, content = self._version()
        part = self._spare / path.name
        part.write_bytes(content)
        part.rename(path)
        self._is_written(path, version)

    def _rewrite(self) -> None:
        """Write a file anew where it lies, in two pieces."""
        path = self._some_file()
        version, content = self._version()
        with path.open("r+b", buffering=0) as file:
            file.truncate(0)
            file.write(content[: len(content) // 2])
            threading.Event().wait(self._chosen.uniform(0, 0.02))
            file.write(content[len(content) // 2 :])
        self._is_written(path, version)

    def _overwrite(self) -> None:
        """Write over a file in one piece of the same length, and give it back its time."""
        path = self._some_file()
        version, content = self._version()
        with path.open("r+b", buffering=0) as file:
            before = os.fstat(file.fileno())
            if before.st_size != len(content):
                return
            file.write(content)
            os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
        self._is_written(path, version)

    def _move(self) -> None:
        """Move a file to the other account's folder."""
        path = self._some_file()
        other = ACCOUNTS[1 - ACCOUNTS.index(path.parent.name)]
        target = self._root / other / path.name
        if target.exists():
            return
        path.rename(target)
        if version := self.last.pop(path, None):
            self.last[target] = version
            self.moved.add(version)
        self._open = [target if one == path else one for one in self._open]


class Writers:
    """Several writers, at work during the block."""

    def __init__(self, scene: Scene, chosen: random.Random, *, count: int, pause_s: float) -> None:
        for name in ACCOUNTS:
            scene.account(name)
        spare = scene.home.with_name(f"{scene.home.name}-spare")
        spare.mkdir()
        self._scene = scene
        self._over = threading.Event()
        self.each = [
            Writer(number, scene.root, spare, chosen.randrange(1, 10**9)) for number in range(count)
        ]
        self._threads = [
            threading.Thread(target=writer.write, args=(self._over, pause_s), name="writer")
            for writer in self.each
        ]

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def versions(self) -> int:
        """How many versions were written."""
        return sum(writer.versions for writer in self.each)

    def find_wrong(self) -> list[str]:
        """Compare what the store has, now that all is drained, with what was written."""
        stored = [Counter(self._scene.names(name)) for name in ACCOUNTS]
        everywhere = sum(stored, Counter[str]())
        moved = set[str]().union(*(writer.moved for writer in self.each))
        last = [version for writer in self.each for version in writer.last.values()]
        doubled = [
            version
            for version, count in everywhere.items()
            if count > (2 if version in moved else 1) or any(one[version] > 1 for one in stored)
        ]
        done = oracle.files_of(self._scene.root, "done")
        failed = oracle.files_of(self._scene.root, "failed")  # though every version was valid
        return [
            *(f"missing: {version}" for version in last if not everywhere[version]),
            *(f"doubled: {version}" for version in doubled),
            *(f"unread: {path}" for path in done if not everywhere[_version_in(path)]),
            *(f"failed: {path}" for path in failed),
        ]


def _version_in(path: Path) -> str:
    version: str = json.loads(path.read_bytes())["header"]["name"]
    return version


@pytest.mark.slow
@pytest.mark.parametrize("kills", [5, pytest.param(500, marks=pytest.mark.campaign(minutes=10))])
def test_no_version_is_lost_or_doubled_however_it_is_written_and_whoever_is_killed(
    tmp_path: Path, say: Callable[[str], None], kills: int
) -> None:
    seed = int(os.environ.get(SEED, "0")) or random.SystemRandom().randrange(1, 10**9)
    say(f"{SEED}={seed}")
    chosen = random.Random(seed)
    scene = Scene(tmp_path / "home")
    havoc = Havoc(scene, chosen)

    with Writers(scene, chosen, count=4, pause_s=0.01) as writers:
        for _ in range(kills):
            havoc.wreak()
    with scene.watched(settle_s=0.2):
        scene.wait_until(lambda: not scene.tally().left, limit_s=120)

    say(f"{writers.versions} versions, killed {dict(havoc.kills)}")
    assert writers.find_wrong() == []
    assert writers.versions > 100 * kills
