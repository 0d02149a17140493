"""One Idempotency-Key, whichever process is asked, and whatever becomes of it."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import httpx
import pytest

from resumes.store import accounts
from tests.support import programs
from tests.support.resumes import a_document
from tests.support.stores import make_account, open_home

pytestmark = pytest.mark.slow

AT_ONCE = 32


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The API key of an account whose home is `tmp_path`."""
    return make_account(tmp_path, "ada")


def post(url: str, key: str, body: bytes, idempotency_key: str) -> httpx.Response:
    """The answer to a create, on a connection of its own."""
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Idempotency-Key": idempotency_key,
    }
    return httpx.post(f"{url}/api/v1/resumes", content=body, headers=headers, timeout=60)


def post_at_once(
    urls: Sequence[str], key: str, bodies: Sequence[bytes], idempotency_key: str
) -> list[httpx.Response]:
    """The answers to creates that are sent at the same moment, to each address in turn."""
    barrier = Barrier(len(bodies), timeout=30)

    def send(number: int) -> httpx.Response:
        barrier.wait()
        return post(urls[number % len(urls)], key, bodies[number], idempotency_key)

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(send, range(len(bodies))))


def is_replayed(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("Idempotent-Replayed") == "true")


def count(home: Path) -> int:
    """How many resumes are stored; the account's counter says the same."""
    with open_home(home) as store:
        assert accounts.list_wrong(store) == []
        return accounts.get_account(store, "ada").resume_count


@pytest.mark.parametrize("servers", [["--workers=2"], ["--workers=1", "--workers=1"]])
def test_32_creates_with_one_key_and_one_body_make_one_resume_and_have_one_answer(
    tmp_path: Path, key: str, servers: list[str]
) -> None:
    with ExitStack() as stack:
        urls = [stack.enter_context(programs.serving(tmp_path, flag)) for flag in servers]
        for number in range(3):
            answers = post_at_once(urls, key, [a_document()] * AT_ONCE, f"once-{number}")

            assert {answer.status_code for answer in answers} == {201}
            assert len({answer.content for answer in answers}) == 1
            assert sum(map(is_replayed, answers)) == AT_ONCE - 1
            assert count(tmp_path) == number + 1


def test_an_account_made_anew_has_no_answer_of_the_one_before(tmp_path: Path, key: str) -> None:
    """Clients repeat one create of an account until that is deleted under them."""
    told: set[str] = set()

    def repeat(url: str, key: str) -> set[str]:
        ids = set()
        while (answer := post(url, key, a_document(), "once")).status_code == 201:
            ids.add(answer.json()["id"])
        assert answer.status_code == 401
        return ids

    with programs.serving(tmp_path, "--workers=2") as url, ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            repeating = [pool.submit(repeat, url, key) for _ in range(8)]
            programs.wait_until(lambda: count(tmp_path) == 1)
            with open_home(tmp_path) as store:
                accounts.delete_account(store, "ada", with_resumes=True)
            key = make_account(tmp_path, "ada")
            (made,) = set().union(*(one.result() for one in repeating))
            assert made not in told
            told.add(made)
    assert count(tmp_path) == 0


def test_of_two_bodies_with_one_key_one_is_created_and_the_other_is_422_everywhere(
    tmp_path: Path, key: str
) -> None:
    bodies = [a_document(f"Person {number % 2}") for number in range(AT_ONCE)]
    with programs.serving(tmp_path) as one, programs.serving(tmp_path) as other:
        # Each body goes to both servers.
        answers = post_at_once([one, one, other, other], key, bodies, "once")

    assert Counter(answer.status_code for answer in answers) == {201: 16, 422: 16}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert count(tmp_path) == 1


def test_at_the_edge_of_the_quota_repeats_have_their_201_and_other_creates_403(
    tmp_path: Path, key: str
) -> None:
    programs.succeed(tmp_path, "plans", "set", "business", "--max-resumes", "1")
    with programs.serving(tmp_path, "--workers=2") as url:
        answers = post_at_once([url], key, [a_document()] * AT_ONCE, "once")
        refused = post(url, key, a_document(), "another")

    assert {answer.status_code for answer in answers} == {201}
    assert refused.status_code == 403
    assert count(tmp_path) == 1


KILLED_BEFORE_THE_ANSWER = """
import os, signal, sys
from pathlib import Path
from resumes.settings import Settings
from resumes.store import creation
from server import service

create_async = creation.create_async

async def create_and_die(*arguments, **options):
    await create_async(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)

creation.create_async = create_and_die
service.run(Settings(home=Path(sys.argv[1]), port=0), ready=lambda url: print(url, flush=True))
"""


def test_after_a_kill_between_commit_and_answer_a_repeat_has_the_id_of_what_was_created(
    tmp_path: Path, key: str
) -> None:
    command = [sys.executable, "-c", KILLED_BEFORE_THE_ANSWER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with pytest.raises(httpx.TransportError):
                post(url, key, a_document(), "once")
            assert process.wait(30) == -signal.SIGKILL
        finally:
            process.kill()
    assert count(tmp_path) == 1

    with programs.serving(tmp_path) as url:
        answers = [post(url, key, a_document(), "once") for _ in range(2)]
        listed = programs.walk(url, key, limit=100)

    assert all(is_replayed(answer) for answer in answers)
    assert [answer.json()["id"] for answer in answers] == listed * 2
