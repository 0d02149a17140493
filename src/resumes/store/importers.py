"""The importers that are running, as each says of itself every few seconds."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select

from resumes.clock import later, timestamp
from resumes.store.schema import importers
from resumes.store.store import WRITE_DEADLINE_S, Store, each

LIVE_S = 60
"""An importer that has said nothing for so long has stopped, or cannot write to the store."""

REMEMBERED = timedelta(hours=24)
"""How long an importer that went without a word is remembered. What it said by a clock that was
ahead by more is no sign of life either, and would seem to be one for as long as that."""


class State(StrEnum):
    """How an importer fares."""

    OK = "ok"
    POLLING = "polling"
    """All is well, but the folder does not tell of changes: it is looked at again and again."""
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class ImporterFinding:
    """Something that people should know of an importer. `key` tells it from its other findings."""

    key: str
    state: State
    sentence: str


@dataclass(frozen=True, slots=True)
class Importer:
    """What an importer says of itself. `root` is escaped; `id` is 24 hex digits of its own making.

    `waiting` counts the files that wait in the inbox, as last known.
    """

    id: str
    host: str
    pid: int
    root: str
    state: State
    findings: tuple[ImporterFinding, ...]
    waiting: int | None
    started_at: str


@dataclass(frozen=True, slots=True)
class SeenImporter:
    """An importer, and when it last said so."""

    importer: Importer
    seen_at: str
    age_s: float

    @property
    def is_live(self) -> bool:
        """Whether it said so within the last minute."""
        return self.age_s < LIVE_S


@dataclass(frozen=True, slots=True)
class _Announcement:
    importer: Importer
    now: str
    forgotten_before: str
    forgotten_after: str


def announce(store: Store, importer: Importer, *, deadline_s: float = WRITE_DEADLINE_S) -> None:
    """The importer is listed as it is now; those not seen for a day are forgotten."""
    now_us = store.clock()
    first, last = _remembered(now_us)
    announcement = _Announcement(importer, timestamp(now_us), first, last)
    store.write(_announce, announcement, deadline_s=deadline_s)


@each
def _announce(connection: Connection, announcement: _Announcement) -> None:
    importer = announcement.importer
    connection.execute(
        delete(importers).where(
            (importers.c.seen_at < announcement.forgotten_before)
            | (importers.c.seen_at > announcement.forgotten_after)
            | (importers.c.id == importer.id)
        )
    )
    connection.execute(
        insert(importers).values(
            id=importer.id,
            host=importer.host,
            pid=importer.pid,
            root=importer.root,
            state=importer.state.value,
            findings=json.dumps([asdict(finding) for finding in importer.findings]),
            waiting=importer.waiting,
            started_at=importer.started_at,
            seen_at=announcement.now,
        )
    )


def leave(store: Store, importer_id: str, *, deadline_s: float = WRITE_DEADLINE_S) -> None:
    """The importer is not listed any more."""
    store.write(_leave, importer_id, deadline_s=deadline_s)


@each
def _leave(connection: Connection, importer_id: str) -> None:
    connection.execute(delete(importers).where(importers.c.id == importer_id))


def list_importers(store: Store) -> list[SeenImporter]:
    """The importers that were seen within a day, by folder, the last seen first."""
    now_us = store.clock()
    statement = (
        select(importers)
        .where(importers.c.seen_at.between(*_remembered(now_us)))
        .order_by(importers.c.root, importers.c.seen_at.desc(), importers.c.id)
    )
    now = datetime.fromisoformat(timestamp(now_us))
    with store.read() as connection:
        rows = connection.execute(statement).all()
    return [
        SeenImporter(
            Importer(
                id=row.id,
                host=row.host,
                pid=row.pid,
                root=row.root,
                state=State(row.state),
                findings=_parse_findings(row.findings),
                waiting=row.waiting,
                started_at=row.started_at,
            ),
            row.seen_at,
            max(0.0, (now - datetime.fromisoformat(row.seen_at)).total_seconds()),
        )
        for row in rows
    ]


def _remembered(now_us: int) -> tuple[str, str]:
    """Return the first and the last `seen_at` of importers that are remembered."""
    return later(now_us, -REMEMBERED), later(now_us, REMEMBERED)


def count_waiting(seen: Iterable[SeenImporter]) -> int:
    """The files that wait in the inboxes of live importers. Those of one folder see the same ones."""
    by_root: dict[str, int] = {}
    for one in seen:
        if one.is_live:
            root = one.importer.root
            by_root[root] = max(by_root.get(root, 0), one.importer.waiting or 0)
    return sum(by_root.values())


def _parse_findings(text: str) -> tuple[ImporterFinding, ...]:
    return tuple(
        ImporterFinding(one["key"], State(one["state"]), one["sentence"])
        for one in json.loads(text)
    )
