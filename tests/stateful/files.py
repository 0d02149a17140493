"""Files of every kind that is dropped, with what they hold, and what became of them."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from resumes.store import Store, import_ledger
from resumes.store.import_history import FileRow
from tests.stateful.model import Account
from tests.stateful.requests import MAX_BYTES, Body
from tests.support.inbox import oracle
from tests.support.inbox.packing import gzipped, zipped

LABEL: Final = "class-2026"
"""The folder below an account's that all files are dropped in."""


class State(StrEnum):
    """How far a file is, as far as is known."""

    WAITING = "waiting"
    """It lies where it was dropped."""
    CLAIMED = "claimed"
    """An importer was killed that had taken it."""
    HELD = "held"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Part:
    """One resume of a file, or why it is none."""

    body: Body | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file, and what is in them. `reason`: why nothing can be had of it at all."""

    ending: str
    raw: bytes
    parts: tuple[Part, ...] = ()
    reason: str | None = None

    @property
    def is_single(self) -> bool:
        """Whether it is read at once as one resume, and not unpacked when its turn comes."""
        is_one = self.ending == ".json" and not self.raw.startswith(b"[")
        return is_one and len(self.raw) <= MAX_BYTES


@dataclass(frozen=True, slots=True)
class Item:
    """What became of a part: done or duplicate, and of which resume."""

    outcome: str
    resume_id: str


@dataclass(eq=False, slots=True)
class File:
    """A dropped file and what became of it. `stem` is in its name wherever it lies."""

    number: int
    folder: str
    content: Content
    state: State = State.WAITING
    owner: Account | None = None
    """Whose it is, once it was taken."""

    claim_id: str = ""
    outcome: str = ""
    """The last that it came to."""

    is_asked_for: bool = False
    """Whether somebody asked for it to be tried again, or let in."""

    is_forgotten: bool = False
    """Whether the ledger may know nothing of it, or what was so before: an older store is back."""

    kills: int = 0
    """How many importers were killed that had something to do with it."""

    items: dict[int, Item] = field(default_factory=dict)
    """By the number of the part, those that reached their end for good."""

    @property
    def stem(self) -> str:
        """Its name without the ending."""
        return f"f{self.number}"

    @property
    def name(self) -> str:
        """Where it was dropped, below the watched folder."""
        return f"{self.folder}/{LABEL}/{self.stem}{self.content.ending}"

    @property
    def is_pending(self) -> bool:
        """Whether an importer has something to do with it."""
        return self.state is not State.ENDED or self.is_asked_for

    def part(self, item: int) -> Part:
        """The part of this number: 0 is that of a single one, others count from 1."""
        return self.content.parts[max(0, item - 1)]

    def is_put_away_as(self, outcome: str) -> bool:
        """Whether it came to this end, and its account can be asked for it."""
        was_put_away = self.state in (State.HELD, State.ENDED) and self.outcome == outcome
        return was_put_away and self.owner is not None and self.owner.is_open

    @property
    def open_parts(self) -> list[Part]:
        """The parts with a resume that have not reached their end."""
        first = 0 if self.content.is_single else 1
        parts = enumerate(self.content.parts, first)
        return [part for item, part in parts if part.body and item not in self.items]

    def __repr__(self) -> str:
        return f"<{self.name}, {self.state}>"


NOT_JSON: Final = Part(reason="invalid_json")
NO_RESUME: Final = Part(reason="invalid_resume")


def _of(bodies: Sequence[Body], *more: Part) -> tuple[Part, ...]:
    return (*(Part(body) for body in bodies), *more)


def _lines(bodies: Sequence[Body]) -> bytes:
    return b"".join(body.raw + b"\n" for body in bodies)


def one(body: Body) -> Content:
    """A file that holds this resume as it is."""
    return Content(".json", body.raw, _of([body]))


def _zip(bodies: Sequence[Body]) -> Content:
    members = {"a.json": bodies[0].raw, "read me.txt": b"Not a resume."}
    if bodies[1:]:
        members["b.ndjson"] = _lines(bodies[1:])
    return Content(".zip", zipped(members), _of(bodies))


def _array(bodies: Sequence[Body], *more: bytes) -> bytes:
    return b"[%b]" % b", ".join([*(body.raw for body in bodies), *more])


SEVERAL: Final[dict[str, Callable[[Sequence[Body]], Content]]] = {
    "array": lambda some: Content(".json", _array(some), _of(some)),
    "NDJSON": lambda some: Content(".ndjson", _lines(some), _of(some)),
    "gzip": lambda some: Content(".json.gz", gzipped(some[0].raw), _of(some[:1])),
    "gzipped lines": lambda some: Content(".jsonl.gz", gzipped(_lines(some)), _of(some)),
    "zip": _zip,
    "lines, one broken": lambda some: Content(
        ".ndjson", _lines(some) + b"{no\n", _of(some, NOT_JSON)
    ),
    "array, one bad": lambda some: Content(".json", _array(some, b"{}"), _of(some, NO_RESUME)),
}
"""By kind, what a file holds that is to be unpacked."""

LETTER: Final = b'{"header": {}, "sections": {}, "isCoverLetter": true}'
BAD: Final[dict[str, Content]] = {
    "no JSON": Content(".json", b"no JSON", reason="invalid_json"),
    "no resume": Content(".json", b'{"header": {}}', reason="invalid_resume"),
    "cover letter": Content(".json", LETTER, reason="cover_letter"),
    "too large": Content(".json", b" " * (MAX_BYTES + 1), reason="too_large"),
    "cut short": Content(".json.gz", gzipped(LETTER)[:-9], reason="invalid_archive"),
    "no zip": Content(".zip", b"no zip", reason="invalid_archive"),
}
"""By kind, what a file holds that is no resume at all."""

IGNORED: Final = (".txt", ".json.part")
"""Endings of files that are nobody's business."""

FILED: Final = re.compile(r"(?:([0-9a-f]{24})-[0-9a-f]{16}-)?(f\d+)(?:-[0-9a-f]{8,24})?\.[a-z.]+")
"""The name of a file that was put away: that of a held one begins with its claim's id."""


@dataclass(frozen=True, slots=True)
class End:
    """Where a file lies that was put away. `claim_id` is known by the name of a held one."""

    outcome: str
    path: Path
    claim_id: str

    @property
    def reason(self) -> str | None:
        """Why it is not done, as its report says."""
        if self.outcome == "done":
            return None
        return str(oracle.report_of(self.path)["reason"])


class Ends:
    """One look at a watched folder and its ledger."""

    def __init__(
        self, root: Path, store: Store, accounts: Iterable[Account], *, is_drained: bool
    ) -> None:
        self._root = root
        self._store = store
        self._ends = _find_ends(root, is_drained=is_drained)
        self._rows = _find_rows(store, accounts)

    def find(self, file: File) -> End | None:
        """Where the file was put away, if it was."""
        return self._ends.get(file.stem)

    def find_row(self, file: File) -> FileRow | None:
        """What the ledger of its account says of the file; None as well when that is gone."""
        return None if file.owner is None else self._rows.get((file.owner.id, file.name))

    def is_of(self, file: File, owner: Account | None) -> bool:
        """Whether the ledger has the file as one of the account's."""
        return owner is not None and (owner.id, file.name) in self._rows

    def is_waiting(self, file: File) -> bool:
        """Whether the file lies where it was dropped, and was not imported yet."""
        is_imported = any(name == file.name for _, name in self._rows)
        return not is_imported and (self._root / file.name).exists()

    def find_items(self, row: FileRow) -> dict[int, Item]:
        """The parts of a file that reached their end, by number."""
        items = import_ledger.find_items(self._store, row.account_id, row.claim_id)
        return {one.item: Item(one.outcome.value, one.resume_id) for one in items}


def _find_ends(root: Path, *, is_drained: bool) -> dict[str, End]:
    ends: dict[str, End] = {}
    for outcome in oracle.OUTCOMES:
        for path in oracle.files_of(root, outcome):
            if path.suffix == ".part" and not is_drained:
                continue  # who was killed was writing it, and who comes next does so again
            match = FILED.fullmatch(path.name)
            assert match is not None, f"{path} was not dropped by us"
            assert match[2] not in ends, f"{match[2]} was put away twice"
            ends[match[2]] = End(outcome, path, match[1] or "")
    return ends


def _find_rows(store: Store, accounts: Iterable[Account]) -> dict[tuple[str, str], FileRow]:
    """By account and name; without the history that an account brought with it."""
    history = {(one.id, claim_id) for one in accounts for claim_id in one.history}
    rows: dict[tuple[str, str], FileRow] = {}
    for row in oracle.iter_rows(store):
        if (row.account_id, row.claim_id) not in history:
            assert (row.account_id, row.name) not in rows, f"{row.name} is in the ledger twice"
            rows[row.account_id, row.name] = row
    return rows
