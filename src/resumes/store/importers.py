"""The running importers. Each importer stores a report every few seconds."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import delete
from sqlmodel import Session, select

from resumes.clock import later, timestamp
from resumes.store.schema import ImporterBase, ImporterProcess, importers
from resumes.store.store import WRITE_DEADLINE_S, Store

LIVE_S = 60
"""The time without a report after which an importer has stopped or cannot write to the store."""

REMEMBERED = timedelta(hours=24)
"""How long an importer is listed after its last report. If an importer's clock was further ahead
than this, it is not listed, since it would seem to be running until that time."""


class ImporterState(StrEnum):
    """The health of an importer."""

    OK = "ok"
    POLLING = "polling"
    """The operating system does not report changes of the folder, so it is scanned repeatedly."""
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class ImporterFinding:
    """A problem of an importer. `key` identifies the problem among the importer's findings."""

    key: str
    state: ImporterState
    sentence: str


class ImporterReport(ImporterBase):
    """A report of an importer about itself."""

    state: ImporterState
    findings: tuple[ImporterFinding, ...] = ()


class SeenImporter(ImporterReport):
    """An importer, with the report that it stored `age_s` seconds ago."""

    age_s: float

    @property
    def is_live(self) -> bool:
        """Return whether it has reported within the last minute."""
        return self.age_s < LIVE_S


def register(
    store: Store, importer: ImporterReport, *, deadline_s: float = WRITE_DEADLINE_S
) -> None:
    """Store the importer's report, and remove importers that have not reported for a day."""
    now_us = store.clock()
    findings = json.dumps([asdict(finding) for finding in importer.findings])
    update = {"findings": findings, "seen_at": timestamp(now_us)}
    is_over = ~importers.c.seen_at.between(*_remembered(now_us))

    def change(session: Session) -> None:
        session.exec(delete(importers).where(is_over | (importers.c.id == importer.id)))
        session.add(ImporterProcess.model_validate(importer, update=update))

    store.write(change, deadline_s=deadline_s)


def leave(store: Store, importer_id: str, *, deadline_s: float = WRITE_DEADLINE_S) -> None:
    """Remove the importer from the list."""
    statement = delete(importers).where(importers.c.id == importer_id)
    store.write(lambda session: session.exec(statement), deadline_s=deadline_s)


def list_importers(store: Store) -> list[SeenImporter]:
    """Return the importers that reported within the last day, by folder, latest report first."""
    now_us = store.clock()
    statement = (
        select(ImporterProcess)
        .where(importers.c.seen_at.between(*_remembered(now_us)))
        .order_by(importers.c.root, importers.c.seen_at.desc(), importers.c.id)
    )
    now = datetime.fromisoformat(timestamp(now_us))
    seen = []
    for row in store.fetch(statement):
        age_s = max(0.0, (now - datetime.fromisoformat(row.seen_at)).total_seconds())
        update = {"findings": json.loads(row.findings), "age_s": age_s}
        seen.append(SeenImporter.model_validate(row, update=update))
    return seen


def _remembered(now_us: int) -> tuple[str, str]:
    """Return the earliest and the latest `seen_at` with which an importer is listed."""
    return later(now_us, -REMEMBERED), later(now_us, REMEMBERED)


def count_waiting(seen: Iterable[SeenImporter]) -> int:
    """Return the number of files that are waiting in the inboxes of live importers.

    If several importers watch a folder, its files are counted only once.
    """
    by_root: dict[str, int] = {}
    for known in seen:
        if known.is_live:
            by_root[known.root] = max(by_root.get(known.root, 0), known.waiting or 0)
    return sum(by_root.values())
