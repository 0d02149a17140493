"""Processes that are looked after."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import children
from cli.children import Child, Household, household, start_api
from resumes.errors import StoreUnavailable
from tests.cli.conftest import CommandLine
from tests.cli.processes import is_alive, wait_until


class SetClock:
    """A clock that stands still unless moved."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now_s


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def child(acme: CommandLine, clock: SetClock) -> Iterator[Child]:
    """An importer in a process of its own."""
    (acme.home / "inbox").mkdir(exist_ok=True)
    words = ["--home", str(acme.home), "watch", str(acme.home / "inbox"), "--until-stdin-ends"]
    child = Child("The importer", words, clock=clock)
    child.start()
    yield child
    child.ask_to_end()
    child.wait_for_end()


def kill(child: Child) -> None:
    """The child was killed from outside."""
    assert child.process_id is not None
    os.kill(child.process_id, signal.SIGKILL)
    wait_until(lambda: child.exit_code() is not None)


def test_a_child_that_dies_is_started_again_later_and_later(
    child: Child, clock: SetClock, capsys: pytest.CaptureFixture[str]
) -> None:
    for pause_s in (0.5, 1.0, 2.0):
        kill(child)
        child.tend()
        told = capsys.readouterr().err
        assert told == (
            f"The importer ended (killed by signal 9); starting it again in {pause_s:g} s.\n"
        )
        child.tend()
        assert child.exit_code() == -9
        clock.now_s += pause_s
        child.tend()
        assert child.exit_code() is None

    clock.now_s += children.STEADY_S + 1
    kill(child)
    child.tend()
    assert "in 0.5 s" in capsys.readouterr().err


def test_a_child_ends_when_asked(child: Child) -> None:
    process_id = child.process_id
    assert process_id is not None

    child.ask_to_end()
    child.wait_for_end()

    assert not is_alive(process_id)
    assert child.exit_code() is None


def test_a_child_that_does_not_end_is_killed(
    child: Child, capsys: pytest.CaptureFixture[str]
) -> None:
    assert child.process_id is not None
    os.kill(child.process_id, signal.SIGSTOP)
    os.waitid(os.P_PID, child.process_id, os.WSTOPPED)  # else it may meet SIGTERM first

    child.ask_to_end()
    child.wait_for_end(within_s=0.1)

    assert capsys.readouterr().err == "The importer does not end; killing it.\n"


def test_the_api_says_where_it_listens_and_stays_there(acme: CommandLine) -> None:
    with household() as house:
        words = ["--home", str(acme.home), "serve", "--port", "0"]

        url = start_api(house, words, threading.Event())

        assert url is not None
        port = url.rpartition(":")[2]
        assert port.isdigit()
        assert house.children[0].arguments[-2:] == ["--port", port]
        process_id = house.children[0].process_id
        assert process_id is not None
    assert not is_alive(process_id)


def test_the_api_gets_what_it_is_not_told_on_its_command_line(
    acme: CommandLine, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    words = ["--home", str(acme.home), "serve", "--port", "0"]
    environment = {"RESUMES_DATABASE": f"sqlite:///{elsewhere}"}

    with household() as house:
        url = start_api(house, words, threading.Event(), environment=environment)

        process_id = house.children[0].process_id
        told = Path(f"/proc/{process_id}/cmdline").read_text(encoding="utf-8")

    assert url is not None
    assert elsewhere.exists()
    assert "elsewhere" not in told
    assert "RESUMES_DATABASE" not in os.environ


def test_an_api_that_does_not_come_up_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="did not start"), household() as house:
        start_api(house, ["--home", str(tmp_path), "serve", "--nonsense"], threading.Event())


def test_who_is_asked_to_stop_waits_no_longer(acme: CommandLine) -> None:
    stop = threading.Event()
    stop.set()
    with household() as house:
        assert start_api(house, ["--home", str(acme.home), "serve", "--port", "0"], stop) is None


def test_looking_after_returns_when_asked_to_stop() -> None:
    stop = threading.Event()
    stop.set()
    Household().look_after(stop)
