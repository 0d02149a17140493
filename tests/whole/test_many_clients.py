"""Many clients of one account at once: the quota is kept."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from resumes.store import accounts, open_store
from tests.support import programs
from tests.support.resumes import a_document
from tests.support.stores import make_account

pytestmark = pytest.mark.slow


QUOTA = 100
POSTS = 125
FILES = 125


@pytest.mark.engines
def test_two_servers_and_importers_on_one_store_make_exactly_as_many_as_there_is_room_for(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_DATABASE", url)
    key = make_account(url, "ana", max_resumes=QUOTA)
    homes = [tmp_path / name for name in ("one", "two")]
    inboxes = [home / "inbox" / "ana" for home in homes]
    for inbox in inboxes:
        inbox.mkdir(parents=True)

    def drop(n: int) -> None:
        (inboxes[n % 2] / f"{n}.json").write_bytes(a_document(f"Dropped {n}"))

    def files_in(folder: str) -> int:
        return sum(len(programs.files_in(home / "inbox" / folder)) for home in homes)

    with ExitStack() as stack:
        apis = [stack.enter_context(programs.serving(home)) for home in homes]
        for home in homes:
            stack.enter_context(programs.running(home, "watch"))
        pool = stack.enter_context(ThreadPoolExecutor(32))

        def post(n: int) -> int:
            body = a_document(f"Posted {n}")
            return programs.call(f"{apis[n % 2]}/api/v1/resumes", key, method="POST", body=body)[0]

        dropped = [pool.submit(drop, n) for n in range(FILES)]
        statuses = Counter(pool.map(post, range(POSTS)))
        for each in dropped:
            each.result()
        programs.wait_until(lambda: files_in("_done") + files_in("_held") == FILES)

        assert set(statuses) <= {201, 403}
        assert statuses[201] + files_in("_done") == QUOTA
        walks = [
            programs.walk(api, key, limit=limit) for api, limit in zip(apis, (7, 100), strict=True)
        ]
        assert len(walks[0]) == QUOTA
        assert walks[0] == walks[1]
    with open_store(url) as store:
        assert accounts.get_account(store, "ana").resume_count == QUOTA
        assert accounts.list_wrong(store) == []
