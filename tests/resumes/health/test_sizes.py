"""The store's size, and a log that nobody cuts."""

import pytest

from resumes.health.findings import State
from resumes.health.sizes import LARGE_LOG_BYTES, check_size, in_bytes
from resumes.store import Store, accounts
from resumes.store.database import Size
from tests.resumes.store.builders import sqlite_of


def test_the_store_and_its_log_are_measured(store: Store) -> None:
    accounts.create_account(store, "acme")

    size = store.database.measure()

    assert size.data_bytes == sqlite_of(store).path.stat().st_size
    assert size.log_bytes


def test_a_log_that_is_not_cut_is_told() -> None:
    assert check_size(Size(2**40, LARGE_LOG_BYTES - 1)).state is State.WELL

    finding = check_size(Size(2**20, LARGE_LOG_BYTES))

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
