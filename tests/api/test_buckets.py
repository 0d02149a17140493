import fcntl
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server.rate_limits import BOOT_ID, WORDS, Buckets, find_boot

NOW_NS = 1_000_000

A_HOLDER = """
import sys, time
from pathlib import Path
from server.rate_limits import Buckets

table = Buckets(Path(sys.argv[1]), slots=16, boot=7)
table.lock()
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "rate-limits"


@pytest.fixture
def a_table(path: Path) -> Iterator[Callable[..., Buckets]]:
    """Opens tables over one file: `a_table(slots=16)`."""
    opened: list[Buckets] = []

    def open_table(*, slots: int = 16, boot: int = 7) -> Buckets:
        opened.append(Buckets(path, slots=slots, boot=boot))
        return opened[-1]

    yield open_table
    for table in opened:
        table.close()


def use(table: Buckets, key_id: str, *, until_ns: int, now_ns: int = NOW_NS) -> int:
    """The key's slot, whose bucket of the minute is full at `until_ns`."""
    slot = table.take_slot(key_id, now_ns)
    table.words[slot + 1] = until_ns
    return slot


def test_a_key_has_one_slot_in_every_process(a_table: Callable[..., Buckets]) -> None:
    ours, theirs = a_table(), a_table()

    slot = use(ours, "key_a", until_ns=9_000_000)

    assert theirs.find_slot("key_a", NOW_NS) == theirs.take_slot("key_a", NOW_NS) == slot
    assert theirs.words[slot + 1] == 9_000_000
    assert theirs.find_slot("key_b", NOW_NS) is None


def test_a_slot_that_is_full_again_is_given_to_another_key(a_table: Callable[..., Buckets]) -> None:
    table = a_table(slots=2)
    use(table, "key_a", until_ns=9_000_000)
    freed = use(table, "key_b", until_ns=NOW_NS)

    slot = use(table, "key_c", until_ns=9_000_000)

    assert slot == freed
    assert table.find_slot("key_b", NOW_NS) is None
    assert table.find_slot("key_a", NOW_NS) is not None


def test_of_a_crowded_table_the_key_that_used_least_is_forgotten(
    a_table: Callable[..., Buckets],
) -> None:
    table = a_table(slots=2)
    use(table, "key_a", until_ns=8_000_000)
    use(table, "key_b", until_ns=9_000_000)

    slot = table.take_slot("key_c", NOW_NS)

    assert list(table.words[slot + 1 : slot + WORDS]) == [0, 0, 0]
    assert table.find_slot("key_a", NOW_NS) is None
    assert table.find_slot("key_b", NOW_NS) is not None


def test_another_start_of_the_machine_begins_anew(a_table: Callable[..., Buckets]) -> None:
    use(a_table(boot=7), "key_a", until_ns=9_000_000)

    assert a_table(boot=7).find_slot("key_a", NOW_NS) is not None
    assert a_table(boot=8).find_slot("key_a", NOW_NS) is None


def test_the_start_of_the_machine_is_told_by_the_system(tmp_path: Path) -> None:
    if BOOT_ID.exists():
        assert find_boot() == find_boot() > 1
    assert find_boot(tmp_path / "none") == 1


@pytest.fixture
def a_holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process, which has the table locked."""
    with subprocess.Popen(
        [sys.executable, "-c", A_HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def is_locked(path: Path) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_stopped_worker_is_waited_for_once(path: Path, a_holder: "subprocess.Popen[str]") -> None:
    a_holder.send_signal(signal.SIGSTOP)
    patience_s = 1.0  # long enough for a machine that stands still for a moment
    table = Buckets(path, slots=16, boot=7, timeout_s=patience_s)  # which waits for the first time

    for _ in range(100):  # far longer than a test may take, if each of them waited
        table.lock()
        table.unlock()

    a_holder.kill()
    a_holder.wait(60)
    table.lock()
    assert is_locked(path)
    table.close()


def test_a_lock_that_is_soon_free_is_waited_for(
    path: Path, a_table: Callable[..., Buckets], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = a_table(), a_table()
    theirs.lock()
    monkeypatch.setattr(time, "sleep", lambda _: theirs.unlock())

    ours.lock()

    assert is_locked(path)
    ours.unlock()
    assert not is_locked(path)
