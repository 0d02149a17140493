"""Files of every kind that is dropped, with what they hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tests.stateful.bodies import MAX_BYTES, Body
from tests.stateful.model import Account
from tests.support.inbox.packing import gzipped, zipped


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
        return f"{self.folder}/{self.stem}{self.content.ending}"

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


def _array(bodies: Sequence[Body]) -> Content:
    return Content(".json", b"[%b]" % b", ".join(body.raw for body in bodies), _of(bodies))


def _ndjson(bodies: Sequence[Body]) -> Content:
    return Content(".ndjson", _lines(bodies), _of(bodies))


def _gzip(bodies: Sequence[Body]) -> Content:
    return Content(".json.gz", gzipped(bodies[0].raw), _of(bodies[:1]))


def _gzipped_lines(bodies: Sequence[Body]) -> Content:
    return Content(".jsonl.gz", gzipped(_lines(bodies)), _of(bodies))


def _zip(bodies: Sequence[Body]) -> Content:
    members = {"a.json": bodies[0].raw, "read me.txt": b"Not a resume."}
    if bodies[1:]:
        members["b.ndjson"] = _lines(bodies[1:])
    return Content(".zip", zipped(members), _of(bodies))


def _lines_and_a_broken_one(bodies: Sequence[Body]) -> Content:
    return Content(".ndjson", _lines(bodies) + b"{no\n", _of(bodies, NOT_JSON))


def _array_and_a_bad_one(bodies: Sequence[Body]) -> Content:
    raws = [body.raw for body in bodies]
    return Content(".json", b"[%b]" % b",".join([*raws, b"{}"]), _of(bodies, NO_RESUME))


SEVERAL: Final[dict[str, Callable[[Sequence[Body]], Content]]] = {
    "array": _array,
    "NDJSON": _ndjson,
    "gzip": _gzip,
    "gzipped lines": _gzipped_lines,
    "zip": _zip,
    "lines, one broken": _lines_and_a_broken_one,
    "array, one bad": _array_and_a_bad_one,
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
