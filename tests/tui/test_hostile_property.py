"""Whatever strangers write: every screen, pane, dialog and message draws it, and does nothing."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resumes.store.engine import Store
from tests.stores import open_home
from tests.tui.driving import LARGE, SMALL, running
from tests.tui.hostility import TEXTS, WORST, assert_harmless, assert_in_columns, fill
from tests.tui.walking import walk
from tui.app import ResumesApp

SIZES = st.sampled_from([SMALL, (120, 40), LARGE, (20, 5)])


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.004)


@contextmanager
def a_store_with(texts: Sequence[str]) -> Iterator[Store]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_home(Path(folder)) as store,
    ):
        fill(store, texts)
        yield store


async def look_through(store: Store, size: tuple[int, int]) -> None:
    """All was looked at, nothing on it acts, and the app still runs."""
    async with running(store, size=size) as pilot:
        async for pressed in walk(pilot):
            try:
                assert_harmless(pilot)
                assert_in_columns(pilot)
            except AssertionError as error:
                error.add_note(f"after {pressed}")
                raise
            assert pilot.app.is_running, pressed
        assert isinstance(pilot.app, ResumesApp)
        assert pilot.app.return_code is None


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
def test_the_worst_of_all_draws_nothing_but_text(size: tuple[int, int]) -> None:
    with a_store_with(WORST) as store:
        asyncio.run(look_through(store, size))


@given(st.lists(TEXTS, min_size=1, max_size=3), SIZES)
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_written_draws_nothing_but_text(
    texts: list[str], size: tuple[int, int]
) -> None:
    with a_store_with(texts) as store:
        asyncio.run(look_through(store, size))


@pytest.mark.campaign
@given(st.lists(TEXTS, min_size=1, max_size=12), SIZES)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_written_draws_nothing_but_text_at_length(
    texts: list[str], size: tuple[int, int]
) -> None:
    with a_store_with(texts) as store:
        asyncio.run(look_through(store, size))
