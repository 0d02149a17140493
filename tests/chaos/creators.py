"""Processes that create resumes in a store and say what became of each.

The program reads lines of JSON, `[folder, creates]`. For each a child is forked, from a process that
has imported everything and has neither thread nor store. The child says its process id and waits
until somebody opens the FIFO `go` in the folder. Then it opens `resumes.db` there, creates so many
resumes, and closes it; and once more with AFTERWARDS resumes. When it has ended a last line has its
wait status.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from resumes.errors import OutcomeUnknown, ResumesError
from resumes.store import accounts, creation, open_store
from resumes.store.creation import Created
from tests.support.resumes import a_resume

ACCOUNT = "ada"
AFTERWARDS = 3
"""Resumes that are created when the store was closed and opened again."""


@dataclass(slots=True)
class Told:
    """What a child said. `unopened`: how often it could not even open the store."""

    stored: dict[str, str] = field(default_factory=dict)
    """Names by ids."""
    unknown: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    unopened: int = 0


def create_all(folder: Path, creates: int, say: Callable[..., None]) -> None:
    with (folder / "go").open():
        pass
    for part, count in (("at first", creates), ("afterwards", AFTERWARDS)):
        try:
            with open_store(f"sqlite:///{folder / 'resumes.db'}") as store:
                account_id = accounts.get_account(store, ACCOUNT).id
                for number in range(count):
                    name = f"{part} {number}"
                    try:
                        (outcome,) = creation.create(store, account_id, [a_resume(name)])
                    except OutcomeUnknown:
                        say("unknown", name)
                    except ResumesError:
                        say("refused", name)
                    else:
                        assert isinstance(outcome, Created)
                        say("stored", name, outcome.id)
        except ResumesError as error:
            say("unopened", error.message)


def main() -> None:
    for line in sys.stdin:
        folder, creates = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                _say("pid", os.getpid())
                create_all(Path(folder), creates, _say)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        _say("ended", status)


def _say(*words: str | int) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Creators:
    """The program, from outside."""

    def __init__(self, into: IO[str], out_of: IO[str]) -> None:
        self._into = into
        self._out_of = out_of

    def start(self, folder: Path, creates: int) -> int:
        """The process id of a child that waits for `finish`, and is the only one."""
        os.mkfifo(folder / "go")
        self._into.write(json.dumps([str(folder), creates]) + "\n")
        self._into.flush()
        word, pid = self._read()
        assert word == "pid"
        return int(pid)

    def finish(self, folder: Path) -> Told:
        """What the child said, which has ended by itself and without an error of its own."""
        with (folder / "go").open("w"):
            pass
        told = Told()
        while True:
            match self._read():
                case ["stored", name, resume_id]:
                    told.stored[resume_id] = name
                case ["unknown", name]:
                    told.unknown.add(name)
                case ["refused", name]:
                    told.refused.add(name)
                case ["unopened", _]:
                    told.unopened += 1
                case ["ended", status]:
                    assert status == "0"
                    return told

    def _read(self) -> list[str]:
        return [str(word) for word in json.loads(self._out_of.readline())]


@contextmanager
def creators() -> Iterator[Creators]:
    """The program is there during the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.creators"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Creators(process.stdin, process.stdout)
        process.stdin.close()


if __name__ == "__main__":
    main()
