"""Pages that are read while others create, update and delete, and with cursors that are no good."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from resumes.store import open_store
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support import programs
from tests.support.api import load
from tests.support.api.load import RESUMES, Wire
from tests.support.api.scenes import page_of
from tests.support.api.serving import wait_until

CREATORS: Final = 4
UPDATERS: Final = 2
DELETERS: Final = 2
WALKERS: Final = 3
KEPT: Final = 300
"""So many are left alone by those who delete, so that there is always something to page through."""

WALKS: Final = 60
DELETED: Final = 500
"""So much happens at least."""

WITHIN_S: Final = 90.0


@dataclass(slots=True)
class Walk:
    """The pages that somebody saw who went from the first to the last."""

    began_s: float
    ended_s: float = 0.0
    ids: list[str] = field(default_factory=list)


class Shelf:
    """What was created and what was deleted, and when, by the monotonic clock."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._lock = threading.Lock()
        self._free: list[str] = []
        self.created_s: dict[str, float] = {}
        """When somebody was told of it."""
        self.began_to_delete_s: dict[str, float] = {}
        self.deleted_s: dict[str, float] = {}
        """When somebody was told that it is gone."""

    def put(self, resume_id: str) -> None:
        """It was created."""
        with self._lock:
            self.created_s[resume_id] = time.monotonic()
            self._free.append(resume_id)

    def pick(self) -> str | None:
        """Any one that is there; None if there is none."""
        with self._lock:
            return self._chance.choice(self._free) if self._free else None

    def take(self) -> str | None:
        """One that the caller is about to delete; None while there are few."""
        with self._lock:
            if len(self._free) <= KEPT:
                return None
            at = self._chance.randrange(len(self._free))
            self._free[at], self._free[-1] = self._free[-1], self._free[at]
            self.began_to_delete_s[self._free[-1]] = time.monotonic()
            return self._free.pop()

    @property
    def left(self) -> list[str]:
        """What there is when all is over."""
        return sorted(self._free)

    def violations(self, walk: Walk) -> Iterator[str]:
        """All that is wrong with what was seen on a walk."""
        yield from disorder(walk.ids)
        seen = set(walk.ids)
        for one, created_s in self.created_s.items():
            was_there = created_s < walk.began_s
            stayed = self.began_to_delete_s.get(one, walk.ended_s) >= walk.ended_s
            if was_there and stayed and one not in seen:
                yield f"{one} was skipped"
            if one in seen and self.deleted_s.get(one, walk.ended_s) < walk.began_s:
                yield f"{one} was gone, and seen"


def disorder(ids: Sequence[str]) -> Iterator[str]:
    """What comes twice, or not after the one before it."""
    return (f"{after} after {before}" for before, after in pairwise(ids) if after <= before)


class Clients:
    """All who use the account, each in a thread and on a connection of its own."""

    def __init__(self, url: str, key: str, shelf: Shelf) -> None:
        self._url = url
        self._key = key
        self._shelf = shelf
        self._stops = threading.Event()
        self.updates = 0
        self.walks: list[Walk] = []
        self.followed: list[str] = []
        """What somebody saw who went on with the last id, all the time and to the end."""

    def run(self, chance: random.Random) -> None:
        """They did enough. Raises what any of them met."""
        walkers = [partial(self._walk, random.Random(chance.random())) for _ in range(WALKERS)]
        works: list[Callable[[Wire], None]] = [*walkers]
        works += [self._create] * CREATORS
        works += [*[self._update] * UPDATERS, *[self._delete] * DELETERS]
        with ThreadPoolExecutor(len(works) + 1) as pool:
            working = [pool.submit(self._repeat, work) for work in works]
            working.append(pool.submit(self._follow))

            def is_enough() -> bool:
                return len(self.walks) >= WALKS and len(self._shelf.deleted_s) >= DELETED

            try:
                wait_until(
                    lambda: is_enough() or any(one.done() for one in working), within_s=WITHIN_S
                )
            finally:
                self._stops.set()
            for one in working:
                one.result()
        self._follow()  # what came after the last look

    def _repeat(self, work: Callable[[Wire], None]) -> None:
        with Wire(self._url) as wire:
            while not self._stops.is_set():
                work(wire)

    def _create(self, wire: Wire) -> None:
        answer = wire.call(load.a_request(self._key, "POST", body=load.a_body("paged")))
        assert answer.status == 201, answer
        self._shelf.put(answer.json["id"])

    def _update(self, wire: Wire) -> None:
        if (one := self._shelf.pick()) is None:
            self._stops.wait(0.01)
            return
        body = load.a_body("paged again")
        answer = wire.call(load.a_request(self._key, "PUT", f"{RESUMES}/{one}", body))
        assert answer.status == 200 or one in self._shelf.began_to_delete_s, answer
        self.updates += answer.status == 200

    def _delete(self, wire: Wire) -> None:
        taken = self._shelf.take()
        if taken is None:
            self._stops.wait(0.01)
            return
        answer = wire.call(load.a_request(self._key, "DELETE", f"{RESUMES}/{taken}"))
        assert answer.status == 200, answer
        self._shelf.deleted_s[taken] = time.monotonic()

    def _walk(self, chance: random.Random, wire: Wire) -> None:
        walk, limit = Walk(time.monotonic()), chance.choice((7, 20, 100))
        cursor: str | None = ""
        while cursor is not None:
            ids, cursor = self._page(wire, cursor, limit)
            walk.ids += ids
        walk.ended_s = time.monotonic()
        self.walks.append(walk)

    def _follow(self) -> None:
        with Wire(self._url) as wire:
            while True:
                ids, _ = self._page(wire, self.followed[-1] if self.followed else "", 100)
                if not ids and self._stops.is_set():
                    return
                self.followed += ids

    def _page(self, wire: Wire, cursor: str, limit: int) -> tuple[list[str], str | None]:
        answer = wire.call(load.a_request(self._key, path=page_of(cursor, limit)))
        assert answer.status == 200, answer
        page = answer.json
        return [entry["id"] for entry in page["resumes"]], page["pagination"]["cursor"]


@pytest.mark.chaos(
    22,
    fault="resumes are created, updated and deleted while clients read pages",
    promise="no entry appears twice or out of order, and no entry that exists during a whole pass through the list is skipped",
)
def test_pages_are_complete_while_resumes_are_created_and_deleted(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures, seed: random.Random
) -> None:
    """On a server with two workers, four clients create resumes, two update and two delete random
    resumes, three read all pages, and one polls for new resumes."""
    monkeypatch.setenv("RESUMES_DATABASE", url)
    key, shelf = checker.make_account(url), Shelf(seed)

    with programs.serving(tmp_path, "--workers", "2") as api:
        clients = Clients(api, key, shelf)
        clients.run(seed)

    wrong = [one for walk in clients.walks for one in shelf.violations(walk)]
    wrong += disorder(clients.followed)
    missed = set(shelf.left).difference(clients.followed)
    figures["passes_through_the_list"] = len(clients.walks)
    figures["entries_seen"] = sum(len(walk.ids) for walk in clients.walks)
    figures["created"] = len(shelf.created_s)
    figures["updated"] = clients.updates
    figures["deleted"] = len(shelf.deleted_s)
    figures["violations"] = len(wrong)
    figures["skipped_by_the_polling_client"] = len(missed)
    assert not wrong
    assert not missed
    with open_store(url) as store:
        assert [resume_id for resume_id, _ in checker.iter_stored(store)] == shelf.left
        checker.check_soundness(store)
