import errno
import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from importer import keeping
from importer.changes import Changes
from importer.health import HealthState
from importer.keeping import (
    ANEW_S,
    LIMIT_PAUSE_S,
    LONGEST_PAUSE_S,
    PROVEN_S,
    RENEW_S,
    Identity,
    Keeper,
    trouble_of,
)
from importer.listening import Change, Ending, Listener
from tests.importer.builders import FakeMonotonic, wait_until

ANA: Mapping[str, Identity] = {"/in/ana": (1, 1)}
BOTH: Mapping[str, Identity] = {"/in/ana": (1, 1), "/in/bob": (1, 2)}


class Bench:
    """A keeper whose listeners hear a source that fails as it is told to."""

    def __init__(self, monotonic: FakeMonotonic) -> None:
        self.monotonic = monotonic
        self.errors: list[Exception] = []
        self.obstacles: dict[str, str] = {}
        self.made: list[list[str]] = []
        self.listeners: list[Listener] = []
        self.keeper = Keeper(self._listen, self.obstacles.get, monotonic=monotonic)

    def _listen(self, paths: Sequence[str]) -> Listener:
        self.made.append(list(paths))
        listener = Listener(
            "/in",
            paths,
            Changes(),
            is_recursive=True,
            source=self._source,
            monotonic=self.monotonic,
        )
        self.listeners.append(listener)
        # Until it is known what became of it, so that a test goes step by step.
        wait_until(lambda: listener.is_over or listener.alive_since_s is not None)
        return listener

    def _source(
        self, paths: Sequence[str], *, is_recursive: bool, ending: Ending
    ) -> Iterator[Collection[Change]]:
        if self.errors:
            raise self.errors.pop(0)
        pause = threading.Event()
        while not ending.is_set():
            pause.wait(0.01)
        yield from ()

    def trouble(self) -> str:
        """The state and the sentence; empty without trouble."""
        trouble = self.keeper.trouble
        return f"{trouble.state}: {trouble.sentence}" if trouble else ""

    def keep_on(self, wanted: Mapping[str, Identity], seconds: float, step_s: float = 0.5) -> None:
        """As the importer's loop does, for a while by the clock."""
        for _ in range(int(seconds / step_s)):
            self.keeper.keep(wanted)
            self.monotonic.advance(step_s)


@pytest.fixture
def bench(monotonic: FakeMonotonic) -> Iterator[Bench]:
    bench = Bench(monotonic)
    yield bench
    bench.keeper.end()


def test_nothing_is_made_for_no_folder(bench: Bench) -> None:
    bench.keep_on({}, 5)
    assert bench.made == []


def test_a_listener_is_kept_while_the_folders_stay_the_same(bench: Bench) -> None:
    bench.keep_on(ANA, RENEW_S / 2, step_s=10)
    assert bench.made == [["/in/ana"]]


@pytest.mark.parametrize("wanted", [BOTH, {"/in/ana": (1, 7)}])
def test_it_is_made_anew_when_a_folder_comes_or_is_replaced(
    bench: Bench, wanted: Mapping[str, Identity]
) -> None:
    bench.keeper.keep(ANA)
    bench.monotonic.advance(ANEW_S)
    bench.keeper.keep(wanted)
    assert bench.made == [["/in/ana"], list(wanted)]
    assert bench.listeners[0].is_set()
    assert not bench.trouble()


def test_it_is_ended_when_the_folders_are_gone(bench: Bench) -> None:
    bench.keeper.keep(ANA)
    bench.monotonic.advance(ANEW_S)
    bench.keeper.keep({})
    assert bench.listeners[0].is_set()
    assert len(bench.made) == 1


def test_folders_that_keep_changing_do_not_make_it_anew_each_time(bench: Bench) -> None:
    for number in range(50):
        bench.keeper.keep({"/in/ana": (1, number)})
        bench.monotonic.advance(ANEW_S / 10)
    assert len(bench.made) == 5


def test_it_is_made_anew_when_it_says_that_it_is_outdated(bench: Bench) -> None:
    bench.keeper.keep(ANA)
    bench.listeners[0].is_outdated = True
    bench.monotonic.advance(ANEW_S)
    bench.keeper.keep(ANA)
    assert len(bench.made) == 2


def test_it_is_made_anew_in_time_although_nothing_failed(bench: Bench) -> None:
    bench.keep_on(ANA, 2 * RENEW_S, step_s=10)
    assert len(bench.made) == 2


def test_after_a_single_failure_another_is_made_at_once(bench: Bench) -> None:
    bench.errors = [RuntimeError("whatever")]
    bench.keeper.keep(ANA)
    bench.keeper.keep(ANA)
    assert len(bench.made) == 2
    assert bench.trouble().startswith("degraded: ")


def test_a_failure_is_over_when_another_has_heard_for_a_while(bench: Bench) -> None:
    bench.errors = [RuntimeError("whatever")]
    bench.keep_on(ANA, PROVEN_S)
    assert bench.trouble()
    bench.monotonic.advance(1)
    bench.keeper.keep(ANA)
    assert not bench.trouble()
    assert len(bench.made) == 2


def test_one_that_fails_every_time_is_tried_less_and_less(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.errors = [RuntimeError("whatever") for _ in range(1000)]
    bench.keep_on(ANA, 64)
    assert len(bench.made) == 7  # at first, at once, after 1, 2, 4, 8, 16 seconds and a step each
    bench.keep_on(ANA, 10 * LONGEST_PAUSE_S)
    assert 16 <= len(bench.made) <= 18
    assert len(caplog.records) == 1


def test_a_folder_that_went_away_meanwhile_is_no_trouble_the_first_time(bench: Bench) -> None:
    bench.errors = [FileNotFoundError("No path was found"), FileNotFoundError("…")]
    bench.keeper.keep(ANA)
    bench.keeper.keep(ANA)
    assert not bench.trouble()
    bench.keeper.keep(ANA)
    assert bench.trouble()


@pytest.mark.parametrize(
    ("number", "limit"),
    [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")],
)
def test_at_a_limit_of_the_system_it_is_tried_rarely(bench: Bench, number: int, limit: str) -> None:
    bench.errors = [OSError(number, "limit"), OSError(number, "limit")]
    bench.keep_on(ANA, LIMIT_PAUSE_S - 1)
    assert len(bench.made) == 1
    assert bench.trouble().startswith("polling: ")
    assert f"fs.inotify.{limit}" in bench.trouble()
    bench.keep_on(ANA, LIMIT_PAUSE_S)
    assert len(bench.made) == 2
    bench.keep_on(ANA, LIMIT_PAUSE_S + PROVEN_S)
    assert len(bench.made) == 3
    assert not bench.trouble()


def test_folders_with_an_obstacle_are_left_out_and_named(bench: Bench) -> None:
    bench.obstacles["/in/bob"] = "it has links in it"
    bench.keeper.keep(BOTH)
    assert bench.made == [["/in/ana"]]
    assert bench.keeper.unheard == {"/in/bob": "it has links in it"}


def test_where_all_folders_have_an_obstacle_nothing_is_made_until_it_is_time_to_look_again(
    bench: Bench,
) -> None:
    bench.obstacles["/in/ana"] = "it has links in it"
    bench.keep_on(ANA, RENEW_S, step_s=10)
    assert bench.made == []
    bench.obstacles.clear()
    bench.keeper.keep(ANA)
    assert bench.made == [["/in/ana"]]
    assert bench.keeper.unheard == {}


def test_trouble_is_over_when_there_is_nothing_to_watch(bench: Bench) -> None:
    bench.errors = [RuntimeError("whatever")] * 2
    bench.keep_on(ANA, 1)
    assert bench.trouble()
    bench.keep_on({}, 5)
    assert not bench.trouble()


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (RuntimeError('Unable to decode path "/in/\\xFF" to string'), "not UTF-8"),
        (RuntimeError("whatever"), "(RuntimeError)"),
        (None, "by itself"),
    ],
)
def test_a_failure_is_put_in_a_sentence(error: Exception | None, part: str) -> None:
    trouble = trouble_of(error)
    assert trouble.state is HealthState.DEGRADED
    assert part in trouble.sentence
    assert "found by scans" in trouble.sentence


def test_a_limit_is_told_with_its_value_where_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "SYSCTLS", tmp_path)
    error = OSError(errno.ENOSPC, "limit")
    assert "(limit fs.inotify.max_user_watches)" in trouble_of(error).sentence
    (tmp_path / "fs" / "inotify").mkdir(parents=True)
    (tmp_path / "fs" / "inotify" / "max_user_watches").write_text("8192\n")
    assert "(limit fs.inotify.max_user_watches, now 8192)" in trouble_of(error).sentence
