"""Servers that are killed while clients write and read, and what is left afterwards."""

import random

import pytest

from tests.support.api.killed_servers import (
    SHORT,
    History,
    check_acknowledged,
    check_pages,
    check_reader,
    check_repeats,
    check_statuses,
    kill_all,
    kill_supervisor,
    kill_worker,
    run_round,
    send_again,
)
from tests.support.api.scenes import Scene

pytestmark = pytest.mark.slow

LONG = 200


@pytest.fixture(
    scope="module",
    params=[SHORT, pytest.param(LONG, marks=pytest.mark.campaign(minutes=6))],
    ids=["short", "long"],
)
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> History:
    """A store after kills under load; half of the servers have two workers."""
    folder = tmp_path_factory.mktemp("killed")
    history = History(Scene(folder / "home", folder / "logs"))
    chance = random.Random(1)
    for number in range(request.param):
        kill = [kill_all, kill_supervisor, kill_all, kill_worker][number % 4]
        run_round(history, number, kill, chance)
    with history.scene.served() as server:
        send_again(history, server)
        history.listed = history.scene.walk(server.url)
    return history


def test_what_was_acknowledged_is_there_and_whole(history: History) -> None:
    check_acknowledged(history)


def test_no_answer_was_an_error(history: History) -> None:
    check_statuses(history)


def test_the_counter_is_the_rows_and_all_pages_show_each_once_in_order(history: History) -> None:
    check_pages(history)


def test_a_reader_that_goes_on_with_its_last_id_has_missed_nothing(history: History) -> None:
    check_reader(history)


def test_what_was_sent_again_was_done_once(history: History) -> None:
    check_repeats(history)
