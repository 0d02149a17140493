"""The whole service on PostgreSQL, as a user runs it."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from resumes.health.store_checks import CONNECTIONS_OF_A_WORKER
from resumes.store.postgresql.writer import THREADS
from tests.support import postgres, programs
from tests.support.postgres import server, url
from tests.support.resumes import a_document
from tests.support.stores import make_account

pytestmark = pytest.mark.slow

__all__ = ["server", "url"]  # fixtures


@pytest.fixture
def key(url: str, tmp_path: Path) -> str:
    """That of the account `ana`."""
    return make_account(url, "ana")


def post(url: str, key: str, name: str) -> int:
    """The status of a create."""
    body = a_document(name)
    return programs.call(f"{url}/api/v1/resumes", key, method="POST", body=body)[0]


def test_one_variable_is_all_that_up_needs(url: str, tmp_path: Path) -> None:
    with programs.running(tmp_path, "up", "--port", "0", "--json") as up:
        assert up.stdout is not None
        told = json.loads(up.stdout.readline())
        api, key = told["url"], Path(told["keyFile"]).read_text("ascii").strip()
        (Path(told["inbox"]) / "dropped.json").write_bytes(a_document("Dropped"))
        programs.wait_until(lambda: len(programs.walk(api, key, limit=10)) == 1)

        assert post(api, key, "Posted") == 201

        listed = json.loads(programs.succeed(tmp_path, "list", "--json"))["resumes"]
        assert [one["id"] for one in listed] == programs.walk(api, key, limit=1)
        assert len(listed) == 2
        assert programs.call(f"{api}/readyz", None)[0] == 200
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize(
    ("workers", "others"),
    [(1, 1), (2, THREADS + 1)],  # which fill the search index: in the worker, or the supervisor
)
def test_workers_have_as_many_connections_as_they_are_counted_for(
    url: str, tmp_path: Path, workers: int, others: int
) -> None:
    keys = [make_account(url, f"ana{number}") for number in range(8)]
    seen: list[int] = []
    with (
        programs.serving(tmp_path, "--workers", str(workers)) as api,
        ThreadPoolExecutor(32) as pool,
    ):

        def use(number: int) -> None:
            key = keys[number % len(keys)]
            assert post(api, key, f"Posted {number}") == 201
            assert programs.call(f"{api}/api/v1/resumes", key)[0] == 200
            assert programs.call(f"{api}/readyz", None)[0] == 200
            urllib.request.urlopen(f"{api}/metrics", timeout=60).close()
            seen.append(postgres.count_sessions(url, postgres.OURS))

        for _ in pool.map(use, range(200)):
            pass
    assert max(seen) <= workers * CONNECTIONS_OF_A_WORKER + others


def test_who_waits_for_the_database_keeps_nobody_else_waiting(
    url: str, key: str, tmp_path: Path
) -> None:
    with (
        programs.serving(tmp_path) as api,
        psycopg.connect(url) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        assert programs.walk(api, key, limit=10) == []
        other.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
        listing = pool.submit(programs.walk, api, key, limit=10)
        programs.wait_until(lambda: postgres.count_sessions(url, postgres.WAITS))

        assert programs.call(f"{api}/healthz", None)[0] == 200

        assert not listing.done()
        other.rollback()
        assert listing.result(timeout=60) == []
