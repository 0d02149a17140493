"""Many clients of one account at once: the quota is kept, and no page loses or repeats a resume."""

import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resumes.store import Store, accounts, open_store, plans, stored_resumes
from resumes.store.plans import PlanChange
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


PROCESSES = 4
THREADS = 8
CREATES_EACH = 25

CREATOR = """
    import sys, threading
    from resumes import analyzer
    from resumes.store import open_store, creation
    from resumes.store.creation import NewResume

    url, account_id, threads, creates = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    resume = NewResume(analyzer.parse(b'{"header": {"name": "Ada"}, "sections": {}}'))
    ids = []

    def work():
        for _ in range(creates):
            ids.append(creation.create(store, account_id, [resume], deadline_s=60)[0].id)

    with open_store(url) as store:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
    print(*ids)
"""


def read_on(store: Store, account_id: str, seen: list[str]) -> None:
    """Goes on after the last id seen until nothing follows."""
    while True:
        page = stored_resumes.list_page(
            store, account_id, cursor=seen[-1] if seen else "", limit=17
        )
        seen += [entry.id for entry in page.entries]
        if not page.entries:
            return


def test_a_reader_that_goes_on_with_the_last_id_sees_every_resume_exactly_once(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/resumes.db"
    with open_store(url) as store:
        account = accounts.create_account(store, "ana", plan="business")
        plans.set_plan_limits(store, PlanChange("business", None))
        arguments = [url, account.id, str(THREADS), str(CREATES_EACH)]
        creators = [
            subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(CREATOR), *arguments],
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(PROCESSES)
        ]
        seen: list[str] = []
        while any(creator.poll() is None for creator in creators):
            read_on(store, account.id, seen)
        read_on(store, account.id, seen)
        created = [i for creator in creators for i in creator.communicate()[0].split()]
        assert [creator.returncode for creator in creators] == [0] * PROCESSES
        assert len(created) == PROCESSES * THREADS * CREATES_EACH
        assert seen == sorted(created)
        assert accounts.list_wrong(store) == []
