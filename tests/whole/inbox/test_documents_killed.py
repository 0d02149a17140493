"""Documents, importers and analyzers as processes: whatever dies or misbehaves, each file ends once."""

import contextlib
import os
import random
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from resumes.store import import_history, import_requests
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from tests.support.analyzers import an_analyzer, private_folders, told
from tests.support.inbox.scenes import Scene, Watch, kill
from tests.support.resumes import a_document
from tests.support.waiting import children_of, command_of, is_running, wait_until

SEED: Final = "IMPORTER_CAMPAIGN_SEED"
"""The environment variable that has a campaign go as it went before."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of the importers too."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def analyzing(scene: Scene, folder: Path, code: str, **settings: object) -> None:
    """Set an analyzer with this code for the scene's importers."""
    settings |= {"analyzer": an_analyzer(folder, f"tell('pid', os.getpid())\n{code}")}
    lines = [f"{name} = {value!r}\n".replace("'", '"') for name, value in settings.items()]
    (scene.home / "config.toml").write_text("".join(lines))


def none_is_left(folder: Path, temporary: Path) -> None:
    """No analyzer runs, and no private folder is there."""
    assert not [pid for pid in told(folder, "pid") if is_running(int(pid))]
    assert private_folders(temporary) == []


MISBEHAVING = """
text = open(FILE).read().partition("of ")[2]
name = text.partition(" ")[0]
if "crashes" in text: os.abort()
if "forks" in text:
    fork_away()
    subprocess.Popen(["sleep", "600"], start_new_session=True)
if "ignores" in text:
    for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
if "changes" in text:
    with open(os.path.join(INBOX, name + ".pdf"), "a") as file: file.write(".")
if "writes" in text:
    os.chmod(FILE, 0o600)
    with open(FILE, "w") as file: file.write("nothing")
    os.rename(FILE, "elsewhere")
while "floods" in text: sys.stdout.write("x" * 10_000)
sys.tracebacklimit = 0
kept = []
while "hungry" in text: kept.append(bytes(100_000_000))
if "closes" in text:
    for number in (1, 2): os.close(number)
if "hangs" in text: time.sleep(600)
print(RESUME.replace("Ada Example", name))
"""

ENDS = {
    "crashes": "The analyzer ended by signal 6",
    "floods": "The analyzer wrote more than 2162688 bytes and was stopped",
    "hangs": "The analyzer did not finish within 10 s and was stopped",
    "ignores hangs": "The analyzer did not finish within 10 s and was stopped",
    "forks hangs": "The analyzer did not finish within 10 s and was stopped",
    "closes hangs": "The analyzer did not finish within 10 s and was stopped",
    "hungry": "The analyzer failed with exit code 1: MemoryError",
    "changes": "It was changed each time while it was analyzed",
    "forks": None,
    "ignores": None,
    "writes": None,
    "works": None,
}
"""What analyzers do, and the messages of the documents that fail."""


@pytest.mark.slow
def test_whatever_an_analyzer_does_its_document_ends_and_others_go_on(
    scene: Scene, tmp_path: Path, temporary: Path
) -> None:
    scene.account("ana")
    inbox = scene.root / "ana"
    code = f"INBOX = {str(inbox)!r}\n{MISBEHAVING}"
    analyzing(scene, tmp_path, code, analyzer_timeout_s=10, analyzers=2)
    with scene.watched(settle_s=0.1):
        for number, behavior in enumerate(ENDS):
            scene.drop(f"ana/{number}.pdf", f"%PDF-1.7 of {number} {behavior}".encode())
        for number in range(200):
            scene.drop(f"ana/{number}.json")
        scene.wait_until(lambda: not scene.tally().left, limit_s=120)

    done = [str(number) for number, message in enumerate(ENDS.values()) if message is None]
    names = [*done, *(f"{number}.json" for number in range(200))]
    found = scene.check(files=200 + len(ENDS), resumes={"ana": names})
    assert (found.done, found.failed) == (len(names), len(ENDS) - len(done))
    with scene.store() as store:
        rows = import_history.list_files(store, outcome=FileOutcome.FAILED)
    said = {int(Path(row.name).stem): (row.reason, row.message) for row in rows}
    assert said == {
        number: ("analyzer", message)
        for number, message in enumerate(ENDS.values())
        if message is not None
    }
    none_is_left(tmp_path, temporary)


@pytest.mark.timing
def test_json_files_take_at_most_a_fifth_longer_while_analyzers_are_busy(
    scene: Scene, tmp_path: Path, temporary: Path
) -> None:
    scene.account("ana")
    analyzing(scene, tmp_path, "while True: pass", analyzers=2, analyzer_timeout_s=900)
    ratios = []
    with scene.watched():
        for number in range(2):
            scene.drop(f"ana/{number}.pdf", f"%PDF-1.7 of {number}".encode())
        scene.wait_until(lambda: len(told(tmp_path, "pid")) == 2)
        import_s(scene, "first")
        for number in range(40):
            took_s = {}
            for state in random.sample((signal.SIGSTOP, signal.SIGCONT), 2):
                for pid in told(tmp_path, "pid"):
                    os.kill(int(pid), state)
                took_s[state] = import_s(scene, f"{number} {state.name}")
            ratios.append(took_s[signal.SIGCONT] / took_s[signal.SIGSTOP])
    assert statistics.median(ratios) <= 1.2, ratios


def import_s(scene: Scene, name: str) -> float:
    """Return how long the import of 300 files takes."""
    (made := scene.home / name).mkdir()
    for number in range(300):
        (made / f"{name} {number}.json").write_bytes(a_document(f"{name} {number}"))
    started = time.monotonic()
    for path in made.iterdir():
        path.rename(scene.root / "ana" / path.name)
    wait_until(lambda: not [*(scene.root / "ana").glob("*.json")])
    return time.monotonic() - started


TELLING = """
text = open(FILE).read().partition("of ")[2]
tell("ran", f"{time.time()} {text}")
time.sleep(int(text.split()[0]) % 4 / 10)
if "refused" in text: sys.exit("Refused")
tell("wrote", text)
print(RESUME.replace("Ada Example", "document " + text.split()[0]))
"""


class Campaign:
    """Files of five kinds, and what must become of them: PDFs, Word and text files, refused PDFs, the same
    bytes again, and JSON."""

    def __init__(self, scene: Scene, chosen: random.Random) -> None:
        self._scene = scene
        self._chosen = chosen
        self.files = 0
        self.names: list[str] = []
        self.again = 0
        self.refused = 0

    def drop(self, count: int) -> None:
        """Drop some files, of kinds by chance."""
        for _ in range(count):
            self.files += 1
            number = self.files
            match self._chosen.choice(["pdf", "text", "refused", "again", "json"]):
                case "pdf":
                    self._drop(f"{number}.pdf", f"%PDF-1.7 of {number}")
                case "text":
                    self._drop(f"sub/{number}.txt", f"of {number}")
                case "refused":
                    self.refused += 1
                    self._drop(f"{number}.pdf", f"%PDF-1.7 of {number} refused", is_done=False)
                case "again":
                    is_first = "document 0" not in self.names
                    self.again += not is_first
                    name = "document 0" if is_first else ""
                    self._drop(f"{number}.pdf", "%PDF-1.7 of 0", name)
                case "json":
                    self._scene.drop(f"ana/{number}.json", a_document(f"json {number}"))
                    self.names.append(f"json {number}")

    def _drop(
        self, name: str, text: str, resume: str | None = None, *, is_done: bool = True
    ) -> None:
        self._scene.drop(f"ana/{name}", text.encode())
        if is_done and resume != "":
            self.names.append(resume or f"document {self.files}")


def guards_of(importer: Watch) -> list[int]:
    """The guards of analyzers, whichever thread of the importer started them."""
    with contextlib.suppress(FileNotFoundError):  # it has ended
        tasks = [*Path(f"/proc/{importer.pid}/task").iterdir()]
        children = [pid for task in tasks for pid in (task / "children").read_text().split()]
        return [int(pid) for pid in children if "analyzer_guard" in command_of(int(pid))]
    return []


def wreak(scene: Scene, chosen: random.Random) -> str:
    """Start an importer, and kill it, its analyzer or the analyzer's guard at some moment; return which."""
    importer = scene.start(settle_s=0.1)
    try:
        wait_until(lambda: scene.is_ready(importer) or not importer.is_running)
        time.sleep(chosen.uniform(0, 1.0))
        victim = chosen.choice(["importer", "importer", "analyzer", "guard", "all"])
        guards = guards_of(importer)
        analyzers = [pid for guard in guards for pid in children_of(guard)]
        if victim in ("guard", "all"):
            for pid in guards:
                kill(pid)
        if victim in ("analyzer", "all"):
            for pid in analyzers:
                kill(pid)
        if victim in ("analyzer", "guard"):
            time.sleep(chosen.uniform(0, 0.3))
        return victim if guards else "importer"
    finally:
        importer.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "files"), [(8, 60), pytest.param(300, 500, marks=pytest.mark.campaign(minutes=15))]
)
def test_documents_are_imported_once_whoever_is_killed(
    tmp_path: Path, temporary: Path, say: Callable[[str], None], kills: int, files: int
) -> None:
    seed = int(os.environ.get(SEED, "0")) or random.SystemRandom().randrange(1, 10**9)
    say(f"{SEED}={seed}")
    chosen = random.Random(seed)
    scene = Scene(tmp_path / "home")
    scene.account("ana")
    analyzing(scene, tmp_path, TELLING, analyzers=2)
    campaign = Campaign(scene, chosen)
    killed: defaultdict[str, int] = defaultdict(int)
    for at in range(kills):
        campaign.drop(files * (at + 1) // kills - files * at // kills)
        killed[wreak(scene, chosen)] += 1
    retried = 0
    with scene.watched(settle_s=0.1):
        scene.wait_until(lambda: not scene.tally().left, limit_s=300)
        with scene.store() as store:
            rows = import_history.list_files(store, outcome=FileOutcome.FAILED, limit=1_000)
            dead = [row for row in rows if "exit code 1" not in (row.message or "")]
            assert all(
                "killed" in row.message or "signal 9" in row.message for row in dead if row.message
            )
            import_requests.request_files(store, dead, RequestKind.RETRY)
            retried = len(dead)
        # A refused document that died, too, is in its place before it is tried again.
        scene.wait_until(lambda: is_answered(scene), limit_s=60 + 2 * retried)

    say(
        f"{files} files, killed {dict(killed)}, {len(told(tmp_path, 'ran'))} runs, {retried} retried"
    )
    found = scene.check(files=files, resumes={"ana": campaign.names})
    ends = (len(campaign.names), campaign.refused, campaign.again)
    assert (found.done, found.failed, found.duplicate) == ends
    assert find_needless(scene, tmp_path, {row.claim_id for row in dead}) == []
    none_is_left_later(tmp_path, temporary)


def is_answered(scene: Scene) -> bool:
    """Whether no request waits."""
    with scene.store() as store:
        return import_requests.list_requests(store) == []


def find_needless(scene: Scene, folder: Path, retried: set[str]) -> list[str]:
    """Return the runs that began after the outcome of the same document was stored."""
    stored: dict[str, float] = {}
    with scene.store() as store:
        for row in import_history.list_files(store, limit=1_000):
            number = Path(row.name).stem
            if row.analysis is not None and row.claim_id not in retried:
                at_s = datetime.fromisoformat(row.finished_at).timestamp()
                stored[number] = at_s
                if row.outcome is FileOutcome.DONE and number not in told(folder, "wrote"):
                    stored["0"] = at_s
    runs = (line.split() for line in told(folder, "ran"))
    return [text for at_s, text, *_ in runs if text in stored and float(at_s) > stored[text] + 0.01]


def none_is_left_later(folder: Path, temporary: Path) -> None:
    """No analyzer runs; folders of guards that were killed with their importers are removed later."""
    assert not [pid for pid in told(folder, "pid") if is_running(int(pid))]
    for name in private_folders(temporary):
        os.utime(temporary / name, (1, 1))
    analyzer = Scene(folder / "home")
    with analyzer.watched():
        pass
    assert private_folders(temporary) == []
