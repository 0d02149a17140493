"""Importers that are killed at random moments while files of every kind come in."""

import random
import threading
from collections import Counter
from collections.abc import Callable

from tests.support.inbox.oracle import OUTCOMES, Tally, names_in
from tests.support.inbox.packing import gzipped, zipped
from tests.support.inbox.scenes import Scene, Watch, kill
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


class Havoc:
    """Importers that are started and killed, over and over."""

    def __init__(self, scene: Scene, chosen: random.Random) -> None:
        self._scene = scene
        self._chosen = chosen
        self.kills: Counter[str] = Counter()

    def wreak(self) -> None:
        """An importer was started, and killed at some moment of its work, or the processes that
        help it were, or both."""
        importer = self._scene.start(settle_s=0.2)
        try:
            self._let_work(importer)
            victims = self._chosen.choice(["importer", "importer", "helpers", "both"])
            helpers = importer.children
            self.kills[victims if helpers else "importer"] += 1
            if victims != "importer":
                for pid in helpers:
                    kill(pid)
            if victims == "helpers":
                self._let_work(importer)
        finally:
            importer.kill()

    def _let_work(self, importer: Watch) -> None:
        # It goes on with what was left before it takes more.
        self._scene.wait_until(lambda: self._scene.is_ready(importer))
        threading.Event().wait(self._chosen.uniform(0.1, 1.5))
        assert importer.is_running, importer.log


def wreak_havoc(scene: Scene, chosen: random.Random, kills: int, burst: int) -> Supply:
    """Kill importers while files of every kind come in, so many before each start that the importer
    gets helpers. Return what came in, of which all is in its place."""
    supply = Supply(scene, random.Random(chosen.random()))
    havoc = Havoc(scene, chosen)
    over = threading.Event()

    def trickle() -> None:
        while not over.wait(0.02):
            with dropping:
                supply.drop(5)

    dropping = threading.Lock()
    supply.drop_each_kind()
    trickling = threading.Thread(target=trickle)
    trickling.start()
    try:
        for _ in range(kills):
            with dropping:
                supply.fill_up(chosen.randrange(burst // 2, burst))
            havoc.wreak()
    finally:
        over.set()
        trickling.join()
    with scene.watched(settle_s=0.2) as importer:
        scene.wait_for_all(supply.files, limit_s=60 + supply.files / 500)
        scene.wait_until(lambda: len(scene.slots()) == 1 + len(importer.children))
    supply.check()
    return supply
