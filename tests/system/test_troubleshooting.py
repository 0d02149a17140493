"""Every symptom that the page is headed with is brought about, and shows what the page says."""

import contextlib
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from cli.main import resumes
from resumes.errors import StoreUnavailable
from resumes.settings import Settings
from resumes.store import accounts, keys, open_store
from resumes.store.sqlite.driver import dbapi
from server.app import create_app
from tests.resumes.builders import a_mount, mountinfo
from tests.server.builders import RESUMES, Client, a_resume
from tests.system.pages import agrees
from tests.system.programs import command, run, running

pytestmark = pytest.mark.docs

REPOSITORY: Final = Path(__file__).parents[2]
BAD: Final = REPOSITORY / "sample_data" / "bad"
GOOD: Final = REPOSITORY / "sample_data" / "nurse-double-column-en.json"


@dataclass(frozen=True)
class Scene:
    """A home that is not there yet, and what is said to somebody who uses it."""

    home: Path
    monkeypatch: pytest.MonkeyPatch
    clients: contextlib.ExitStack

    @property
    def database(self) -> Path:
        return self.home / "resumes.db"

    @property
    def inbox(self) -> Path:
        return self.home / "inbox" / "ana"

    def says(self, *words: str) -> str:
        """What the command prints, on both streams, however it ends."""
        line = ["--home", str(self.home), *words]
        return CliRunner().invoke(resumes, line, prog_name="resumes").output

    def has_account(self, plan: str = "business") -> None:
        """There is a home, with the account `ana`."""
        self.says("accounts", "create", "ana", "--plan", plan)

    def drops(self, *files: Path) -> str:
        """What the importer says of files in the inbox."""
        for file in files:
            shutil.copy(file, self.inbox)
        return self.says("watch", "--once", "--settle", "0")

    def client(self, key: str = "", plan: str = "business", **settings: Any) -> Client:
        """A client of the API on this home, with a key of `ana` unless another is said."""
        if not self.home.exists():
            self.has_account(plan)
        store = self.clients.enter_context(open_store(f"sqlite:///{self.database}"))
        app = create_app(Settings(home=self.home, **settings), store)
        client = Client(app, key or keys.create_key(store, "ana").secret)
        self.clients.callback(client.close)
        return client

    def alters(self, statement: str) -> None:
        """The store was altered behind the program's back."""
        connection = dbapi.connect(self.database)
        connection.execute(statement)
        connection.commit()
        connection.close()


Symptom = Callable[[Scene], str]
SYMPTOMS: Final[dict[str, Symptom]] = {}


def shows(title: str) -> Callable[[Symptom], Symptom]:
    """The function brings about what the page has under this title."""

    def remember(symptom: Symptom) -> Symptom:
        SYMPTOMS[title] = symptom
        return symptom

    return remember


def titles() -> list[str]:
    """The messages that are chapters of the page."""
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    found = re.findall(r"^### (?:`` (.+) ``|`([^`]+)`)$", page, re.MULTILINE)
    return [one or other for one, other in found]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with contextlib.ExitStack() as clients:
        yield Scene(tmp_path / "home", monkeypatch, clients)


def test_every_symptom_is_brought_about_by_a_test() -> None:
    assert sorted(SYMPTOMS) == sorted(titles())


OF_PROCESSES = ("`resumes up` runs", "Open the address", "Port ", "Listening beyond", "The store ")
"""How those begin that take more than one process for a moment."""


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(one, marks=pytest.mark.slow if one.startswith(OF_PROCESSES) else ())
        for one in titles()
    ],
)
def test_what_is_seen_is_what_the_page_says(title: str, scene: Scene) -> None:
    seen = SYMPTOMS[title](scene)

    assert agrees(seen, f"…{title}…"), seen


# Starting


@shows("make: Python 3.11 or newer with the venv module is needed")
def _(scene: Scene) -> str:
    folder = scene.home.parent
    shutil.copy(REPOSITORY / "Makefile", folder)
    words = ["make", "--directory", str(folder), "PYTHON=", ".venv/bin/python"]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stderr


@shows("No store yet: … does not exist. …")
def _(scene: Scene) -> str:
    return scene.says("list")


@shows("`resumes up` runs on … already (process …). Stop it first")
def _(scene: Scene) -> str:
    with running(scene.home, "up", "--json", "--port", "0") as up:
        assert up.stdout is not None
        assert up.stdout.readline()
        return run(scene.home, "up").stderr


@shows("Port … on … is in use; choose another with --port")
def _(scene: Scene) -> str:
    with socket.create_server(("127.0.0.1", 0)) as other:
        return run(scene.home, "serve", "--port", str(other.getsockname()[1])).stderr


@shows("Unknown setting … in the environment. …")
def _(scene: Scene) -> str:
    scene.monkeypatch.setenv("RESUMES_RATE_LIMITS", "true")
    return scene.says("list")


@shows('Invalid … "…" in …: …')
def _(scene: Scene) -> str:
    scene.home.mkdir()
    (scene.home / "config.toml").write_text("port = 80000\n", encoding="ascii")
    return scene.says("list")


@shows("Invalid configuration …: …")
def _(scene: Scene) -> str:
    scene.home.mkdir()
    (scene.home / "config.toml").write_text("port 8000\n", encoding="ascii")
    return scene.says("list")


@shows("Several accounts exist: choose one with --account. …")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.says("accounts", "create", "ben")
    return scene.says("list")


@shows('Account not found: "…". …')
def _(scene: Scene) -> str:
    scene.has_account()
    return scene.says("list", "--account", "anna")


@shows("Listening beyond this machine without TLS: …")
def _(scene: Scene) -> str:
    words = ["serve", "--host", "0.0.0.0", "--port", "0", "--json", "--until-stdin-ends"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command(scene.home, *words), stdin=pipe, stdout=pipe, stderr=pipe) as one:
        assert one.stdout is not None
        assert one.stdout.readline()
        return one.communicate(timeout=60)[1].decode()


@shows("… belongs to another store, known as …. …")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.says("watch", "--once")
    other = f"sqlite:///{scene.home}/other.db"
    return scene.says("--database", other, "watch", "--once")


# Files that were dropped


@shows('the folder "…" names no account, so its files wait')
def _(scene: Scene) -> str:
    scene.has_account()
    (scene.home / "inbox" / "anna").mkdir()
    return scene.says("doctor")


@shows("files are held, and no importer is running to let them in")
def _(scene: Scene) -> str:
    scene.has_account("free")
    scene.says("plans", "set", "free", "--max-resumes", "0")
    scene.drops(GOOD)
    return scene.says("doctor")


@shows("… in … that this store does not know")
def _(scene: Scene) -> str:
    backup = str(scene.home / "backup.db")
    scene.says("accounts", "create", "ben")
    scene.says("db", "backup", backup)
    scene.has_account("free")
    scene.says("plans", "set", "free", "--max-resumes", "0")
    scene.drops(GOOD)
    scene.says("db", "restore", backup)
    return scene.says("doctor")


@shows("Invalid JSON at byte …: …")
def _(scene: Scene) -> str:
    scene.has_account()
    return scene.drops(BAD / "cut-off-in-the-middle.json")


@shows('Invalid section "…": …')
def _(scene: Scene) -> str:
    scene.has_account()
    return scene.drops(BAD / "year-as-text.json")


@shows("Maximum resume limit reached. Your plan allows … resumes")
def _(scene: Scene) -> str:
    scene.has_account("free")
    scene.says("plans", "set", "free", "--max-resumes", "0")
    return scene.drops(GOOD)


@shows("duplicate  …")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.drops(GOOD)
    return scene.drops(GOOD)


@shows("Cannot retry …: it is …")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.drops(GOOD)
    (file,) = json.loads(scene.says("imports", "list", "--json"))["files"]
    return scene.says("imports", "retry", file["id"])


# Over HTTP


@shows("Invalid API key")
def _(scene: Scene) -> str:
    return scene.client("enh_live_none").page().text


@shows("API access requires a business plan")
def _(scene: Scene) -> str:
    return scene.client(plan="free").page().text


@shows("Unsupported content type: send application/json")
def _(scene: Scene) -> str:
    return scene.client().post(b"{}", Content_Type="application/x-www-form-urlencoded").text


@shows("Resume too large: the limit is … bytes")
def _(scene: Scene) -> str:
    return scene.client(max_body_bytes=1_024).create(a_resume(title="x" * 2_000)).text


@shows("Invalid cursor")
def _(scene: Scene) -> str:
    return scene.client().page("cursor=2").text


@shows("Resume not found")
def _(scene: Scene) -> str:
    return scene.client().get("0" * 24).text


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


@shows("Service unavailable; nothing was done, try again later")
def _(scene: Scene) -> str:
    client = scene.client()
    scene.says("db", "copy", f"sqlite:///{scene.database}", f"sqlite:///{scene.home}/new.db")
    return client.create(a_resume()).text


@shows("The server is low on disk space; nothing was stored, try again later")
def _(scene: Scene) -> str:
    return scene.client(disk_floor_bytes=2**62).create(a_resume()).text


@shows("Internal error …")
def _(scene: Scene) -> str:
    client = scene.client()
    resume_id = client.create(a_resume()).json()["id"]
    scene.alters("UPDATE documents SET document = 'what nobody foresaw'")
    return client.get(resume_id).text


# The store


@shows("The store … is damaged or no SQLite database (…). …")
def _(scene: Scene) -> str:
    scene.home.mkdir()
    scene.database.write_bytes(b"SQLite? no. " * 100)
    return scene.says("list")


@shows("The store … was made by a newer version (…). Update resume-service")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.alters("UPDATE alembic_version SET version_num = '9999'")
    return scene.says("list")


@shows("The store … is older than this program. Run `resumes db upgrade`")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.alters("UPDATE alembic_version SET version_num = '0001'")
    return scene.says("list")


@shows("The store … is in use by process …. Stop it, then restore")
def _(scene: Scene) -> str:
    scene.client()
    backup = scene.home / "backup.db"
    scene.says("db", "backup", str(backup))
    return run(scene.home, "db", "restore", str(backup)).stderr


@shows(
    "… was removed or renamed while the store is in use, so nothing is read or written any more. …"
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


@shows("The database … is mounted by itself, so its log lies elsewhere and commits can be lost. …")
def _(scene: Scene) -> str:
    scene.has_account()
    mounts = scene.home / "mountinfo"
    mounts.write_text(mountinfo(a_mount(str(scene.database), "ext4")))
    scene.monkeypatch.setattr("resumes.mounts.MOUNTINFO", mounts)
    return scene.says("list")


@shows("The store is being moved to …, or was; nothing was done. …")
def _(scene: Scene) -> str:
    scene.has_account()
    scene.says("db", "copy", f"sqlite:///{scene.database}", f"sqlite:///{scene.home}/new.db")
    return scene.says("accounts", "create", "ben")


@shows("The database … cannot be used now: …")
def _(scene: Scene) -> str:
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        port = closed_soon.getsockname()[1]
    return scene.says("--database", f"postgresql://ana@127.0.0.1:{port}/none", "list")


# The terminal UI


@shows("The terminal UI needs a terminal. …")
def _(scene: Scene) -> str:
    scene.has_account()
    return scene.says("tui")


@shows('The terminal UI cannot draw on a terminal of the kind TERM="…". …')
def _(scene: Scene) -> str:
    scene.has_account()
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            command(scene.home, "tui"), stdin=theirs, stdout=theirs, stderr=theirs, timeout=60,
            env={**os.environ, "TERM": "dumb"}, check=False,
        )  # fmt: skip
        return os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        os.close(theirs)


@shows("Open the address that `resumes tui --web` printed, which works once; …")
def _(scene: Scene) -> str:
    scene.has_account()
    with running(scene.home, "tui", "--web", "0") as web:
        assert web.stdout is not None
        address = web.stdout.readline().partition("?")[0]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address, timeout=60)
        with refused.value as answer:
            return answer.read().decode()


def test_a_symptom_that_is_not_there_would_be_noticed(scene: Scene) -> None:
    seen = scene.client().page().text

    assert RESUMES not in seen
    assert not agrees(seen, "…Invalid API key…")
