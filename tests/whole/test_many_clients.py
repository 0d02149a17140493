"""Many clients of one account at once: the quota is kept."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resumes.store import accounts, open_store
from tests.support import programs
from tests.support.resumes import a_document
from tests.support.stores import make_account

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.campaign)])
def test_100_clients_at_the_limit_but_one_and_one_succeeds(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    monkeypatch.setenv("RESUMES_DATABASE", url)

    programs.last_place_goes_to_one(tmp_path, rounds=rounds)

    with open_store(url) as store:
        assert accounts.get_account(store, "ana").resume_count == programs.LAST_PLACE
        assert accounts.list_wrong(store) == []


QUOTA = 100
POSTS = 125
FILES = 125


def test_250_parallel_creates_from_http_and_importer_on_a_quota_of_100_make_100(
    tmp_path: Path,
) -> None:
    key = make_account(tmp_path, "ana", max_resumes=QUOTA)
    inbox = tmp_path / "inbox" / "ana"
    inbox.mkdir(parents=True, exist_ok=True)
    with programs.serving(tmp_path) as url, programs.running(tmp_path, "watch"):

        def post(n: int) -> int:
            body = a_document(f"Posted {n}")
            return programs.call(f"{url}/api/v1/resumes", key, method="POST", body=body)[0]

        def drop(n: int) -> None:
            (inbox / f"{n}.json").write_bytes(a_document(f"Dropped {n}"))

        with ThreadPoolExecutor(32) as pool:
            dropped = [pool.submit(drop, n) for n in range(FILES)]
            statuses = Counter(pool.map(post, range(POSTS)))
            for each in dropped:
                each.result()
        programs.wait_until(lambda: not programs.files_in(inbox))
        held = tmp_path / "inbox" / "_held" / "ana"
        done = tmp_path / "inbox" / "_done"

        def is_settled() -> bool:
            files = len(programs.files_in(held)) + len(programs.files_in(done))
            return files == FILES

        programs.wait_until(is_settled)
        assert set(statuses) <= {201, 403}
        assert statuses[201] + len(programs.files_in(done)) == QUOTA
        assert len(programs.walk(url, key, limit=100)) == QUOTA
    with open_store(f"sqlite:///{tmp_path}/resumes.db") as store:
        assert accounts.get_account(store, "ana").resume_count == QUOTA
        assert accounts.list_wrong(store) == []
