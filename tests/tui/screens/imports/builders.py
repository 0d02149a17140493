"""Imported files for the Imports screen, and an importer that takes one round at a time."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from importer.options import Options
from importer.rounds import Importer
from importer.telling import Remarks
from resumes.store import accounts, ledger
from resumes.store.engine import Store
from resumes.store.items import Items
from resumes.store.ledger import Claim, FileOutcome, FileRow, FileVerdict, Verdict
from tests.tui.driving import LIMIT_S
from tui.notices import Failure
from tui.store_client import StoreClient

ROOT = "/srv/inbox"


def an_id(digit: str) -> str:
    """The id of a file."""
    return digit * 24


def a_file(
    store: Store,
    claim_id: str = "1" * 24,
    outcome: FileOutcome = FileOutcome.FAILED,
    *,
    account: str = "ana",
    name: str | None = None,
    reason: str | None = "invalid_json",
    message: str | None = "Invalid JSON at byte 1: cut short",
    path: str | None = None,
    byte_offset: int | None = None,
    source: bytes = b"{",
    items: Items | None = None,
    root: str | None = ROOT,
) -> FileRow:
    """A file that came to this outcome is in the ledger; a done one has no reason."""
    claim = Claim(
        claim_id,
        name or f"{account}/cv-{claim_id[0]}.json",
        len(source),
        "2027-01-15T08:00:00.000Z",
        lambda: source,
        root=root,
        items=None if items is None else json.dumps(items.as_json()),
    )
    verdict = Verdict(outcome, reason, message, path, byte_offset)
    if outcome is FileOutcome.DONE:
        verdict = Verdict(outcome)
    owner = accounts.get_account(store, account)
    ledger.record(store, FileVerdict(owner.id, claim, verdict))
    return ledger.get_file(store, claim_id)


class Gate:
    """A function that ends when it is let go."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._go = threading.Event()
        self.begun = self.ended = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.begun += 1
        assert self._go.wait(LIMIT_S)
        try:
            return self._run(*args, **kwargs)
        finally:
            self.ended += 1

    def open(self) -> None:
        """All calls go on, and none waits any more."""
        self._go.set()


class WaitingClient(StoreClient):
    """A client whose calls are answered by the test."""

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[Callable[[Any], None], Callable[[Failure], None]]] = {}

    def read(
        self,
        group: str,
        run: Callable[[Store], Any],
        then: Callable[[Any], None],
        failed: Callable[[Failure], None],
    ) -> None:
        self.waiting[group] = then, failed

    def drop(self, group: str) -> None:
        self.waiting.pop(group, None)


class AnImporter:
    """An importer on a folder. Nothing happens but by `round`."""

    def __init__(self, store: Store, root: Path) -> None:
        self._root = root
        self._importer = Importer(
            store,
            root,
            Options(settle_s=0.0, workers=0),
            on_file=lambda _: None,
            remarks=Remarks(lambda _: None),
        )

    async def round(self) -> None:
        """Whatever lies there, or was asked for, came to its end."""
        for _ in range(3):
            await asyncio.to_thread(self._importer.round)

    def drop(self, name: str, content: bytes) -> None:
        """The file lies in the inbox."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def mend(self, content: bytes) -> None:
        """The one file that failed holds this now, where it lies."""
        (report,) = self._root.glob("_failed/*/*.report.json")
        name = report.name.replace(".report", "")
        report.with_name(name).write_bytes(content)

    def close(self) -> None:
        """The importer is gone."""
        self._importer.close()
