"""PostgreSQL that is killed, frozen, restarted, lost among others, or loses races.

What several servers do that stand in for each other is shown by `make cluster`.
"""

import importlib
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.checker import p99_ms
from tests.support import postgres, programs
from tests.support.api import load
from tests.support.api.load import Attempt, Client
from tests.support.api.serving import wait_until
from tests.support.postgres import pooled, server, url
from tests.support.proxy import Cut, Fault, Proxy

if TYPE_CHECKING:
    from tests.chaos.drilling import Drill

__all__ = ["pooled", "server", "url"]  # fixtures

TIMES: Final = 8
ANSWER_S: Final = 30.0
"""What a request may take: 10 s for the store, 15 s for the outcome of what it was told, and 5 s more."""

OUTAGE_S: Final = 5.0
"""A restart may keep creates waiting for so long."""

LOST_RACES: Final = 0.3
"""Of the transactions that create, this part is lost, half of it in COMMIT."""

CREATES: Final = 1_000
BROKEN_BYTES: Final = (1_000, 200_000)
SLOWER: Final = 2.0
SLACK_MS: Final = 100.0
"""A 99th percentile may be so many times longer, and this, by chance."""

POOLED: Final = 600
WRITERS: Final = 8


@pytest.fixture(scope="module")
def drill(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Drill"]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(repository)  # benchmarks are no part of the installed packages
        drilling = importlib.import_module("tests.chaos.drilling")
        with drilling.running(tmp_path_factory.mktemp("drill")) as drill:
            yield drill


@pytest.mark.chaos(
    13,
    fault="PostgreSQL is killed under load and started again",
    promise="no acknowledged resume is lost or duplicated, and the service recovers automatically",
)
def test_a_killed_postgresql_loses_nothing(drill: "Drill", figures: Figures) -> None:
    """While two API processes and an importer use the database, the test sends SIGKILL to the
    PostgreSQL postmaster eight times."""
    outcome = drill.live_through("killed", "kill", times=TIMES)

    figures.update(outcome.figures, kills=TIMES)
    assert outcome.findings == []
    assert figures["unanswered"] == 0


@pytest.mark.chaos(
    14,
    fault="PostgreSQL is frozen",
    promise="each request gets an error by its deadline, the service recovers automatically, and no acknowledged resume is lost",
)
def test_a_frozen_postgresql_gives_an_error_in_time(drill: "Drill", figures: Figures) -> None:
    """While the service is under load, SIGSTOP freezes all PostgreSQL processes until each API
    process has refused a request."""
    outcome = drill.live_through("frozen", "freeze", times=1)

    figures.update(outcome.figures)
    assert outcome.findings == []
    assert figures["unanswered"] == 0
    assert figures["slowest_response_s"] < ANSWER_S


@pytest.mark.chaos(
    15,
    fault="PostgreSQL is restarted under load",
    promise="requests wait for less than 5 s, and no request fails",
)
def test_requests_wait_for_a_restarted_postgresql(drill: "Drill", figures: Figures) -> None:
    """While two API processes and an importer use the database, PostgreSQL is shut down in fast
    mode and started again eight times."""
    outcome = drill.live_through("restarted", "restart", times=TIMES)

    figures.update(outcome.figures, restarts=TIMES)
    assert outcome.findings == []
    assert figures["responses_with_status_5xx"] == figures["unanswered"] == 0
    assert figures["longest_outage_s"] < OUTAGE_S


LOSE_RACES: Final = f"""
    CREATE SEQUENCE races_lost;
    CREATE SEQUENCE races START {{first}};
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE chance int := hashint8(nextval('races')) & 2047;
    BEGIN
        IF (chance & 1023) < {1024 * LOST_RACES / 2:.0f} THEN
            PERFORM nextval('races_lost');
            RAISE EXCEPTION 'a race was lost'
                USING ERRCODE = CASE WHEN chance > 1023 THEN '40001' ELSE '40P01' END;
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER lose_early AFTER UPDATE ON account_usage
        FOR EACH STATEMENT EXECUTE FUNCTION lose();
    CREATE CONSTRAINT TRIGGER lose_in_commit AFTER UPDATE ON account_usage
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose();
"""
"""`first` chooses which ones; a number that was drawn is drawn no more, whatever becomes of it."""


def make_clients(url: str, key: str, name: str) -> list[Client]:
    """Several who create, each with titles and Idempotency-Keys of its own."""
    return [load.writer(url, key, f"{name}-{n}", is_safe=True) for n in range(WRITERS)]


def write(url: str, key: str, name: str, count: int) -> list[Attempt]:
    """What became of so many creates or more, from several connections."""
    clients = make_clients(url, key, name)
    with load.running(clients):
        wait_until(lambda: len(load.attempts_of(clients)) >= count, within_s=120)
    return load.attempts_of(clients)


def statuses(attempts: list[Attempt]) -> Counter[int]:
    """How often each status came; 0 for connections that ended without one."""
    return Counter(one.answer.status if one.answer else 0 for one in attempts)


@pytest.mark.chaos(
    16,
    fault="three out of ten transactions fail with error 40001 (serialization failure) or 40P01 (deadlock)",
    promise="failed transactions are retried, and no client gets an error",
)
def test_no_client_notices_lost_races(
    server: postgres.Server, url: str, tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """While eight clients create resumes, triggers raise the errors 40001 and 40P01 at random, before
    and during COMMIT."""
    key = checker.make_account(url)
    database = url.rpartition("/")[2]
    server.execute(LOSE_RACES.format(first=seed.randrange(1, 10**9)), database)

    with programs.serving(tmp_path) as api:
        attempts = write(api, key, "raced", CREATES)

    ((lost,),) = server.execute("SELECT last_value FROM races_lost", database)
    found = statuses(attempts)
    figures["create_requests"] = len(attempts)
    figures["injected_errors"] = int(str(lost))
    figures["failed"] = len(attempts) - found[201]
    assert found == {201: len(attempts)}
    assert checker.check_attempts(url, attempts).stored == len(attempts)
    assert figures["injected_errors"] > WRITERS


@pytest.mark.chaos(
    13,
    fault="connections to PostgreSQL break constantly, even during COMMIT",
    promise="no acknowledged resume is lost or duplicated, and clients can retry refused requests",
)
def test_broken_connections_to_postgresql_lose_nothing(
    server: postgres.Server,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    figures: Figures,
    seed: random.Random,
) -> None:
    """While eight clients create resumes, a TCP proxy closes or resets each connection to
    PostgreSQL after at most 200 KB of data. Halfway through the test, the proxy breaks every
    new connection immediately, until a client gets an error. At the end of the test, the refused
    requests are retried."""
    key = checker.make_account(url)
    with Proxy(url) as proxy:
        monkeypatch.setenv("RESUMES_DATABASE", url.replace(str(server.port), str(proxy.port)))
        with programs.serving(tmp_path) as api:
            proxy.choose = lambda: broken_soon(seed)
            clients = make_clients(api, key, "broken")
            with load.running(clients):
                wait_until(lambda: load.acknowledged(clients) >= CREATES // 2, within_s=120)
                proxy.choose = lambda: Fault(up_bytes=0)
                wait_until(lambda: 503 in statuses(load.attempts_of(clients)), within_s=60)
                proxy.choose = lambda: broken_soon(seed)
                wait_until(lambda: load.acknowledged(clients) >= CREATES, within_s=120)
        attempts = load.attempts_of(clients)
    monkeypatch.setenv("RESUMES_DATABASE", url)
    failed = [one for one in attempts if not one.id]
    with programs.serving(tmp_path) as api:
        again = [load.call(api, one.data) for one in failed]

    told = {one.id: one.title for one in attempts if one.id}
    told |= {answer.json["id"]: one.title for one, answer in zip(failed, again, strict=True)}
    found = checker.check(url, told)
    figures["create_requests"] = len(attempts)
    figures["connections_broken"] = proxy.cut_count
    figures["requests_refused_with_503_and_retried"] = len(failed)
    figures["lost"], figures["duplicated"] = found.lost, found.doubled
    assert statuses(attempts).keys() == {201, 503}
    assert proxy.cut_count > WRITERS
    assert found.stored == len(attempts)


def broken_soon(chance: random.Random) -> Fault:
    """A connection that breaks in any of its bytes, behind some transactions."""
    at = chance.randrange(*BROKEN_BYTES)
    cut = chance.choice((Cut.END, Cut.RESET))
    return chance.choice((Fault(up_bytes=at, cut=cut), Fault(down_bytes=at // 4, cut=cut)))


@pytest.mark.chaos(
    17,
    fault="PgBouncer may run each transaction in a different session",
    promise="the service works even if consecutive transactions run in different sessions",
)
def test_nothing_depends_on_a_session(
    pooled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    """PgBouncer runs in transaction mode and shares two sessions among all of the API's
    connections."""
    key = checker.make_account(pooled)
    monkeypatch.setenv("RESUMES_DATABASE", pooled)

    with programs.serving(tmp_path) as api:
        attempts = write(api, key, "pooled", POOLED)
        listed = programs.walk(api, key, limit=7)

    found = statuses(attempts)
    figures["create_requests"] = len(attempts)
    figures["failed"] = len(attempts) - found[201]
    assert found == {201: len(attempts)}
    assert listed == sorted(one.id for one in attempts)
    assert checker.check_attempts(pooled, attempts).stored == len(attempts)


@pytest.mark.chaos(
    18,
    fault="one of two stores loses its PostgreSQL server",
    promise="accounts in the other store are served as usual",
)
def test_a_cell_that_fails_does_not_affect_another(
    server: postgres.Server,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    figures: Figures,
) -> None:
    """Two stores run on separate PostgreSQL servers, and each store has its own API. The test sends
    SIGKILL to the PostgreSQL server of one store."""
    with postgres.running("18") as other, programs.serving(tmp_path / "calm") as calm:
        key = checker.make_account(url)
        far = other.url(other.make_database())
        monkeypatch.setenv("RESUMES_DATABASE", far)
        lost_key = checker.make_account(far)
        with programs.serving(tmp_path / "lost") as lost, ThreadPoolExecutor(1) as pool:
            assert statuses(write(lost, lost_key, "before", 20)).keys() == {201}
            before = write(calm, key, "before", CREATES)
            kill(other)
            failing = pool.submit(write, lost, lost_key, "meanwhile", WRITERS)
            meanwhile = write(calm, key, "meanwhile", CREATES)
            failed = failing.result()

    figures["create_requests"] = len(meanwhile)
    figures["failed"] = len(meanwhile) - statuses(meanwhile)[201]
    figures["failures_in_the_affected_store"] = len(failed)
    figures["normal_p99_ms"] = p99_ms(before)
    figures["p99_during_the_fault_ms"] = p99_ms(meanwhile)
    assert statuses(meanwhile).keys() == {201}
    assert statuses(failed).keys() == {503}
    assert checker.check_attempts(url, before + meanwhile).stored == len(before + meanwhile)
    assert p99_ms(meanwhile) < SLOWER * p99_ms(before) + SLACK_MS


def kill(server: postgres.Server) -> None:
    """The server's first process was killed, which ends the others."""
    assert server.process is not None
    server.process.kill()
    server.process.wait()
