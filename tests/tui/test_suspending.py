"""Leaving the lane before the process is stopped (pitfalls S9)."""

import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection

from resumes.store.engine import Store
from tests.resumes.store.builders import sqlite_of
from tests.tui.driving import LIMIT_S, running, shows, until
from tui import suspending
from tui.session import Session
from tui.suspending import suspend

pytestmark = pytest.mark.anyio


async def test_the_lane_is_held_while_the_process_is_stopped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(store) as pilot:
        held: list[bool] = []
        monkeypatch.setattr(
            pilot.app,
            "action_suspend_process",
            lambda: held.append(sqlite_of(store).lane._turn.locked()),
        )

        await suspend(pilot.app, Session(store))

        assert held == [True]
        assert not sqlite_of(store).lane._turn.locked()


async def test_a_write_that_takes_long_is_not_stopped_in_the_middle(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(_: Connection, requests: Sequence[None]) -> Sequence[None]:
        begun.set()
        assert go.wait(LIMIT_S)
        return requests

    writer = threading.Thread(target=store.write, args=(slow, None))
    monkeypatch.setattr(suspending, "WAIT_S", 0.05)
    async with running(store) as pilot:
        stopped: list[None] = []
        monkeypatch.setattr(pilot.app, "action_suspend_process", lambda: stopped.append(None))
        writer.start()
        await until(begun.is_set)

        await suspend(pilot.app, Session(store))

        assert stopped == []
        await shows(pilot.app, "Something is being written.")
        go.set()
        await until(lambda: not sqlite_of(store).lane._turn.locked())
    writer.join()
