"""Store calls in threads, and what becomes of their replies."""

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import on
from textual.app import App
from textual.screen import Screen

from resumes.errors import StoreUnavailable
from resumes.store.engine import Store
from tests.tui.driving import LIMIT_S, until
from tui.notices import Failure
from tui.store_client import Reply, StoreClient

pytestmark = pytest.mark.anyio


class Asking(Screen[None]):
    """A screen that keeps what it hears."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.client = StoreClient(store, self)
        self.heard: list[str] = []
        self.failures: list[Failure] = []
        self.replies = 0

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        self.replies += 1
        self.client.deliver(reply)


@asynccontextmanager
async def asking(store: Store) -> AsyncIterator[Asking]:
    app: App[None] = App()
    async with app.run_test():
        screen = Asking(store)
        await app.push_screen(screen)
        yield screen


class Held:
    """A call that ends when it is let go."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, store: Store) -> str:
        self.begun.set()
        assert self.go.wait(LIMIT_S)
        return self.answer


async def test_a_reply_that_comes_late_is_dropped(store: Store) -> None:
    async with asking(store) as screen:
        old, new = Held("old"), Held("new")
        for call in (old, new):
            screen.client.read("page", call, screen.heard.append, screen.failures.append)
            await until(call.begun.is_set)

        new.go.set()
        await until(lambda: screen.heard)
        old.go.set()
        await until(lambda: screen.replies == 2)

        assert screen.heard == ["new"]


async def test_groups_do_not_disturb_each_other(store: Store) -> None:
    async with asking(store) as screen:
        page, resume = Held("page"), Held("resume")
        screen.client.read("page", page, screen.heard.append, screen.failures.append)
        screen.client.read("resume", resume, screen.heard.append, screen.failures.append)

        resume.go.set()
        await until(lambda: screen.heard == ["resume"])
        page.go.set()

        await until(lambda: screen.heard == ["resume", "page"])


async def test_what_was_dropped_is_not_heard(store: Store) -> None:
    async with asking(store) as screen:
        held = Held("unwanted")
        screen.client.read("page", held, screen.heard.append, screen.failures.append)
        screen.client.drop("page")
        held.go.set()

        await until(lambda: screen.replies == 1)

        assert screen.heard == []


async def test_every_change_is_heard(store: Store) -> None:
    async with asking(store) as screen:
        first, second = Held("first"), Held("second")
        for call in (first, second):
            screen.client.change(call, screen.heard.append, screen.failures.append)
            await until(call.begun.is_set)
        second.go.set()
        await until(lambda: screen.heard == ["second"])
        first.go.set()

        await until(lambda: screen.heard == ["second", "first"])


async def test_a_store_error_becomes_its_notice(store: Store) -> None:
    def fail(_: Store) -> str:
        raise StoreUnavailable("The store is busy")

    async with asking(store) as screen:
        screen.client.read("page", fail, screen.heard.append, screen.failures.append)

        await until(lambda: screen.failures)

        assert screen.failures[0].message == "The store is busy"


async def test_an_unforeseen_error_is_logged_whole_and_shown_by_its_reference(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Store) -> str:
        raise ZeroDivisionError("secret details")

    async with asking(store) as screen:
        with caplog.at_level(logging.ERROR, "resumes.tui"):
            screen.client.read("page", fail, screen.heard.append, screen.failures.append)
            await until(lambda: screen.failures)

    reference = screen.failures[0].message.removeprefix("Internal error ")
    assert "secret" not in screen.failures[0].message
    assert f"Internal error {reference}" in caplog.text
    assert "secret details" in caplog.text
