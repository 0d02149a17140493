"""A store that is away for a while, or takes its time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from resumes.errors import StoreUnavailable
from resumes.store.engine import Store
from tests.tui.driving import LIMIT_S

AWAY: Final = "The store is not there"


class Outage:
    """While it lasts, every store can be neither read nor written. Begins when it is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lasts = True
        for name in ("read", "write"):
            monkeypatch.setattr(Store, name, self._gated(getattr(Store, name)))

    def end(self) -> None:
        """The store is back."""
        self._lasts = False

    def _gated(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*arguments: Any, **named: Any) -> Any:
            if self._lasts:
                raise StoreUnavailable(AWAY)
            return method(*arguments, **named)

        return gated


@contextmanager
def held_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Whoever reads a store in a thread waits for the event, which the end of the block sets."""
    go = threading.Event()
    read = Store.read

    def wait(store: Store) -> Any:
        if threading.current_thread() is not threading.main_thread():
            assert go.wait(LIMIT_S)
        return read(store)

    monkeypatch.setattr(Store, "read", wait)
    try:
        yield go
    finally:
        go.set()
