"""Files of every kind, dropped in every way, and what must become of them."""

import random
from collections import Counter
from collections.abc import Callable

from tests.support.inbox.oracle import OUTCOMES, Tally, names_in
from tests.support.inbox.packing import gzipped, zipped
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document

PLACES = 40
"""The resumes that the account `bo` may have; `ana` has no limit."""


class Supply:
    """Drops files into a scene and keeps count. Everything random comes from `chosen`."""

    def __init__(self, scene: Scene, chosen: random.Random) -> None:
        self.scene = scene
        self.files = 0
        self.resumes: list[str] = []
        """The names on the resumes that the account `ana` must have in the end."""
        self.ends: Counter[str] = Counter()
        """How many of its files must come to which end."""
        self.offered = 0
        """Different resumes for the account `bo`."""
        self._chosen = chosen
        self._kinds: dict[str, Callable[[], None]] = {
            "plain": lambda: self._drop(".json", self._new()),
            "warned": lambda: self._drop(".json", self._new(nickname="w")),
            "in two pieces": self._in_two_pieces,
            "moved in": self._moved_in,
            "again": self._again,
            "refused": lambda: self._drop(".json", b'{"header": {}}', "failed"),
            "no JSON": lambda: self._drop(".json", b"no JSON", "failed"),
            "lines": lambda: self._drop(".ndjson", self._lines(3)),
            "gzipped": lambda: self._drop(".json.gz", gzipped(self._new())),
            "zipped": lambda: self._drop(
                ".zip", zipped({"a.json": self._new(), "b.ndjson": self._lines(2)})
            ),
            "array": lambda: self._drop(".json", b"[%s,%s]" % (self._new(), self._new())),
            "damaged": lambda: self._drop(".json.gz", gzipped(a_document("x"))[:-9], "failed"),
            "for a full account": self._for_bo,
        }
        scene.account("ana")
        scene.account("bo", most=PLACES)

    def drop_each_kind(self) -> None:
        """One file of each kind."""
        for make in self._kinds.values():
            make()

    def drop(self, count: int) -> None:
        """So many files, most of them plain."""
        kinds = list(self._kinds)
        weights = [30 if kind == "plain" else 1 for kind in kinds]
        for kind in self._chosen.choices(kinds, weights, k=count):
            self._kinds[kind]()

    def fill_up(self, count: int) -> None:
        """So many files are in the inboxes, if there were fewer."""
        waiting = sum(len(names_in(self.scene.root / name)) for name in ("ana", "bo"))
        self.drop(max(0, count - waiting))

    def check(self) -> Tally:
        """Nothing is lost and nothing doubled, now that all is drained."""
        names = list(self.resumes)
        places = min(self.offered, PLACES)
        found = self.scene.tally()
        bo = self.scene.names("bo")
        assert len(bo) == len(set(bo)) == places
        self.scene.check(files=self.files, resumes={"ana": names, "bo": bo})
        ends = self.ends + Counter(done=places, held=self.offered - places)
        counted = {name: getattr(found, name) for name in OUTCOMES}
        expected = {name: ends[name] for name in OUTCOMES}
        assert counted == expected, f"{counted}, not {expected}"
        return found

    def _drop(self, ending: str, content: bytes, end: str = "done") -> None:
        self.scene.drop(f"ana/{self._next()}{ending}", content)
        self.ends[end] += 1

    def _next(self) -> str:
        self.files += 1
        folder = self._chosen.choice(["", "sub/", "sub/deep/"])
        return f"{folder}{self.files}"

    def _new(self, **top_level: object) -> bytes:
        name = f"resume {len(self.resumes)}"
        self.resumes.append(name)
        return a_document(name, **top_level)

    def _lines(self, count: int) -> bytes:
        return b"".join(self._new() + b"\n" for _ in range(count))

    def _in_two_pieces(self) -> None:
        body = self._new()
        path = self.scene.drop(f"ana/{self._next()}.json", b"")
        with path.open("r+b", buffering=0) as file:
            file.write(body[:20])
            file.write(body[20:])
        self.ends["done"] += 1

    def _moved_in(self) -> None:
        path = self.scene.drop(f"ana/.writing {self.files}", self._new())
        path.rename(self.scene.root / "ana" / f"{self._next().rpartition('/')[2]}.json")
        self.ends["done"] += 1

    def _again(self) -> None:
        if self.resumes:
            self._drop(".json", self._plain_again(), "duplicate")

    def _plain_again(self) -> bytes:
        # Of the same content each time, so that it is a duplicate whatever is imported first.
        if "twice" not in self.resumes:
            self.resumes.append("twice")
            self._drop(".json", a_document("twice"))
        return a_document("twice")

    def _for_bo(self) -> None:
        self.offered += 1
        self.files += 1
        self.scene.drop(f"bo/{self.offered}.json", a_document(f"offered {self.offered}"))
