"""Importers that kill themselves, one per line of standard input.

A line is `HOME STEPS`: a child drains HOME/inbox into HOME/resumes.db and kills itself at that
announcement of a step, 0 for never. The answer is a line with the child's wait status. Children
are forked from a process that has imported everything and has neither thread nor store.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from importer.options import Options
from importer.rounds import Importer
from importer.running import Runner
from importer.steps import Step
from importer.telling import Remarks
from resumes.store import open_store


def drain(home: Path, kill_at: int) -> None:
    announced = 0

    def observe(step: Step) -> None:
        nonlocal announced
        announced += 1
        if announced == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        remarks = Remarks(lambda notice: None)
        importer = Importer(
            store,
            home / "inbox",
            Options(settle_s=0),
            on_file=lambda file: None,
            remarks=remarks,
            observe=observe,
        )
        Runner(importer, remarks, scan_s=2).drain(threading.Event())
        importer.close()


def main() -> None:
    for line in sys.stdin:
        home, kill_at = line.rsplit(maxsplit=1)
        child = os.fork()
        if child == 0:
            try:
                drain(Path(home), int(kill_at))
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
