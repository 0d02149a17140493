"""Stores in which the same is seen in every run: their clock stands still, their lots are known.

What a screen shows of them can be compared with what it showed before, letter by letter.
"""

import random
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from resumes.health import checks, store_checks
from resumes.health.findings import Finding
from resumes.settings import Settings, Theme
from resumes.store import accounts, api_keys, import_requests, importers, labels, open_store, plans
from resumes.store.import_ledger import FileOutcome, Items, Problem
from resumes.store.import_requests import request_files
from resumes.store.plans import PlanChange
from resumes.store.sqlite.store import SqliteStore
from resumes.store.store import Size, Store
from tests.support.stores import make_store_file
from tests.support.terminal.builders import (
    HOSTILE,
    ROOT,
    a_document,
    a_file,
    a_hostile_document,
    a_section,
    an_account,
    an_id,
    an_importer,
    stored,
)
from tui.app import ResumesApp
from tui.session import ExportChoice, UiSession, prepare

BEGAN_AT_US: Final = 1_800_000_000_000_000
"""2027-01-15T08:00:00Z."""

STEP_US: Final = 97_000_000

HOME: Final = Path("resumes-home")
"""Relative, so that it is called the same wherever a test runs."""

PRINTABLE: Final = "".join(filter(str.isprintable, HOSTILE))
"""What the store takes as the name of a key: markup, but no controls."""

PEOPLE: Final = (
    ("Ada Example", "Analyst of engines", "ada@example.org"),
    ("Zoë Ångström", "Résumé writer — überall", "zoe@example.org"),
    ("李小明", "数据分析师 · 上海", "li@example.org"),
    ("प्रिया शर्मा", "सामाजिक कार्यकर्ता", "priya@example.org"),
    ("Nadia 👩‍🔬 Example", "Chemist 👩‍🔬 with 🇫🇷 papers", "nadia@example.org"),
    ("Bo Very-Long-Name-That-Does-Not-Fit-Anywhere Example", "Baker " * 40, "bo@example.org"),
)


class StandingClock:
    """A clock that goes on only when told to."""

    def __init__(self) -> None:
        self.now_us = BEGAN_AT_US

    def __call__(self) -> int:
        return self.now_us

    def step(self, steps: int = 1) -> None:
        self.now_us += steps * STEP_US


class Disk(NamedTuple):
    """As `shutil.disk_usage` answers."""

    total: int
    used: int
    free: int


@contextmanager
def standing_still(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, StandingClock]]:
    """A store whose contents depend on nothing but what is put into it."""
    (HOME / "inbox").mkdir(parents=True)
    HOME.chmod(0o700)
    # Before anything is drawn by lot: the first store of a process draws more than a later one.
    url = make_store_file(HOME.absolute() / "resumes.db")
    lots = random.Random(1)
    clock = StandingClock()
    monkeypatch.setattr(secrets, "token_hex", lambda nbytes=32: lots.randbytes(nbytes).hex())
    monkeypatch.setattr(secrets, "choice", lots.choice)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(100 << 30, 60 << 30, 40 << 30))
    size = Size(3 << 20, 40 << 10)
    monkeypatch.setattr(SqliteStore, "measure", lambda _: size)
    monkeypatch.setattr(
        store_checks, "check_sqlite", lambda path: Finding("SQLite", "version 3.99.0")
    )
    fonts = Finding("fonts", "fonts for the newest resumes are installed")
    monkeypatch.setattr(checks, "iter_font_findings", lambda names, home: [fonts])
    with open_store(url, clock=clock) as store:
        yield store, clock


def an_app(store: Store, *, screen: str = "resumes", theme: Theme = Theme.DARK) -> ResumesApp:
    """The terminal UI over the store, with settings that are the same everywhere."""
    settings = Settings(home=HOME, database=f"sqlite:///{HOME}/resumes.db", theme=theme)

    def open_session() -> UiSession:
        session = prepare(store, settings=settings)
        # Otherwise it is in the working folder, which is another one on each machine.
        session.last_export = ExportChoice(folder="/srv/exports")
        return session

    return ResumesApp(open_session, screen=screen)


def fill_data(store: Store, clock: StandingClock) -> None:
    """Three accounts; the first of them has something of every kind."""
    plans.set_plan_limits(store, PlanChange("trial", 6))
    an_account(store, "ana")
    clock.step()
    an_account(store, "bo", plan="trial")
    an_account(store, "zoe", plan="trial")
    for name, title, email in PEOPLE:
        clock.step()
        stored(store, a_person(name, title, email))
    others = (a_document(name=f"Person {number}", title=f"Number {number}") for number in range(40))
    stored(store, *others)
    stored(store, *(a_document(title=f"Of bo {number}") for number in range(5)), account="bo")
    stored(store, *(a_document(title=f"Of zoe {number}") for number in range(6)), account="zoe")
    _fill_keys(store, clock)
    _fill_imports(store)


def fill_hostile(store: Store, clock: StandingClock) -> None:
    """One account, in which strangers wrote whatever they could."""
    an_account(store, "ana")
    clock.step()
    ids = stored(store, a_hostile_document(), a_document(title="An honest one"))
    owner = accounts.get_account(store, "ana")
    labels.set_label(store, owner.id, ids[:1], HOSTILE[:100])
    api_keys.create_key(store, "ana", name=PRINTABLE[:100])
    root = f"/srv/{HOSTILE}".encode("unicode_escape").decode()
    for digit, outcome in (("1", FileOutcome.FAILED), ("2", FileOutcome.HELD)):
        a_file(
            store,
            an_id(digit),
            outcome,
            name=f"ana/{HOSTILE}\\xff.json",
            message=HOSTILE,
            path=HOSTILE,
            byte_offset=3,
            source=f'{{"{HOSTILE}": \n{HOSTILE}'.encode() + b"\xff\xfe\x00",
            root=root,
        )
    a_file(
        store,
        an_id("3"),
        name=f"ana/{HOSTILE}.ndjson",
        items=Items(2, 0, 0, 0, 2, (Problem(1, HOSTILE, FileOutcome.FAILED, None, HOSTILE),)),
        root=root,
    )
    importers.register(store, an_importer(root=root))


def a_person(name: str, title: str, email: str) -> dict[str, object]:
    """A resume with what most resumes have."""
    header = {"name": name, "title": title, "email": email, "location": "Paris"}
    experience = {
        "workplace": "Example & Co",
        "position": title,
        "description": "Looked after what nobody else did. " * 6,
        "bullets": ["Made it faster.", "Made it smaller, which took twice as long. " * 3],
        "dateRange": {"fromYear": 2019, "fromMonth": 0, "isOngoing": True},
    }
    sections = {
        **a_section("experiences", experience, name="Experience"),
        **a_section("skills", {"title": "Tools", "tags": ["hammer", "tongs", "[b]"]}),
    }
    return a_document(name=name, title=title, header=header, sections=sections)


def _fill_keys(store: Store, clock: StandingClock) -> None:
    for name, lifetime in (("website", None), ("", None), ("till spring", timedelta(days=60))):
        clock.step()
        new = api_keys.create_key(store, "ana", name=name, lifetime=lifetime)
        api_keys.mark_shown(store, new.id)
    revoked = api_keys.create_key(store, "bo", name="old laptop")
    api_keys.mark_shown(store, revoked.id)
    api_keys.revoke_key(store, revoked.id)
    api_keys.create_key(store, "zoe", name="never looked at")
    clock.step(20)


def _fill_imports(store: Store) -> None:
    broken = b'{\n  "header": {"name": "Ada Example",\n  "sections": {]\n}\n'
    at = broken.index(b"]")
    problem = Problem(17, "line 17", FileOutcome.FAILED, "invalid_json", "Invalid JSON")
    a_file(store, an_id("1"), FileOutcome.DONE, name="ana/ada.json")
    a_file(
        store,
        an_id("2"),
        FileOutcome.HELD,
        account="zoe",
        name="zoe/late.json",
        reason="quota_reached",
        message="The account is full",
    )
    a_file(store, an_id("3"), FileOutcome.DUPLICATE, name="ana/again.json", reason="duplicate")
    a_file(
        store,
        an_id("4"),
        name="ana/broken.json",
        source=broken,
        byte_offset=at,
        message=f"Invalid JSON at byte {at}: expected a value",
    )
    a_file(store, an_id("5"), name="ana/many.ndjson", items=Items(1_000, 990, 5, 3, 2, (problem,)))
    asked = a_file(store, an_id("6"), name="ana/asked-for.json")
    request_files(store, [asked], import_requests.RequestKind.RETRY)
    importers.register(store, an_importer(root=ROOT, waiting=12))


Fill = Callable[[Store, StandingClock], None]
