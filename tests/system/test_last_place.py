"""Many clients want the last place of an account at the same moment."""

from pathlib import Path

import pytest

from resumes.store import accounts, counters, open_store
from tests.system.last_place import LIMIT, last_place_goes_to_one

pytestmark = pytest.mark.slow


def test_100_clients_at_the_limit_but_one_and_one_succeeds(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DATABASE", url)

    last_place_goes_to_one(tmp_path, rounds=5)

    with open_store(url) as store:
        assert accounts.get_account(store, "ana").resume_count == LIMIT
        assert counters.list_wrong(store) == []


@pytest.mark.campaign
def test_100_clients_at_the_limit_but_one_100_times(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DATABASE", url)

    last_place_goes_to_one(tmp_path, rounds=100)
