"""Processes that are killed: under load, at each step of their work, before they could answer."""

import contextlib
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos import checker, strace
from tests.chaos.campaign import Figures
from tests.chaos.strace import Fault
from tests.importer import test_killed as importer_killed
from tests.importer.killed_importer import Task
from tests.importer.test_killed import Drain, Fresh
from tests.server.serving import wait_until
from tests.system.importer import test_acceptance_killed
from tests.system.importer.scenes import Scene as Folder
from tests.system.server import test_killed as server_killed
from tests.system.server.load import Client
from tests.system.server.scenes import Scene, Server
from tests.system.server.test_killed import History

UNDER_LOAD = 40
"""Kills of a server. `make campaign` does 200."""
BEFORE_ANSWERS = 8
"""Kills between a commit and its answer, for each of the two calls that lie there."""
HAVOC = 8
"""Kills of importers at random moments. `make campaign` does 200."""
BURST = 2_500
"""Files that wait for an importer before it is killed."""

drain = importer_killed.drain
fresh = importer_killed.fresh

Kill = Callable[[Server, list[Client]], None]


def through(folder: Path, kills: list[Kill], chance: random.Random) -> History:
    """What is left of a store whose server was killed in each of these ways, one after the other."""
    history = History(Scene(folder / "home", folder / "logs"))
    for number, kill in enumerate(kills):
        server_killed._run_round(history, number, kill, chance)
    with history.scene.served() as server:
        server_killed._send_again(history, server)
        history.listed = history.scene.walk(server.url)
    return history


def check(history: History, figures: Figures) -> None:
    """Nothing is lost, doubled or out of order, and no client saw an error."""
    server_killed.test_what_was_acknowledged_is_there_and_whole(history)
    server_killed.test_no_answer_was_an_error(history)
    server_killed.test_the_counter_is_the_rows_and_all_pages_show_each_once_in_order(history)
    server_killed.test_a_reader_that_goes_on_with_its_last_id_has_missed_nothing(history)
    server_killed.test_what_was_sent_again_was_done_once(history)
    checker.check_by_program(history.scene.home)
    figures["acknowledged"] = len(history.acknowledged)
    figures["sent_again"] = len(history.repeats)
    figures["replayed"] = sum(is_replay for _, _, is_replay in history.repeats)
    figures["lost"] = figures["doubled"] = figures["out_of_order"] = 0


@pytest.mark.chaos(
    1,
    fault="the server is killed under load",
    promise="what was acknowledged is stored; the counter is the rows",
)
def test_servers_killed_under_load_lose_nothing(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """SIGKILL to the server, its supervisor or one of two workers, at a random moment while four
    clients create and one follows."""
    kinds: list[Kill] = [
        server_killed._kill_all,
        server_killed._kill_supervisor,
        server_killed._kill_all,
        server_killed._kill_worker,
    ]
    history = through(tmp_path, [kinds[n % 4] for n in range(UNDER_LOAD)], seed)
    figures["kills"] = UNDER_LOAD
    check(history, figures)


@pytest.mark.parametrize(
    "calls",
    ["fsync,fdatasync", "write,writev,sendto,sendmsg"],
    ids=["once it is written", "before it is told"],
)
@pytest.mark.chaos(
    3,
    fault="the server is killed between commit and answer",
    promise="a retry with the same Idempotency-Key gets the first answer",
)
def test_servers_killed_before_they_answer_do_nothing_twice(
    tmp_path: Path, figures: Figures, seed: random.Random, calls: str
) -> None:
    """strace: SIGKILL when a thread of one of two workers comes to its k-th sync, when the commit is
    in the log, or to its k-th write to a socket; k at random up to 40, while four clients create."""

    def kill(server: Server, clients: list[Client]) -> None:
        fault = Fault(calls, "signal=KILL", seed.randint(1, 40))
        workers = server.workers
        with contextlib.ExitStack() as stack:
            for pid in workers:
                stack.enter_context(strace.injected(pid, fault, tmp_path / f"calls-{pid}"))
            # Clients may all be at one worker; the other lives on.
            wait_until(lambda: not {*workers} <= {*server.workers}, within_s=30)
            server.kill()

    history = through(tmp_path, [kill] * BEFORE_ANSWERS, seed)
    figures["kills"] = BEFORE_ANSWERS
    check(history, figures)


@pytest.mark.chaos(
    2,
    fault="the importer is killed at a step of its work",
    promise="of each content of a file there is one resume",
)
def test_importers_killed_at_every_step_import_each_file_once(
    drain: Drain, fresh: Fresh, figures: Figures
) -> None:
    """SIGKILL at each step in turn of an importer with files of every kind and for every outcome;
    another one goes on."""
    ends: Counter[int] = Counter()

    def counted(task: Task) -> int:
        status = drain(task)
        ends[status] += 1
        return status

    importer_killed.kill_at_every_step(counted, fresh, kills=1, stride=1)
    figures["kills"] = ends[signal.SIGKILL]
    figures["files"] = sum(importer_killed.OUTCOMES.values()) * ends[signal.SIGKILL]
    figures["doubled"] = figures["missing"] = 0


@pytest.mark.chaos(
    2,
    fault="importers and the processes that help them are killed under load",
    promise="of each content of a file there is one resume",
)
def test_importers_killed_at_random_moments_import_each_file_once(
    tmp_path: Path, figures: Figures, seed: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL at random moments to `resumes watch`, its helpers or both, while files of every kind
    come in, thousands at a time."""
    folder = Folder(tmp_path)
    monkeypatch.setenv(test_acceptance_killed.SEED, str(seed.randrange(1, 10**9)))
    test_acceptance_killed.test_importers_killed_at_random_moments_lose_nothing_and_double_nothing(
        folder, lambda line: None, HAVOC, BURST
    )
    checker.check_by_program(folder.home)
    figures["kills"] = HAVOC
    figures["files"] = folder.tally().files
    figures["doubled"] = figures["missing"] = 0
