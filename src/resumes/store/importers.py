"""The running importers, each of which reports every few seconds."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import delete, insert, select
from sqlmodel import Session

from resumes.clock import later, timestamp
from resumes.store.schema import importers
from resumes.store.store import WRITE_DEADLINE_S, Store

LIVE_S = 60
"""An importer that has not reported for this long has stopped, or cannot write to the store."""

REMEMBERED = timedelta(hours=24)
"""How long an importer that stopped reporting is listed. An importer whose clock was ahead by more is
not listed either, since it would seem to be alive for that long."""


class ImporterState(StrEnum):
    """Health of an importer."""

    OK = "ok"
    POLLING = "polling"
    """The folder sends no notifications of changes, so it is read repeatedly."""
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class ImporterFinding:
    """A problem of an importer. `key` identifies it among its findings."""

    key: str
    state: ImporterState
    sentence: str


@dataclass(frozen=True, slots=True)
class ImporterReport:
    """A report of an importer. `root` is escaped; `id` is 24 random hex digits.

    `waiting` counts the files that wait in the inbox, as last known.
    """

    id: str
    host: str
    pid: int
    root: str
    state: ImporterState
    findings: tuple[ImporterFinding, ...]
    waiting: int | None
    started_at: str


@dataclass(frozen=True, slots=True)
class SeenImporter:
    """An importer, and the time of its last report."""

    importer: ImporterReport
    seen_at: str
    age_s: float

    @property
    def is_live(self) -> bool:
        """Return whether it reported within the last minute."""
        return self.age_s < LIVE_S


def register(
    store: Store, importer: ImporterReport, *, deadline_s: float = WRITE_DEADLINE_S
) -> None:
    """Store the importer's report, and remove importers that were not seen for a day."""
    now_us = store.clock()
    values = asdict(importer) | {
        "state": importer.state.value,
        "findings": json.dumps([asdict(finding) for finding in importer.findings]),
        "seen_at": timestamp(now_us),
    }
    is_over = ~importers.c.seen_at.between(*_remembered(now_us))

    def change(session: Session) -> None:
        session.exec(delete(importers).where(is_over | (importers.c.id == importer.id)))
        session.exec(insert(importers).values(values))

    store.write(change, deadline_s=deadline_s)


def leave(store: Store, importer_id: str, *, deadline_s: float = WRITE_DEADLINE_S) -> None:
    """Remove the importer from the list."""
    statement = delete(importers).where(importers.c.id == importer_id)
    store.write(lambda session: session.exec(statement), deadline_s=deadline_s)


def list_importers(store: Store) -> list[SeenImporter]:
    """Return the importers that were seen within a day, by folder, the most recent first."""
    now_us = store.clock()
    statement = (
        select(importers)
        .where(importers.c.seen_at.between(*_remembered(now_us)))
        .order_by(importers.c.root, importers.c.seen_at.desc(), importers.c.id)
    )
    now = datetime.fromisoformat(timestamp(now_us))
    seen = []
    for row in store.fetch(statement):
        key, host, pid, root, state, found, waiting, started_at, seen_at = row
        findings = tuple(
            ImporterFinding(item["key"], ImporterState(item["state"]), item["sentence"])
            for item in json.loads(found)
        )
        report = ImporterReport(
            key, host, pid, root, ImporterState(state), findings, waiting, started_at
        )
        age_s = max(0.0, (now - datetime.fromisoformat(seen_at)).total_seconds())
        seen.append(SeenImporter(report, seen_at, age_s))
    return seen


def _remembered(now_us: int) -> tuple[str, str]:
    """Return the first and the last `seen_at` of importers that are remembered."""
    return later(now_us, -REMEMBERED), later(now_us, REMEMBERED)


def count_waiting(seen: Iterable[SeenImporter]) -> int:
    """Return the number of files that wait in the inboxes of live importers.

    Importers of one folder see the same files.
    """
    by_root: dict[str, int] = {}
    for known in seen:
        if known.is_live:
            root = known.importer.root
            by_root[root] = max(by_root.get(root, 0), known.importer.waiting or 0)
    return sum(by_root.values())
