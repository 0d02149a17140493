"""Many creators in several processes, and a reader that goes on with the last id it saw."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from resumes.store import Store, accounts, counters, listing, open_store, plans
from resumes.store.plans import PlanChange

pytestmark = pytest.mark.slow

PROCESSES = 4
THREADS = 8
CREATES_EACH = 25

CREATOR = """
    import sys, threading
    from resumes import analyzer
    from resumes.store import open_store, creating
    from resumes.store.creating import NewResume

    url, account_id, threads, creates = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    resume = NewResume(analyzer.parse(b'{"header": {"name": "Ada"}, "sections": {}}'))
    ids = []

    def work():
        for _ in range(creates):
            ids.append(creating.create(store, account_id, [resume], deadline_s=60)[0].id)

    with open_store(url) as store:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
    print(*ids)
"""


def read_on(store: Store, account_id: str, seen: list[str]) -> None:
    """Goes on after the last id seen until nothing follows."""
    while True:
        page = listing.list_page(store, account_id, cursor=seen[-1] if seen else "", limit=17)
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
        assert counters.list_wrong(store) == []
