"""Importers that die at one point of their work, one per line of standard input.

A line is `POINT NTH HOME`: a child drains HOME/inbox and kills itself when it comes to that point
for the NTH time; 0 for never. The answer is a line with the child's wait status. Children are
forked from a process that has imported everything and has neither thread nor store.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import sqlalchemy

from importer.failpoints import unobserved
from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options
from importer.service import Runner
from resumes.store import open_store
from tests.support.inbox.builders import Moment, during


class Point(StrEnum):
    """Where an importer dies."""

    NOTED = "before a file is opened"
    READ = "once a batch is read"
    COMMITTING = "inside the transaction"
    COMMITTED = "after the commit, before a move"
    REPORTING = "while a report is written"
    REPORTED = "after a report, before its file moves"
    MOVED = "once a file is moved"


MOMENTS = {
    Point.NOTED: Moment.NOTED,
    Point.READ: Moment.READ,
    Point.COMMITTED: Moment.COMMITTED,
    Point.REPORTED: Moment.REPORTED,
    Point.MOVED: Moment.MOVED,
}


def deadly(nth: int) -> Callable[[], None]:
    """What kills this process when it is called for the `nth` time."""
    left = nth

    def call() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return call


def drain(home: Path, point: Point, nth: int) -> None:
    come = deadly(nth)
    if point is Point.COMMITTING:
        sqlalchemy.event.listen(sqlalchemy.Engine, "commit", lambda connection: come())
    if point is Point.REPORTING:
        # Everything of the report is in a temporary file, which has not got its name yet.
        sys.addaudithook(lambda event, values: come() if _names_report(event, values) else None)
    moment = MOMENTS.get(point)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        importer = Importer(
            store,
            home / "inbox",
            Options(settle_s=0),
            on_file=lambda file: None,
            notices=Notices(lambda notice: None),
            observe=during(moment, come) if moment else unobserved,
        )
        Runner(importer).drain(threading.Event())
        importer.close()


def _names_report(event: str, values: tuple[object, ...]) -> bool:
    return event == "os.rename" and str(values[1]).endswith(".report.json")


def main() -> None:
    for line in sys.stdin:
        point, nth, home = line.rstrip("\n").split(" ", 2)
        child = os.fork()
        if child == 0:
            try:
                drain(Path(home), Point[point], int(nth))
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
