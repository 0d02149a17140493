"""Servers that are killed while clients write and read, and what is left afterwards."""

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.server.serving import wait_until
from tests.system.server import load
from tests.system.server.load import Attempt, Client
from tests.system.server.scenes import Scene, Server, page_of

WRITERS = 4
SHORT = 6
LONG = 200
REPEATED_ACKNOWLEDGED = 2
"""Of each round's acknowledged creates so many are sent again, as if the answer had been lost."""


@dataclass
class History:
    """What all rounds of one campaign left behind."""

    scene: Scene
    acknowledged: dict[str, Attempt] = field(default_factory=dict)
    """By the id that the client was told."""
    unknown: list[Attempt] = field(default_factory=list)
    repeats: list[tuple[Attempt, str, bool]] = field(default_factory=list)
    """What was sent again, the id that came, and whether the answer calls itself a replay."""
    seen: list[str] = field(default_factory=list)
    """What a reader saw who always goes on with the last id."""
    statuses: set[int] = field(default_factory=set)
    listed: list[tuple[str, str]] = field(default_factory=list)
    """Ids and titles of all pages in the end."""


@pytest.fixture(
    scope="module",
    params=[SHORT, pytest.param(LONG, marks=pytest.mark.campaign)],
    ids=["short", "long"],
)
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> History:
    """A store after kills under load; half of the servers have two workers."""
    folder = tmp_path_factory.mktemp("killed")
    history = History(Scene(folder / "home", folder / "logs"))
    chance = random.Random(1)
    for number in range(request.param):
        kill = [_kill_all, _kill_supervisor, _kill_all, _kill_worker][number % 4]
        _run_round(history, number, kill, chance)
    with history.scene.served() as server:
        _send_again(history, server)
        history.listed = history.scene.walk(server.url)
    return history


def _kill_all(server: Server, clients: list[Client]) -> None:
    server.kill()


def _kill_supervisor(server: Server, clients: list[Client]) -> None:
    server.kill()  # returns when its workers, which it leaves behind, are gone


def _kill_worker(server: Server, clients: list[Client]) -> None:
    """One of two workers is killed; the clients go on while it is replaced."""
    killed = server.workers[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len({*server.workers} - {killed}) == 2, within_s=30)
    goal = load.acknowledged(clients) + 10 * WRITERS
    wait_until(lambda: load.acknowledged(clients) >= goal, within_s=30)
    server.kill()


def _run_round(
    history: History,
    number: int,
    kill: Callable[[Server, list[Client]], None],
    chance: random.Random,
) -> None:
    scene = history.scene
    flags = () if kill is _kill_all else ("--workers", "2")
    with scene.served(*flags) as server:
        _send_again(history, server)
        writers = [_writer(scene.key, server.url, f"{number}-{n}") for n in range(WRITERS)]
        reader = _reader(history, server.url)
        with load.running([*writers, reader]):
            enough = chance.randint(20, 200)
            wait_until(lambda: load.acknowledged(writers) >= enough, within_s=30)
            kill(server, writers)
    attempts = load.attempts_of(writers)
    history.statuses |= {one.answer.status for one in attempts if one.answer}
    history.acknowledged |= {one.id: one for one in attempts if one.id}
    history.unknown = [one for one in attempts if one.answer is None]


def _writer(key: str, url: str, name: str) -> Client:
    def make(number: int) -> tuple[str, bytes]:
        title = f"resume {name}-{number}"
        headers = {"Idempotency_Key": title.replace(" ", "-")}
        return title, load.a_request(key, "POST", body=load.a_body(title), **headers)

    return Client(url, make)


def _reader(history: History, url: str) -> Client:
    """Goes on with the last id that it saw, and keeps what it sees."""
    client: Client

    def make(number: int) -> tuple[str, bytes]:
        last = client.attempts[-1].answer if client.attempts else None
        if last is not None:
            history.seen += [entry["id"] for entry in last.json["resumes"]]
        cursor = history.seen[-1] if history.seen else ""
        return "", load.a_request(history.scene.key, path=page_of(cursor))

    client = Client(url, make)
    return client


def _send_again(history: History, server: Server) -> None:
    """What has no outcome yet is sent once more, as a client does; some that have one, too."""
    known = list(history.acknowledged.values())[-REPEATED_ACKNOWLEDGED:]
    for attempt in [*history.unknown, *known]:
        answer = load.call(server.url, attempt.data)
        assert answer.status == 201, answer
        is_replay = answer.headers.get("idempotent-replayed") == "true"
        history.repeats.append((attempt, answer.json["id"], is_replay))
    history.unknown = []


def test_what_was_acknowledged_is_there_and_whole(history: History) -> None:
    scene = history.scene
    assert len(history.acknowledged) > SHORT * WRITERS

    with scene.store() as store:
        for resume_id, attempt in history.acknowledged.items():
            assert scene.is_whole(store, resume_id, attempt.title)


def test_no_answer_was_an_error(history: History) -> None:
    assert history.statuses == {201}


def test_the_counter_is_the_rows_and_all_pages_show_each_once_in_order(history: History) -> None:
    listed = [resume_id for resume_id, _ in history.listed]

    assert len(listed) == history.scene.rows()
    assert listed == sorted(set(listed))
    assert set(history.acknowledged) <= set(listed)


def test_a_reader_that_goes_on_with_its_last_id_has_missed_nothing(history: History) -> None:
    listed = [resume_id for resume_id, _ in history.listed]
    rest = [resume_id for resume_id in listed if resume_id > history.seen[-1]]

    assert len(history.seen) > WRITERS
    assert [*history.seen, *rest] == listed


def test_what_was_sent_again_was_done_once(history: History) -> None:
    told = {attempt.title: attempt.id for attempt in history.acknowledged.values()}
    titles = [title for _, title in history.listed]

    assert len(titles) == len(set(titles))
    for attempt, resume_id, is_replay in history.repeats:
        if attempt.title in told:
            assert (resume_id, is_replay) == (told[attempt.title], True)
    assert any(is_replay for _, _, is_replay in history.repeats)
