"""Processes that are killed or stopped: under load, at each step of their work, before they could answer."""

import contextlib
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from resumes.store import open_store
from tests.chaos import checker, strace
from tests.chaos.campaign import Figures
from tests.chaos.strace import Injection
from tests.support.api import ended_keys, ended_servers, load
from tests.support.api.ended_servers import (
    GRACE_S,
    KINDS,
    History,
    check_stops,
    live_through,
    stop_under_load,
)
from tests.support.api.load import Client
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until
from tests.support.inbox import havoc, homes, oracle
from tests.support.inbox.homes import RESUMES, Drain, Fresh, drain, fresh
from tests.support.inbox.killed_importer import Task
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
    fault="the importer is killed at each step of its work",
    promise="each file is imported exactly once, and no file is left unprocessed",
)
def test_importers_killed_at_every_step_import_each_file_once(
    drain: Drain, fresh: Fresh, figures: Figures
) -> None:
    """An importer processes files of every kind, with every possible outcome. The importer is
    killed with SIGKILL at each of its steps in turn. After each kill, another importer finishes the
    work."""
    counts: Counter[str] = Counter()

    def counted(task: Task) -> int:
        status = drain(task)
        if status == signal.SIGKILL:
            counts["kills"] += 1
        else:
            count_home(counts, Path(task.home))
        return status

    homes.kill_at_every_step(counted, fresh, kills=1, stride=1)
    for name in ("kills", "files", "duplicated", "lost"):
        figures[name] = counts[name]
    assert counts["duplicated"] == counts["lost"] == 0


def count_home(counts: Counter[str], home: Path) -> None:
    """What is in a home that is drained is added up, and its store is sound."""
    counts["files"] += oracle.tally(home / "inbox").ended
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        checker.check_soundness(store)
        for name, expected in RESUMES.items():
            stored = (title for _, title in checker.iter_stored(store, name))
            missing, doubled = checker.count_differences(expected, stored)
            counts.update(lost=missing, duplicated=doubled)


@pytest.mark.chaos(
    2,
    fault="importers and their helper processes are killed under load",
    promise="each file is imported exactly once",
)
def test_importers_killed_at_random_moments_import_each_file_once(
    tmp_path: Path, figures: Figures, seed: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While files of every kind arrive, thousands at a time, the test sends SIGKILL at random
    moments to `resumes watch`, to its helper processes, or to both."""
    folder = Folder(tmp_path)
    monkeypatch.setenv(havoc.SEED, str(seed.randrange(1, 10**9)))
    supply = havoc.wreak_havoc(folder, lambda line: None, HAVOC, BURST)
    figures["kills"] = HAVOC
    figures["files"] = folder.tally().files
    missing, doubled = checker.count_differences(supply.resumes, folder.names("ana"))
    figures["duplicated"], figures["lost"] = doubled, missing + supply.files - folder.tally().files
    assert figures["duplicated"] == figures["lost"] == 0


REVOKED: Final = 4
STOPS: Final = 5
"""For one worker, and as often for two."""


@pytest.mark.chaos(
    29,
    fault="while clients use a key, the key is revoked or rotated without a grace period, or its account is deleted",
    promise="after the change, no process accepts the key",
)
def test_a_revoked_key_is_accepted_nowhere(tmp_path: Path, figures: Figures) -> None:
    """Clients use keys on several connections to each of two workers. Meanwhile, one command at a
    time revokes a key, rotates a key without a grace period, or deletes an account."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    ends = [ended_keys.revoke] * REVOKED + [ended_keys.rotate, ended_keys.close_account]
    before = after = accepted = 0
    with scene.served("--workers", "2") as server:
        for number, end in enumerate(ends):
            account = f"account-{number}"
            _, key = scene.add_account(account)
            with ended_keys.sending(server, key) as clients:
                ended = end(scene, account)
                ended_keys.wait_for_requests_after(clients, ended.at_s)
            answered = [one for one in load.attempts_of(clients) if one.answer]
            late = [one for one in answered if one.began_s > ended.at_s]
            before += len(answered) - len(late)
            after += len(late)
            accepted += sum(one.answer is not None and one.answer.status != 401 for one in late)

    figures["keys"] = len(ends)
    figures["requests_before_the_changes"] = before
    figures["requests_after_the_changes"] = after
    figures["accepted_after_the_changes"] = accepted
    assert accepted == 0


@pytest.mark.chaos(
    33,
    fault="the server gets SIGTERM under load",
    promise="every accepted request gets a response, no response has status 5xx, and the server stops in time",
)
def test_a_server_answers_accepted_requests_before_it_stops(
    tmp_path: Path, figures: Figures
) -> None:
    """While four clients write and two clients read, the test sends SIGTERM to the server, five
    times with one worker and five times with two workers."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    stops = [stop_under_load(scene, workers) for workers in ("1", "2") * STOPS]
    attempts = [one for stop in stops for one in stop.attempts]
    figures["shutdowns"] = len(stops)
    figures["requests"] = len(attempts)
    figures["responses_with_status_5xx"] = sum(
        one.answer.status >= 500 for one in attempts if one.answer
    )
    figures["accepted_but_unanswered"] = sum(len(stop.lost) for stop in stops)
    with scene.store() as store:
        held = {resume_id for resume_id, _ in checker.iter_stored(store)}
    figures["lost"] = len(checker.told_of(attempts).keys() - held)
    figures["slowest_shutdown_s"] = max(stop.took_s for stop in stops)
    assert figures["slowest_shutdown_s"] < GRACE_S
    assert figures["accepted_but_unanswered"] == figures["lost"] == 0
    assert checker.count_out_of_order(attempts) == 0
    check_stops(scene, stops)
