"""Every symptom that the page is headed with is brought about, and shows what the page says."""

import ast
import contextlib
import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from cli.main import resumes
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.settings import Settings
from resumes.store import accounts, api_keys, migrations, open_store
from resumes.store.sqlite.driver import dbapi
from tests.support.api.builders import RESUMES, Client, a_body, a_resume
from tests.support.api.serving import fill_disk, serving
from tests.support.pages import agrees
from tests.support.programs import run
from tests.support.resumes import a_mount, mountinfo

pytestmark = pytest.mark.docs

REPOSITORY: Final = Path(__file__).parents[2]
SAMPLES: Final = REPOSITORY / "sample_data"
GOOD: Final = "nurse-double-column-en.json"
PAGE: Final = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
TITLES: Final = [
    one or other for one, other in re.findall(r"^### (?:`` (.+) ``|`([^`]+)`)$", PAGE, re.MULTILINE)
]
"""The messages that are chapters of the page."""


@dataclass(frozen=True)
class Scene:
    """A home that is not there yet, and what is said to somebody who uses it."""

    home: Path
    monkeypatch: pytest.MonkeyPatch
    clients: contextlib.ExitStack

    @property
    def database(self) -> Path:
        return self.home / "resumes.db"

    def says(self, line: str) -> str:
        """What the command prints, on both streams, however it ends.

        `drop FILE` has the importer take a sample, `put FILE` leaves one in the watched folder since
        long ago, `write FILE TEXT` writes a file of the home, and `alter STATEMENT` changes the store
        behind the program's back.
        """
        words = shlex.split(line.format(home=self.home))
        match words:
            case ["drop", name]:
                shutil.copy(SAMPLES / name, self.home / "inbox" / "ana")
                words = ["watch", "--once", "--settle", "0"]
            case ["put", name]:
                path = self.home / "inbox" / name
                path.parent.mkdir(exist_ok=True)
                shutil.copyfile(SAMPLES / GOOD, path)
                os.utime(path, (0, 0))
                return ""
            case ["write", name, text]:
                self.home.mkdir(exist_ok=True)
                (self.home / name).write_text(text, encoding="ascii")
                return ""
            case ["alter", statement]:
                with contextlib.closing(dbapi.connect(self.database)) as connection:
                    connection.execute(statement)
                    connection.commit()
                return ""
        typed = ["--home", str(self.home), *words]
        return CliRunner().invoke(resumes, typed, prog_name="resumes").output

    def has_account(self, plan: str = "business") -> None:
        """There is a home, with the account `ana`."""
        self.says(f"accounts create ana --plan {plan}")

    def client(
        self, key: str = "", plan: str = "business", is_read_only: bool = False, **settings: Any
    ) -> Client:
        """A client of the API on this home, with a key of `ana` unless another is said."""
        if not self.home.exists():
            self.has_account(plan)
        store = open_store(f"sqlite:///{self.database}")
        key = key or api_keys.create_key(store, "ana", is_read_only=is_read_only).secret
        chosen = Settings(home=self.home, port=0, **settings)
        client = Client(self.clients.enter_context(serving(chosen, store)), key)
        self.clients.callback(client.close)
        return client

    def pdf(self, resume: Any, **settings: Any) -> Any:
        """The answer to somebody who wants a PDF of the resume."""
        client = self.client(**settings)
        return client.get(f"{client.create(resume).json()['id']}/pdf")

    def on_a_full_disk(self) -> Client:
        """The client of an API that finds no room on its disk."""
        fill_disk(self.monkeypatch, self.home)
        return self.client()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with contextlib.ExitStack() as clients:
        yield Scene(tmp_path / "home", monkeypatch, clients)


# fmt: off
ANA: Final = "accounts create ana --plan business"
FULL: Final = ("accounts create ana", "plans set free --max-resumes 0")
TYPED: Final[Mapping[str, tuple[str, ...]]] = {
    "No store yet: … does not exist. …": ("list",),
    "Several accounts exist. Choose one with --account: …": (ANA, "accounts create ben", "list"),
    'Account not found: "…". …': (ANA, "list --account anna"),
    "… belongs to another store, known as …. …":
        (ANA, "watch --once", "--database sqlite:///{home}/other.db watch --once"),
    "files are held, but no importer is running to import them":
        (*FULL, f"drop {GOOD}", "doctor"),
    "… in … that this store does not have":
        ("accounts create ben", "db backup {home}/backup.db", *FULL, f"drop {GOOD}",
         "db restore {home}/backup.db", "doctor"),
    "Invalid JSON at byte …: …": (ANA, "drop bad/cut-off-in-the-middle.json"),
    'Invalid section "…": …': (ANA, "drop bad/year-as-text.json"),
    "Maximum resume limit reached. Your plan allows … resumes": (*FULL, f"drop {GOOD}"),
    "duplicate  …": (ANA, f"drop {GOOD}", f"drop {GOOD}"),
    "The store is being moved to …, or has been moved; nothing was done. …":
        (ANA, "db copy sqlite:///{home}/resumes.db sqlite:///{home}/new.db", "accounts create ben"),
    "The terminal UI needs a terminal. …": (ANA, "tui"),
    'Invalid … "…" in …: …': ("write config.toml 'port = 80000'", "list"),
    "Invalid configuration …: …": ("write config.toml 'port 8000'", "list"),
    'the folder "…" does not match any account; its files are waiting':
        (ANA, "put anna/cv.json", "doctor"),
    "… waiting, but no importer is running there": (ANA, "put ana/cv.json", "doctor"),
    "The store … was created by a newer version (…). Update resume-service":
        (ANA, "alter \"UPDATE alembic_version SET version_num = '9999'\"", "list"),
    "The store … is damaged or not a SQLite database (…). …":
        (f"write resumes.db '{'no. ' * 300}'", "list"),
    "The database … is unavailable: …": ("--database postgresql://ana@127.0.0.1:1/none list",),
}
"""What somebody has typed when the last command says so."""

ANSWERED: Final[Mapping[str, Callable[[Scene], Any]]] = {
    "Invalid API key": lambda scene: scene.client("enh_live_none").page(),
    "API access requires a business plan": lambda scene: scene.client(plan="free").page(),
    "This API key is read-only": lambda scene: scene.client(is_read_only=True).create(a_resume()),
    "Unsupported content type: send application/json": lambda scene:
        scene.client().post(b"{}", Content_Type="application/x-www-form-urlencoded"),
    "Resume too large: the limit is … bytes": lambda scene:
        scene.client(max_body_bytes=1_024).create(a_resume(title="x" * 2_000)),
    "Invalid cursor": lambda scene: scene.client().page("cursor=2"),
    "Resume not found": lambda scene: scene.client().get("0" * 24),
    "The resume has changed: its ETag is none of those in If-Match, so nothing was changed. …":
        lambda scene: (client := scene.client()).put(
            client.create(a_resume()).json()["id"], a_body(), If_Match='"x"'
        ),
    "The server is low on disk space, so nothing was stored; try again later": lambda scene:
        scene.on_a_full_disk().create(a_resume()),
    "PDF generation timeout. Please try again later.": lambda scene:
        scene.pdf(a_resume(), pdf_timeout_s=1e-9),
    "Too long for a PDF: the resume has … characters; the limit is …": lambda scene:
        scene.pdf(a_resume(sections={
            "summaries": {"column": 0, "items": [{"text": "word " * 4_000}] * 11}
        })),
}
"""The request that is answered so."""
# fmt: on

Symptom = Callable[[Scene], str]
SHOWN: Final[dict[str, Symptom]] = {}


def shows(title: str) -> Callable[[Symptom], Symptom]:
    """The function brings about what the page has under this title."""

    def remember(symptom: Symptom) -> Symptom:
        SHOWN[title] = symptom
        return symptom

    return remember


OF_PROCESSES: Final = (
    "make: Python 3.11 or newer with the venv module is needed",
    "Another `up` is already running for … (process …). Stop it first",
    "Listening beyond this machine without TLS: …",
    'The terminal UI cannot run with TERM="…". …',
)
"""What takes other processes, or a terminal, to be seen: that it is said somewhere is enough here."""


@pytest.mark.slow
@pytest.mark.parametrize("title", sorted({*TITLES} - {*OF_PROCESSES}))
def test_what_is_seen_is_what_the_page_says(title: str, scene: Scene) -> None:
    if title in TYPED:
        seen = [scene.says(line) for line in TYPED[title]][-1]
    elif title in ANSWERED:
        seen = ANSWERED[title](scene).text
    else:
        seen = SHOWN[title](scene)
    assert agrees(seen, f"…{title}…"), seen


def test_what_takes_processes_to_be_seen_is_said_in_the_source() -> None:
    texts = [(REPOSITORY / "Makefile").read_text(encoding="utf-8")]
    for path in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    said = "\n".join(texts)
    parts = [part for title in OF_PROCESSES for part in title.split("…") if len(part) > 2]
    assert [part for part in parts if part not in said] == []


def test_every_symptom_is_brought_about_and_another_one_would_be_noticed(scene: Scene) -> None:
    assert sorted([*TYPED, *ANSWERED, *SHOWN, *OF_PROCESSES]) == sorted(TITLES)
    seen = scene.client().page().text
    assert RESUMES not in seen
    assert not agrees(seen, "…Invalid API key…")


@shows("Port … on … is in use; choose another with --port")
def _(scene: Scene) -> str:
    with socket.create_server(("127.0.0.1", 0)) as other:
        return scene.says(f"serve --port {other.getsockname()[1]}")


@shows("The store … is in use (process …). Stop everything that uses it, then restore")
def _(scene: Scene) -> str:
    scene.client()
    scene.says("db backup {home}/backup.db")
    return run(scene.home, "db", "restore", str(scene.home / "backup.db")).stderr


@shows("Unknown setting … in the environment. …")
def _(scene: Scene) -> str:
    scene.monkeypatch.setenv("RESUMES_RATE_LIMITS", "true")
    return scene.says("list")


@shows("Cannot retry …: it is …")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.says(f"drop {GOOD}")
    (file,) = json.loads(scene.says("imports list --json"))["files"]
    return scene.says(f"imports retry {file['id']}")


@shows("Idempotency-Key was already used with a different body")
def _(scene: Scene) -> str:
    client = scene.client()
    first, second = (json.dumps(a_resume(name)).encode() for name in ("Ada Example", "Ben Example"))
    client.post(first, Idempotency_Key="one")
    return client.post(second, Idempotency_Key="one").text


@shows("Rate limit exceeded. Please try again later.")
def _(scene: Scene) -> str:
    client = scene.client(rate_limit=True, rate_per_minute=1)
    client.page()
    return client.page().text


@shows("Service unavailable: nothing was done; try again later")
def _(scene: Scene) -> str:
    client = scene.client()
    scene.says("db copy sqlite:///{home}/resumes.db sqlite:///{home}/new.db")
    return client.create(a_resume()).text


@shows("Too many PDFs are being generated. Please try again in a moment.")
def _(scene: Scene) -> str:
    scene.monkeypatch.setattr("server.rendering_route.WAIT_SHARE", 1e-9)
    client = scene.client()
    resume_id = client.create(a_resume()).json()["id"]
    with ThreadPoolExecutor() as threads:
        answers = threads.map(client.get, [f"{resume_id}/pdf"] * 8)
        return next(answer.text for answer in answers if answer.status_code == 503)


@shows('No installed font has the character "…" in resume …: it is drawn as a box. …')
def _(scene: Scene) -> str:
    client = scene.client()
    resume_id = client.create(a_resume("Ada \U0003fff0")).json()["id"]
    return scene.says(f"export {resume_id} --format pdf --to {scene.home}/pdfs")


@shows("A stored resume is damaged. …")
def _(scene: Scene) -> str:
    resume_id = scene.client().create(a_resume()).json()["id"]
    scene.says("alter \"UPDATE documents SET document = 'not JSON'\"")
    return scene.says(f"show {resume_id}")


@shows("Internal error …")
def _(scene: Scene) -> str:
    client = scene.client()
    resume_id = client.create(a_resume()).json()["id"]
    scene.says("alter \"UPDATE documents SET document = 'what nobody foresaw'\"")
    return client.get(resume_id).text


@shows("The store … is older than this program. Run `resumes db upgrade`")
def _(scene: Scene) -> str:
    scene.has_account()
    with pytest.MonkeyPatch.context() as patch:
        known = [*migrations.list_revisions(), "9999"]
        patch.setattr(migrations, "list_revisions", lambda: known)  # a later program's
        with pytest.raises(StoreIncompatible) as refused:
            open_store(f"sqlite:///{scene.home / 'resumes.db'}", upgrade=False)
    return refused.value.message


@shows(
    "… was removed or renamed while the store was in use, so nothing is read or written anymore. …"
)
def _(scene: Scene) -> str:
    scene.has_account()
    with open_store(f"sqlite:///{scene.database}") as store:
        scene.database.rename(scene.home / "elsewhere.db")
        with pytest.raises(StoreUnavailable) as refused:
            accounts.create_account(store, "ben")
    return refused.value.message


@shows("The database … has another name…")
def _(scene: Scene) -> str:
    scene.has_account()
    os.link(scene.database, scene.home / "snapshot.db")
    return scene.says("list")


@shows("The database … is a mount point, so its log is elsewhere and commits can be lost. …")
def _(scene: Scene) -> str:
    scene.has_account()
    mounts = scene.home / "mountinfo"
    mounts.write_text(mountinfo(a_mount(str(scene.database), "ext4")))
    scene.monkeypatch.setattr("resumes.filesystems.MOUNTINFO", mounts)
    return scene.says("list")
