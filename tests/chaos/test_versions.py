"""Versions of resumes that replace each other over HTTP and from files, while every process is killed."""

import itertools
import json
import math
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest
from sqlalchemy import Column, func, select

from cli.errors import ExitCode
from resumes.errors import StoreError
from resumes.store import Store, accounts, creation, open_store, plans
from resumes.store.identifiers import position_of
from resumes.store.import_ledger import FileOutcome
from resumes.store.plans import PlanChange
from resumes.store.schema import (
    account_usage,
    imported_files,
    imported_items,
    replaced_resumes,
    resumes,
)
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.checker import let_pass
from tests.support import postgres, programs
from tests.support.api import full_disks, load
from tests.support.api.load import RESUMES, Answer, Lost, Wire
from tests.support.api.scenes import is_listening, page_of
from tests.support.api.serving import wait_until
from tests.support.inbox import oracle
from tests.support.resumes import a_document, a_resume
from tests.support.waiting import workers_of

RESIDENTS: Final = 300
"""Resumes that are updated, but never replaced or deleted."""
PERSONS: Final = 24
"""Persons whose versions replace each other."""
PLACES: Final = 16
"""Places for their resumes: fewer than persons, so that the quota is reached."""
KILLS: Final = 30
DRAINED_S: Final = 180.0


class Fleet:
    """The servers and importers of a home, which are killed and started again."""

    def __init__(self, home: Path, url: str) -> None:
        self._home = home
        self._url = url
        ports = [postgres.free_port() for _ in range(2)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        first, second = (("serve", "--port", str(port)) for port in ports)
        importer = ("watch", "--settle", "0.2")
        self._commands = [(*first, "--workers", "2"), second, importer, importer]
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Fleet":
        self._running = [self._start(number) for number in range(len(self._commands))]
        wait_until(lambda: all(map(is_listening, self.urls)))
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._running:
            program.terminate()
        try:
            ends = {program.wait(60) for program in self._running}
            assert ends <= {0, -signal.SIGTERM}  # the signal ends one that has just been started
        finally:
            for program in self._running:
                program.kill()
        for number in range(len(self._running)):
            assert "Traceback" not in self._log(number).read_text()

    def _log(self, number: int) -> Path:
        return self._home / f"{number}.log"

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        with self._log(number).open("ab") as log:
            command = programs.command(self._home, *self._commands[number])
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)

    def revive(self) -> None:
        """Start the programs again that found no database, as a service manager does."""
        for number, program in enumerate(self._running):
            if program.poll() is not None:
                assert program.returncode == ExitCode.UNAVAILABLE, self._log(number).read_text()
                self._running[number] = self._start(number)

    def kill_one(self, chance: random.Random) -> None:
        """Kill a process, and start it again unless that is done for it."""
        self.revive()
        victims = [partial(self._kill, number) for number in range(len(self._commands))]
        victims.append(partial(self._kill_worker, chance))
        if self._url.startswith("postgresql"):
            victims.append(partial(self._kill_session, chance))
        chance.choice(victims)()

    def _kill(self, number: int) -> None:
        self._running[number].kill()
        self._running[number].wait()
        # A killed supervisor's workers end by themselves.
        wait_until(lambda: number >= len(self.urls) or not is_listening(self.urls[number]))
        self._running[number] = self._start(number)

    def _kill_worker(self, chance: random.Random) -> None:
        if workers := workers_of(self._running[0].pid):
            os.kill(chance.choice(workers), signal.SIGKILL)

    def _kill_session(self, chance: random.Random) -> None:
        """Kill a process of PostgreSQL, which then ends all sessions and recovers."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            sessions = f"SELECT pid FROM pg_stat_activity WHERE {postgres.OURS}"
            pids = [pid for (pid,) in connection.execute(sessions.encode())]
        os.kill(chance.choice(pids), signal.SIGKILL)


@dataclass(slots=True)
class Change:
    """A request that changes a resume. `answer` is None if it is unknown whether it was served."""

    method: str
    resume_id: str
    person: str
    title: str
    began_s: float
    answer: Answer | None = None
    ended_s: float = math.inf

    @property
    def status(self) -> int:
        """The status of the answer, 0 without one."""
        return self.answer.status if self.answer else 0

    @property
    def replaced(self) -> Sequence[str]:
        """The ids of the resumes that it replaced, according to the answer."""
        found: Sequence[str] = self.answer.json.get("replaced", ()) if self.answer else ()
        return found


class Dropped(NamedTuple):
    """A file in the watched folder, with resumes of these persons with these titles."""

    resumes: Sequence[tuple[str, str]]
    at_s: float
    is_copy: bool
    """Whether an earlier file has the same bytes."""


class Walk(NamedTuple):
    """The ids on all pages, from the first to the last."""

    began_s: float
    ended_s: float
    ids: Sequence[str]


@dataclass
class Clients:
    """The clients of an account, what they asked for, and what they saw."""

    urls: Sequence[str]
    key: str
    root: Path
    residents: Sequence[str]
    changes: list[Change] = field(default_factory=list)
    dropped: dict[str, Dropped] = field(default_factory=dict)
    walks: list[Walk] = field(default_factory=list)
    pages: int = 0
    followed: list[str] = field(default_factory=list)
    """The ids that a client saw that always continues with the last one."""
    _known: "deque[str]" = field(default_factory=partial(deque, maxlen=PLACES))
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @contextmanager
    def at_work(self, seed: random.Random) -> Iterator[Callable[[], None]]:
        """Have the clients work during the block, which can call for the error of one that failed."""
        works = [*[self.create] * 3, *[self.update] * 2, self.delete, self.drop]
        works += [*[self.walk] * 2, self.follow]
        stops = threading.Event()

        def repeat(work: Callable[[random.Random], None], chance: random.Random) -> None:
            while not stops.is_set():
                work(chance)

        with ThreadPoolExecutor(len(works)) as pool:
            working = [pool.submit(repeat, work, random.Random(seed.random())) for work in works]

            def check() -> None:
                for one in working:
                    if one.done() or stops.is_set():
                        one.result()

            try:
                yield check
            finally:
                stops.set()
            check()

    def _ask(self, chance: random.Random, data: bytes, *, is_safe: bool = True) -> Answer | None:
        """Send the request until it is answered; without `is_safe`, only until it may have been served."""
        while True:
            try:
                with Wire(chance.choice(self.urls)) as wire:
                    answer = wire.call(data)
            except Lost:
                if not is_safe:
                    return None
            except OSError:  # not sent
                let_pass(0.01)
            else:
                if answer.status not in (409, 503):
                    return answer
                if not is_safe and answer.json["error"].startswith(full_disks.UNKNOWN):
                    return None

    def _read(self, chance: random.Random, path: str) -> Answer:
        answer = self._ask(chance, load.a_request(self.key, path=path))
        assert answer is not None
        return answer

    def _change(self, chance: random.Random, change: Change, **headers: str) -> Change:
        body = a_document(change.person, title=change.title) if change.person else b""
        path = f"{RESUMES}/{change.resume_id}".removesuffix("/")
        data = load.a_request(self.key, change.method, path, body, **headers)
        change.answer = self._ask(chance, data, is_safe=change.method == "POST")
        if change.answer is not None:
            change.ended_s = time.time()
        self.changes.append(change)
        return change

    def _new(self, chance: random.Random) -> tuple[str, str]:
        """A person, and a title that no other version has."""
        return f"Person {chance.randrange(PERSONS)}", f"Version {next(self._numbers)}"

    def create(self, chance: random.Random) -> None:
        """Create a version, which needs a place if it is the person's first."""
        change = Change("POST", "", *self._new(chance), time.time())
        self._change(chance, change, Idempotency_Key=change.title.replace(" ", "-"))
        assert change.status in (201, 403), change
        if change.status == 201 and change.answer:
            change.resume_id = change.answer.json["id"]
            self._known.append(change.resume_id)

    def update(self, chance: random.Random) -> None:
        """Update a resume; make some of them those of another person."""
        is_resident = chance.random() < 0.2 or not self._known
        resume_id = chance.choice(self.residents if is_resident else self._known)
        person, title = self._new(chance)
        tag = {}
        if is_resident or chance.random() < 0.75:
            shown = self._read(chance, f"{RESUMES}/{resume_id}")
            if shown.status == 404:
                return
            person = shown.json["header"]["name"]
            tag = chance.choice(({}, {"If_Match": shown.headers["etag"]}))
        change = self._change(chance, Change("PUT", resume_id, person, title, time.time()), **tag)
        assert change.status in (0, 200, 404, *[412] * len(tag)), change

    def delete(self, chance: random.Random) -> None:
        """Delete a version, which frees a place."""
        if self._known:
            resume_id = chance.choice(self._known)
            shown = self._read(chance, f"{RESUMES}/{resume_id}")
            tag = chance.choice(({}, {"If_Match": shown.headers.get("etag", "*")}))
            change = Change("DELETE", resume_id, "", "", time.time())
            self._change(chance, change, **tag)
            assert change.status in (0, 200, 404, *[412] * len(tag)), change
        let_pass(0.1)

    def drop(self, chance: random.Random) -> None:
        """Drop a file of one resume or of two, or a copy of an earlier file."""
        is_copy = bool(self.dropped) and chance.random() < 0.1
        new = [self._new(chance) for _ in range(chance.choice((1, 1, 1, 2)))]
        if is_copy:
            new = [*chance.choice([*self.dropped.values()]).resumes]
        name = f"{next(self._numbers)}.{'nd' * (len(new) > 1)}json"
        self.dropped[name] = Dropped(new, time.time(), is_copy)
        written = self.root.parent / name
        written.write_bytes(b"\n".join(a_document(one, title=title) for one, title in new))
        written.rename(self.root / "ada" / name)
        let_pass(0.1)

    def walk(self, chance: random.Random) -> None:
        """Read all pages, the next one from any server."""
        began_s, limit = time.time(), chance.choice((7, 20, 100))
        ids: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            more, cursor = self._page(chance, cursor, limit)
            ids += more
        self.walks.append(Walk(began_s, time.time(), ids))
        self._known.extend(set(ids[-PLACES // 2 :]).difference(self.residents))

    def follow(self, chance: random.Random) -> None:
        """Read what follows the last id."""
        self.followed += self._page(chance, self.followed[-1] if self.followed else "", 100)[0]

    def _page(self, chance: random.Random, cursor: str, limit: int) -> tuple[list[str], str | None]:
        answer = self._read(chance, page_of(cursor, limit))
        assert answer.status == 200, answer
        self.pages += 1
        page = answer.json
        return [entry["id"] for entry in page["resumes"]], page["pagination"]["cursor"]


class Removal(NamedTuple):
    """A change that removed a resume, or without `is_certain` may have."""

    began_s: float
    ended_s: float
    is_certain: bool


class Past:
    """What became of each resume, from the answers to the clients and from the ledger."""

    def __init__(self, clients: Clients, store: Store, account_id: str) -> None:
        def read(*columns: Column[Any]) -> Sequence[Any]:
            return store.fetch(select(*columns).where(columns[0].table.c.account_id == account_id))

        self._clients = clients
        listed = read(*resumes.c["id", "title"])
        self.stored = {resume_id: title or "" for resume_id, title in listed}
        self.replaced = read(*replaced_resumes.c["resume_id", "replaced_id"])
        self.created = {one.resume_id: one for one in clients.changes if one.status == 201}
        self.sent = {one: (f"Resident {n}", "") for n, one in enumerate(clients.residents)}
        """The person and the title of each resume as it was created, by id."""
        self.sent |= {one.resume_id: (one.person, one.title) for one in self.created.values()}
        self.arrivals = {resume_id: resume_id for resume_id in self.sent}
        """The claim of each resume from a file, and the id of each other one, by id."""
        self._read_ledger(read)
        self._updates: defaultdict[str, list[Change]] = defaultdict(list)
        self._removals: defaultdict[str, list[Removal]] = defaultdict(list)
        for change in clients.changes:
            if change.status not in (0, 200):
                continue
            removed = [change.resume_id] if change.method == "DELETE" else change.replaced
            for old_id in removed:
                removal = Removal(change.began_s, change.ended_s, change.status == 200)
                self._removals[old_id].append(removal)
            if change.method == "PUT":
                self._updates[change.resume_id].append(change)
        for by_id, old_id in self.replaced:
            by = self.created.get(by_id)
            since_s = by.began_s if by else self.files[self.arrivals[by_id]].at_s
            removal = Removal(since_s, by.ended_s if by else math.inf, is_certain=True)
            self._removals[old_id].append(removal)

    def _read_ledger(self, read: Callable[..., Sequence[Any]]) -> None:
        files = read(*imported_files.c["claim_id", "name", "outcome", "resume_id"])
        self.files = {
            claim_id: self._clients.dropped[name.removeprefix("ada/")]
            for claim_id, name, *_ in files
        }
        outcomes = [*read(*imported_items.c["claim_id", "item", "outcome", "resume_id"])]
        outcomes += [(file[0], 1, *file[2:]) for file in files if file.resume_id is not None]
        self._duplicates = []
        for claim_id, item, outcome, resume_id in outcomes:
            if outcome == FileOutcome.DONE:
                self.arrivals[resume_id] = claim_id
                self.sent[resume_id] = self.files[claim_id].resumes[item - 1]
            elif not self.files[claim_id].is_copy:
                self._duplicates.append((claim_id, resume_id))

    def iter_older_over_newer(self) -> Iterator[str]:
        """Find files that replaced a later version, or were refused for an earlier one."""
        for by_id, old_id in self.replaced:
            claim_id = self.arrivals[by_id]
            if claim_id == by_id:
                continue  # without a claim, it is the newest
            at_s = position_of(claim_id) / 1_000_000 + 0.001  # updates have milliseconds
            updates = [one for one in self._updates[old_id] if one.status == 200]
            if self.arrivals[old_id] > claim_id or any(one.began_s > at_s for one in updates):
                yield f"{by_id} of the claim {claim_id} replaced {old_id}"
        for claim_id, newer_id in self._duplicates:
            at_s = position_of(claim_id) / 1_000_000
            is_later = any(one.ended_s > at_s for one in self._updates[newer_id])
            if self.arrivals[newer_id] < claim_id and not is_later:
                yield f"the claim {claim_id} is a duplicate of {newer_id}"

    def iter_lost(self) -> Iterator[str]:
        """Find resumes that are gone, back, removed twice or older than they were without a reason."""
        yield from (f"{one} was never sent" for one in self.stored.keys() - self.arrivals.keys())
        for resume_id in self.arrivals:
            removals = [one for one in self._removals[resume_id] if one.is_certain]
            title = self.stored.get(resume_id)
            if len(removals) > (title is None):
                yield f"{resume_id} is stored, or was removed more than once: {removals}"
            if title is None and not self._removals_of(resume_id):
                yield f"{resume_id} of {self.sent[resume_id]} is gone"
            if title is not None and not self._is_latest(resume_id, title):
                yield f"{resume_id} is stored as {title}"

    def _is_latest(self, resume_id: str, title: str) -> bool:
        """Whether no acknowledged update began after the one with this title had ended."""
        since_s = max((one.began_s for one in self._updates[resume_id] if one.status), default=0)
        mine = [one.ended_s for one in self._updates[resume_id] if one.title == title]
        return since_s <= max(mine, default=0.0 if title == self.sent[resume_id][1] else -1.0)

    def _removals_of(self, resume_id: str) -> Sequence[Removal]:
        """What removed the resume, or else the updates without an answer that may have replaced it."""
        persons = {self.sent[resume_id][0], *(one.person for one in self._updates[resume_id])}
        return self._removals[resume_id] or [
            Removal(one.began_s, math.inf, is_certain=False)
            for updates in [*self._updates.values()]
            for one in updates
            if not one.status and one.person in persons
        ]

    def iter_misread(self) -> Iterator[str]:
        """Find what the readers missed, or saw twice, out of order, or after it was gone."""
        created_s = dict.fromkeys(self._clients.residents, 0.0)
        created_s |= {resume_id: one.ended_s for resume_id, one in self.created.items()}
        walks = [(walk, {*walk.ids}) for walk in self._clients.walks]
        for resume_id, since_s in created_s.items():
            removals = self._removals_of(resume_id)
            leaving_s = min((one.began_s for one in removals), default=math.inf)
            gone_s = min((one.ended_s for one in removals), default=math.inf)
            for walk, seen in walks:
                was_there = since_s < walk.began_s and walk.ended_s < leaving_s
                if was_there and resume_id not in seen:
                    yield f"{resume_id} was skipped"
                if gone_s < walk.began_s and resume_id in seen:
                    yield f"{resume_id} was gone, and seen"
        for walk, _ in walks:
            yield from disorder(walk.ids)
        yield from disorder(self._clients.followed)
        yield from (f"{one} was skipped" for one in self.stored.keys() - {*self._clients.followed})


def disorder(ids: Sequence[str]) -> Iterator[str]:
    """Find ids that come twice, or not after the one before."""
    return (f"{after} after {before}" for before, after in pairwise(ids) if after <= before)


@pytest.mark.chaos(
    22,
    fault="servers, importers and PostgreSQL sessions are killed while resumes are created, replaced, updated and deleted in an account that is nearly full",
    promise="no account exceeds its quota, no person has two resumes, no older version replaces a newer one, nothing is lost, and clients that read pages skip and repeat nothing",
)
def test_versions_replace_each_other_while_processes_are_killed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures, seed: random.Random
) -> None:
    """Two servers (one of them with two workers) and two importers share a store. Clients create,
    update and delete versions of the resumes of 24 persons, and files bring more versions; the quota
    has 16 places for them, beside 300 other resumes. Two clients read all pages, and one polls for
    new resumes. At 30 random moments, the test sends SIGKILL to a server, a worker, an importer or
    a PostgreSQL session."""
    monkeypatch.setenv("RESUMES_DATABASE", url)
    key, root = checker.make_account(url), tmp_path / "inbox"
    (root / "ada").mkdir(parents=True)
    looks = Counter[bool]()
    with open_store(url) as store:
        account_id = accounts.set_options(store, "ada", {"on_newer": "replace"}).id
        new = [a_resume(f"Resident {number}") for number in range(RESIDENTS)]
        residents = [
            one.id
            for one in creation.create(store, account_id, new)
            if isinstance(one, creation.Created)
        ]
        plans.set_plan_limits(store, PlanChange("business", RESIDENTS + PLACES))
        counts = (
            select(
                account_usage.c.resume_count, func.count(), func.count(resumes.c.person.distinct())
            )
            .join(resumes, resumes.c.account_id == account_usage.c.account_id)
            .where(resumes.c.account_id == account_id)
            .group_by(account_usage.c.resume_count)
        )

        def look(limit: float = RESIDENTS + PLACES) -> None:
            """Compare the counter with the rows, and both with their persons and with the limit."""
            with suppress(StoreError):
                ((count, rows, persons),) = store.fetch(counts)
                looks[count == rows == persons <= limit] += 1

        with Fleet(tmp_path, url) as fleet:
            clients = Clients(fleet.urls, key, root, residents)
            with clients.at_work(seed) as check:
                for _ in range(KILLS):
                    for _ in range(seed.randrange(10, 100)):
                        let_pass(0.02)
                        look()
                    check()
                    fleet.kill_one(seed)
            look()
            plans.set_plan_limits(store, PlanChange("business", None))

            def is_drained() -> bool:
                let_pass(0.2)
                fleet.revive()
                found = oracle.tally(root)
                return found.done + found.duplicate == len(clients.dropped)

            wait_until(is_drained, within_s=DRAINED_S)
            for _ in range(3):  # all that is new
                clients.follow(seed)
        look(math.inf)
        past = Past(clients, store, account_id)

    statuses = Counter((one.method, one.status) for one in clients.changes)
    wrong = [*past.iter_older_over_newer()], [*past.iter_lost()], [*past.iter_misread()]
    figures["kills"] = KILLS
    figures["created"] = statuses["POST", 201]
    figures["refused_by_the_quota"] = statuses["POST", 403]
    figures["files"] = len(clients.dropped)
    by_updates = sum(len(one.replaced) for one in clients.changes if one.method == "PUT")
    figures["replaced"] = len(past.replaced) + by_updates
    figures["updated"] = statuses["PUT", 200]
    figures["deleted"] = statuses["DELETE", 200]
    figures["unknown_outcomes"] = statuses["PUT", 0] + statuses["DELETE", 0]
    figures["pages"] = clients.pages
    figures["passes_through_the_list"] = len(clients.walks)
    figures["comparisons_of_the_counter"] = looks.total()
    figures["over_the_quota_or_two_of_a_person"] = looks[False]
    figures["older_over_newer"], figures["lost"], figures["skipped_or_repeated"] = map(len, wrong)
    assert not any(wrong), wrong
    assert not looks[False]
    assert len(past.files) == len(clients.dropped)
    for resume_id, change in past.created.items():
        told = [old_id for by_id, old_id in past.replaced if by_id == resume_id]
        assert sorted(change.replaced) == sorted(told)
    reports = [json.loads(path.read_bytes()) for path in (root / "_done").rglob("*.report.json")]
    parts = (part for report in reports for part in [report, *report["items"]])
    reported = Counter(old_id for part in parts for old_id in part.get("replaced", ()))
    assert reported == Counter(old for by_id, old in past.replaced if by_id not in past.created)
