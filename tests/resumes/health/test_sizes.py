"""The store's size, and a log that nobody cuts."""

from pathlib import Path

import pytest

from resumes.health.findings import State
from resumes.health.sizes import LARGE_LOG_BYTES, StoreSize, check_size, in_bytes, measure_store
from resumes.store import Store, accounts


def test_the_store_and_its_log_are_measured(store: Store) -> None:
    accounts.create_account(store, "acme")

    size = measure_store(store.path)

    assert size.file_bytes == store.path.stat().st_size
    assert size.log_bytes > 0


def test_what_is_not_there_has_no_size(tmp_path: Path) -> None:
    assert measure_store(tmp_path / "none.db") == StoreSize(0, 0)


def test_a_log_that_is_not_cut_is_told() -> None:
    assert check_size(StoreSize(2**40, LARGE_LOG_BYTES - 1)).state is State.WELL

    finding = check_size(StoreSize(2**20, LARGE_LOG_BYTES))

    assert finding.state is State.NOTICE
    assert finding.text == "1.0 MiB, and 256 MiB of log"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_536, "1.5 KiB"),
        (12 * 2**20, "12 MiB"),
        (2**40, "1,024 GiB"),
    ],
)
def test_bytes_in_words(count: int, said: str) -> None:
    assert in_bytes(count) == said
