"""Writes and syncs of the store that fail, each in turn."""

import shutil
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.chaos import checker, stores, strace
from tests.chaos.campaign import Figures
from tests.chaos.creators import creators
from tests.chaos.strace import Injection

CALLS = "write,pwrite64,fsync,fdatasync"
MOST = 200
"""So many calls of each kind are made to fail, one after the other, each in a process of its own."""
IN_A_ROW = 20
"""Calls that fail one after the other, where more than one does."""
STRIDE = 8
AT_ONCE = 2
ENOUGH_WRITES = 24
"""Creates that write more than MOST times; each syncs once."""


def fail_each(
    template: Path, scratch: Path, error: str, nths: Iterable[int], times: int
) -> Counter[str]:
    """Of each number one process has lived through the fault, and its store was checked."""
    counts: Counter[str] = Counter()
    with creators() as children:
        for nth in nths:
            folder = scratch / f"{nth}"
            folder.mkdir(parents=True)
            database = Path(shutil.copy(template, folder))
            files = [database, folder / "resumes.db-wal", folder / "resumes.db-journal"]
            fault = Injection(CALLS, f"error={error}", nth, times, files)
            pid = children.start(folder, max(ENOUGH_WRITES, nth + 1))
            with strace.injected(pid, fault, folder / "calls"):
                told = children.finish(folder)
            found = checker.check(database, told.stored, told.unknown)
            counts += Counter(
                processes=1,
                failed_calls=strace.count_failures(folder / "calls"),
                acknowledged=len(told.stored),
                refused=len(told.refused),
                unknown=len(told.unknown),
                unopened=told.unopened,
                lost=found.lost,
                refused_and_stored=found.uninvited,
            )
            shutil.rmtree(folder)
    return counts


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize(
    ("stride", "times"), [(1, 1), (STRIDE, IN_A_ROW)], ids=["once", "20 in a row"]
)
@pytest.mark.chaos(
    5,
    fault="a write or a sync fails",
    promise="what is acknowledged is stored, what is refused is not, and what may be either is reported as unknown",
)
def test_whichever_call_fails_everything_that_was_said_is_true(
    tmp_path: Path, figures: Figures, stride: int, times: int, error: str
) -> None:
    """strace: the k-th write and the k-th sync of the store's files return EIO or ENOSPC, for each
    k from 1 to 200, in a process of its own that opens the store, creates and closes it, twice; and
    the same for 20 calls in a row, for each eighth k."""
    template = tmp_path / "resumes.db"
    stores.make_account(f"sqlite:///{template}")
    shares = [range(1 + share * stride, MOST + 1, AT_ONCE * stride) for share in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [
            pool.submit(fail_each, template, tmp_path / f"{number}", error, share, times)
            for number, share in enumerate(shares)
        ]
        counts = sum((run.result() for run in runs), Counter[str]())
    assert counts["processes"] == MOST // stride
    assert counts["failed_calls"] > counts["processes"]
    for name in ("processes", "failed_calls", "acknowledged", "refused", "unknown", "unopened"):
        figures[name] = counts[name]
    figures["lost"], figures["refused_and_stored"] = counts["lost"], counts["refused_and_stored"]
    # A call that fails is the matter of one create, and of none that comes later.
    assert counts["refused"] + counts["unknown"] <= counts["failed_calls"]
    assert counts["unopened"] == 0
    assert counts["lost"] == counts["refused_and_stored"] == 0
