"""One Idempotency-Key, whichever process is asked, and whatever becomes of it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from resumes.store import accounts
from tests.support import programs
from tests.support.api import load
from tests.support.resumes import a_document
from tests.support.stores import make_account, open_home

pytestmark = pytest.mark.slow

AT_ONCE = 32


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The API key of an account whose home is `tmp_path`."""
    return make_account(tmp_path, "ada")


@pytest.mark.parametrize("servers", [["--workers=2"], ["--workers=1", "--workers=1"]])
@pytest.mark.parametrize(("people", "statuses"), [(1, {201: 32}), (2, {201: 16, 422: 16})])
def test_32_creates_with_one_key_make_one_resume_and_have_one_answer(
    tmp_path: Path, key: str, servers: list[str], people: int, statuses: dict[int, int]
) -> None:
    barrier = Barrier(AT_ONCE, timeout=30)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        urls = [stack.enter_context(programs.serving(tmp_path, flag)) for flag in servers]

        def send(number: int) -> load.Answer:
            body = a_document(f"Person {number // 2 % people}")  # each goes to both servers
            barrier.wait()
            data = load.a_request(key, "POST", body=body, Idempotency_Key="once")
            return load.call(urls[number % len(urls)], data)  # on a connection of its own

        answers = list(pool.map(send, range(AT_ONCE)))

    assert Counter(answer.status for answer in answers) == statuses
    created = [answer for answer in answers if answer.status == 201]
    assert len({answer.body for answer in created}) == 1
    replayed = [answer.headers.get("idempotent-replayed") for answer in created]
    assert replayed.count("true") == len(created) - 1
    with open_home(tmp_path) as store:
        assert accounts.list_wrong(store) == []
        assert accounts.get_account(store, "ada").resume_count == 1
