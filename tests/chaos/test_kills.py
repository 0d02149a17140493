"""Processes that are killed or stopped: under load, at each step of their work, before they could answer."""

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from resumes.store import api_keys
from tests.chaos import checker, strace
from tests.chaos.campaign import Figures
from tests.chaos.strace import Injection
from tests.support import programs
from tests.support.api import ended_servers, load
from tests.support.api.ended_servers import KINDS, History, live_through
from tests.support.api.load import Client
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until
from tests.support.inbox import havoc
from tests.support.inbox.homes import drain, fresh
from tests.support.inbox.scenes import Scene as Folder

__all__ = ["drain", "fresh"]  # fixtures

UNDER_LOAD = 40
"""Kills of a server. `make campaign` does 200."""
BEFORE_ANSWERS = 8
"""Kills between a commit and its answer, for each of the two calls that lie there."""
HAVOC = 8
"""Kills of importers at random moments. `make campaign` does 200."""
BURST = 2_500
"""Files that wait for an importer before it is killed."""


def check(history: History, figures: Figures) -> None:
    """Nothing is lost, doubled or out of order, and no client saw an error."""
    ended_servers.check(history)
    acknowledged = history.acknowledged
    told = {resume_id: attempt.title for resume_id, attempt in acknowledged.items()}
    told |= {resume_id: attempt.title for attempt, resume_id, _ in history.repeats}
    found = checker.check(history.scene.home / "resumes.db", told)
    again = [is_replay for attempt, _, is_replay in history.repeats if attempt.answer is None]
    figures["resumes_acknowledged"] = len(acknowledged)
    figures["requests_unanswered_and_retried"] = len(again)
    figures["requests_replayed"] = sum(again)
    figures["lost"], figures["duplicated"] = found.lost, found.doubled
    figures["out_of_order"] = checker.count_out_of_order(acknowledged.values())
    assert figures["out_of_order"] == 0
    assert figures["requests_replayed"] > 0, "nothing was stored and not told"


@pytest.mark.chaos(
    1,
    fault="the server is killed under load",
    promise="every acknowledged resume is stored, and each account's counter matches its number of stored resumes",
)
def test_servers_killed_under_load_lose_nothing(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """Four clients create resumes, and a fifth client polls for new resumes. At random moments, the
    test sends SIGKILL to the whole server, its supervisor or one of its two workers."""
    kills = [KINDS[n % len(KINDS)] for n in range(UNDER_LOAD)]
    history = live_through(tmp_path, kills, seed)
    figures["kills"] = UNDER_LOAD
    check(history, figures)


@pytest.mark.parametrize(
    "calls",
    ["fsync,fdatasync", "write,writev,sendto,sendmsg"],
    ids=["once it is logged", "before it is answered"],
)
@pytest.mark.chaos(
    3,
    fault="the server is killed between commit and response",
    promise="a retry with the same Idempotency-Key gets the response to the original request",
)
def test_servers_killed_before_they_answer_do_nothing_twice(
    tmp_path: Path, figures: Figures, seed: random.Random, calls: str
) -> None:
    """While four clients create resumes, strace sends SIGKILL to one of the server's two workers.
    In one variant, the signal is delivered during a thread's k-th sync, when the commit is already
    in the log. In the other variant, the signal is delivered during a thread's k-th write to a
    file or socket, possibly the write that sends the response. The number k is random and at most 40."""

    def kill(server: Server, clients: list[Client]) -> None:
        fault = Injection(calls, "signal=KILL", seed.randint(1, 40))
        workers = server.workers
        with contextlib.ExitStack() as stack:
            for pid in workers:
                stack.enter_context(strace.injected(pid, fault, tmp_path / f"calls-{pid}"))
            # Clients may all be at one worker; the other lives on.
            wait_until(lambda: not {*workers} <= {*server.workers}, within_s=30)
            server.kill()

    history = live_through(tmp_path, [kill] * BEFORE_ANSWERS, seed)
    figures["kills"] = BEFORE_ANSWERS
    check(history, figures)


@pytest.mark.chaos(
    2,
    fault="importers and their helper processes are killed under load",
    promise="each file is imported exactly once",
)
def test_importers_killed_at_random_moments_import_each_file_once(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """While files of every kind arrive, thousands at a time, the test sends SIGKILL at random
    moments to `resumes watch`, to its helper processes, or to both."""
    folder = Folder(tmp_path)
    supply = havoc.wreak_havoc(folder, seed, HAVOC, BURST)
    figures["kills"] = HAVOC
    figures["files"] = folder.tally().files
    missing, doubled = checker.count_differences(supply.resumes, folder.names("ana"))
    figures["duplicated"], figures["lost"] = doubled, missing + supply.files - folder.tally().files
    assert figures["duplicated"] == figures["lost"] == 0


REVOKED: Final = 4


CONNECTIONS_EACH: Final = 3
"""To each of two workers."""


def revoke(scene: Scene, account: str) -> float:
    """Revoke the account's key; like the others, return when the command had ended."""
    return _end_key(scene, "keys", "revoke", _key_id(scene, account), "--yes")


def rotate(scene: Scene, account: str) -> float:
    """Rotate the account's key without a grace period."""
    return _end_key(scene, "keys", "rotate", _key_id(scene, account), "--grace", "0h")


def close_account(scene: Scene, account: str) -> float:
    """Delete the account with all its resumes."""
    return _end_key(scene, "accounts", "delete", account, "--with-resumes", "--yes")


def _end_key(scene: Scene, *arguments: str) -> float:
    programs.succeed(scene.home, *arguments)
    return time.monotonic()


def _key_id(scene: Scene, account: str) -> str:
    with scene.store() as store:
        return api_keys.list_keys(store, account=account)[0].id


@contextlib.contextmanager
def sending(server: Server, key: str) -> Iterator[list[Client]]:
    """Have clients create and list in turn during the block, with as many connections to each worker."""

    def make(number: int) -> tuple[str, bytes]:
        if number % 2:
            return "", load.a_request(key)
        return "", load.a_request(key, "POST", body=load.a_body(f"resume {number}"))

    wires = [wire for _ in range(CONNECTIONS_EACH) for wire in server.wires(load.a_request(key))]
    clients = [Client(server.url, make, wire) for wire in wires]
    with load.running(clients):
        wait_until(lambda: all(load.acknowledged([client]) > 3 for client in clients))
        yield clients


def wait_for_requests_after(clients: list[Client], at_s: float) -> None:
    """Wait until each client was answered some requests that it began after that time."""

    def sent_since(client: Client) -> int:
        return sum(one.began_s > at_s and one.answer is not None for one in client.attempts)

    wait_until(lambda: all(sent_since(client) > 5 for client in clients))


@pytest.mark.chaos(
    29,
    fault="while clients use a key, the key is revoked or rotated without a grace period, or its account is deleted",
    promise="after the change, no process accepts the key",
)
def test_a_revoked_key_is_accepted_nowhere(tmp_path: Path, figures: Figures) -> None:
    """Clients use keys on several connections to each of two workers. Meanwhile, one command at a
    time revokes a key, rotates a key without a grace period, or deletes an account."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    ends = [revoke] * REVOKED + [rotate, close_account]
    before = after = accepted = 0
    with scene.served("--workers", "2") as server:
        for number, end in enumerate(ends):
            account = f"account-{number}"
            _, key = scene.add_account(account)
            with sending(server, key) as clients:
                ended_s = end(scene, account)
                wait_for_requests_after(clients, ended_s)
            answered = [one for one in load.attempts_of(clients) if one.answer]
            late = [one for one in answered if one.began_s > ended_s]
            before += len(answered) - len(late)
            after += len(late)
            accepted += sum(one.answer is not None and one.answer.status != 401 for one in late)

    figures["keys"] = len(ends)
    figures["requests_before_the_changes"] = before
    figures["requests_after_the_changes"] = after
    figures["accepted_after_the_changes"] = accepted
    assert accepted == 0
