"""The command: `python -m benchmarks.cluster`."""

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NoReturn

from tests.support.postgres import VERSIONS, programs

import benchmarks.cluster
from benchmarks.cluster import report
from benchmarks.cluster.checker import Finding
from benchmarks.cluster.cluster import Cluster
from benchmarks.cluster.drill import Drill
from benchmarks.cluster.events import EVENTS, Event
from benchmarks.cluster.pooler import Pooler, find_pgbouncer
from benchmarks.cluster.processes import CannotRun
from benchmarks.cluster.unprivileged import open_site

SITE: Final = Path(sys.prefix) / "patroni"
SHOWN: Final = 20
"""Findings that are printed in full."""


def main() -> None:
    """Ends with 1 when anything is wrong with what is stored or how that was answered, and 2 when the
    drill cannot be run."""
    options = _options()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        with _folder(keep=options.keep) as folder:
            sys.exit(_run(options, folder))
    except CannotRun as error:
        _say(str(error))
        sys.exit(2)


def _run(options: argparse.Namespace, folder: Path) -> int:
    pgbouncer = find_pgbouncer()
    events = [EVENTS[name] for name in options.events]
    if pgbouncer is None and any(event.is_pooled for event in events):
        _say("PgBouncer is missing (Debian: apt install pgbouncer): its events are skipped.")
        events = [event for event in events if not event.is_pooled]
    with contextlib.ExitStack() as stack:
        began_s = time.monotonic()
        pooler = Pooler(folder / "pgbouncer")
        cluster = Cluster(
            folder, programs(options.postgres), open_site(options.site, folder), pooler.follow
        )
        stack.callback(cluster.end)
        cluster.start()
        _say(f"Three nodes of PostgreSQL {options.postgres} after "
             f"{time.monotonic() - began_s:.1f} s, all below {folder}.")  # fmt: skip
        drill = Drill(cluster, pooler, pgbouncer, folder)
        stack.callback(drill.end)
        return _go_through(drill, events)


def _go_through(drill: Drill, events: Sequence[Event]) -> int:
    wrong = 0
    print(report.headings(), flush=True)
    for event in events:
        _say(f"{event.name} ...")
        row, findings = drill.run(event)
        print(report.line(row), flush=True)
        wrong += len(findings)
        _show(findings)
        for line in drill.errors():
            _say(f"  {line}")
    late = drill.check_all()
    print(f"\nAfter all of them: {len(late)} wrong.")
    _show(late)
    return 1 if wrong or late else 0


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings[:SHOWN]:
        _say(f"  {finding.kind}: {finding.what}")
    if len(findings) > SHOWN:
        _say(f"  and {len(findings) - SHOWN} more")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _end(number: int, _: object) -> NoReturn:
    # Whoever is impatient does not stop the ending.
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="resumes-cluster-"))
    # Whoever runs the nodes has a folder in it.
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        if keep:
            _say(f"Logs are in {folder}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=benchmarks.cluster.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--events", metavar="NAME,NAME", type=_names, default=[*EVENTS],
        help=f"of {', '.join(EVENTS)} [all]",
    )  # fmt: skip
    parser.add_argument("--postgres", choices=[*VERSIONS], default="18", help="its version [18]")
    parser.add_argument("--keep", action="store_true", help="leave the logs where they are")
    parser.add_argument(
        "--site", type=Path, default=SITE, metavar="DIR",
        help="where requirements/cluster.txt is installed [%(default)s]",
    )  # fmt: skip
    options = parser.parse_args()
    if not (options.site / "patroni").is_dir():
        parser.error(f"Patroni is not in {options.site}: run `make cluster`, which installs it")
    return options


def _names(value: str) -> list[str]:
    names = value.split(",")
    if unknown := [name for name in names if name not in EVENTS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(EVENTS)}")
    return names


if __name__ == "__main__":
    main()
