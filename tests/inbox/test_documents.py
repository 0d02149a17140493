"""Documents in the watched folder: the user's analyzer turns them into resumes."""

import json
import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from importer.loop import Importer
from resumes.external_analyzer import ExternalAnalyzer
from resumes.settings import Settings
from resumes.store import accounts, import_history, import_ledger, stored_resumes
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from tests.support.analyzers import an_analyzer, told
from tests.support.inbox.builders import Inbox, Moment, die, killing_at
from tests.support.resumes import a_document
from tests.support.waiting import is_running, wait_until

pytestmark = pytest.mark.usefixtures("temporary")

ECHO = """
text = open(FILE, "rb").read().decode()
tell("ran", text)
name = text.partition("of ")[2]
sys.stderr.write("looked at " + name)
print(RESUME.replace("Ada Example", name))
"""
"""Writes a resume with the name that follows `of ` in the document."""


def analyzing(folder: Path, code: str = ECHO, **settings: Any) -> dict[str, Any]:
    """Options of an importer with this analyzer."""
    command = an_analyzer(folder, code)
    return {"analyzer": ExternalAnalyzer(Settings(analyzer=command, **settings))}


def pdf(name: str) -> bytes:
    return b"%PDF-1.7 of " + name.encode()


def turns_until(inbox: Inbox, importer: Importer, is_so: Callable[[], bool]) -> None:
    """Turn after turn is done until it is so, and time goes on: a round would wait for the analyzer."""

    def is_so_after_a_turn() -> bool:
        inbox.advance(0.5)
        importer.turn()
        return is_so()

    wait_until(is_so_after_a_turn)


def test_a_document_becomes_the_resume_that_the_analyzer_writes(
    inbox: Inbox, tmp_path: Path
) -> None:
    inbox.drop("ana/class/one.PDF", pdf("Ida"))
    inbox.drop("ana/two.json", a_document("Two"))
    inbox.drain(**analyzing(tmp_path))

    assert inbox.names() == ["Two", "Ida"]
    [done] = [row for row in inbox.rows() if row.name == "ana/class/one.PDF"]
    assert done.outcome == "done"
    assert done.analysis is not None
    assert done.analysis.said == "looked at Ida"
    assert done.analysis.took_s > 0
    assert [path.suffix for path in inbox.filed("_done")] == [".pdf", ".json"]
    assert told(tmp_path, "ran") == ["%PDF-1.7 of Ida"]
    assert inbox.is_tidy()


def test_the_same_bytes_are_a_duplicate_without_a_second_run(inbox: Inbox, tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf", "c.PDF"):
        inbox.drop(f"ana/{name}", pdf("Ida"))
    inbox.drain(**analyzing(tmp_path, analyzers=3), analyzers=3)
    inbox.drop("ana/later.pdf", pdf("Ida"))
    inbox.drain(**analyzing(tmp_path))

    assert inbox.names() == ["Ida"]
    assert inbox.counts("done", "duplicate") == [1, 3]
    assert len(told(tmp_path, "ran")) == 1
    claim_ids = [row.claim_id for row in inbox.rows()]
    items = [import_ledger.find_items(inbox.store, inbox.ana.id, one) for one in claim_ids]
    assert len({item.resume_id for item in chain(*items)}) == 1


def test_the_same_resume_from_other_bytes_is_a_duplicate_and_those_bytes_are_known_then(
    inbox: Inbox, tmp_path: Path
) -> None:
    for times, expected in ((1, 1), (2, 2), (2, 2)):
        inbox.drop("ana/cv.pdf", pdf("Ida" + " x" * (times - 1)))
        inbox.drain(**analyzing(tmp_path, ECHO.replace('"of ")[2]', '"of ")[2].split()[0]')))
        assert len(told(tmp_path, "ran")) == expected
    assert inbox.counts("done", "duplicate") == [1, 2]


FAULTS = {
    "a.pdf": (pdf("exit"), "The analyzer failed with exit code 1: Cannot read it"),
    "b.pdf": (pdf("nothing"), "The analyzer wrote no output"),
    "c.pdf": (pdf("text"), "The analyzer's output cannot be stored: Invalid JSON at byte 1"),
    "d.pdf": (pdf("crash"), "The analyzer ended by signal 6"),
    "e.pdf": (pdf("field"), "The analyzer's output cannot be stored: "),
    "f.pdf": (pdf("forever"), "The analyzer did not finish within 4 s and was stopped"),
    "g.pdf": (pdf("flood"), "The analyzer wrote more than 2162688 bytes and was stopped"),
    "h.pdf": (
        pdf("exit /Encrypt"),
        "Cannot read it. The PDF is encrypted: save it without a password",
    ),
    "i.pdf": (b"", "The file is empty"),
    "j.pdf": (b"PK\3\4", "It is not a PDF, despite its name"),
    "k.doc": (b"%PDF", "It is not a Word document, despite its name"),
    "l.docx": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "despite its name: it has a password, or is of the older kind (.doc)",
    ),
    "m.odt": (b"%PDF", "It is not an OpenDocument text, despite its name"),
    "n.rtf": (b"%PDF", "It is not an RTF file, despite its name"),
    "o.txt": (b"a\0b", "It is not a text file, despite its name"),
}

FAULTY = """
tell("ran", FILE)
text = open(FILE, "rb").read().decode().partition("of ")[2]
if "exit" in text: sys.exit("Cannot read it")
if text == "text": print("no JSON")
if text == "crash": os.abort()
if text == "field": print('{"header": {"name": 1}, "sections": {}}')
if text == "forever": time.sleep(600)
while text == "flood": print("x" * 10_000)
"""


def test_a_document_that_cannot_be_analyzed_says_why(inbox: Inbox, tmp_path: Path) -> None:
    for name, (content, _) in FAULTS.items():
        inbox.drop(f"ana/{name}").write_bytes(content)
    inbox.drain(**analyzing(tmp_path, FAULTY, analyzer_timeout_s=4), analyzers=2)

    rows = {row.name.removeprefix("ana/"): row for row in inbox.rows()}
    assert rows.keys() == FAULTS.keys()
    for name, (_, message) in FAULTS.items():
        assert message in (rows[name].message or ""), name
        assert (rows[name].outcome, rows[name].reason) == ("failed", "analyzer")
    assert rows["e.pdf"].path == "header.name"
    assert rows["f.pdf"].analysis is not None
    assert rows["f.pdf"].analysis.took_s >= 4
    assert rows["i.pdf"].analysis is None
    assert len(told(tmp_path, "ran")) == 8
    assert len([*(inbox.root / "_failed/analyzer").glob("*.report.json")]) == len(FAULTS)
    [report] = (inbox.root / "_failed/analyzer").glob("a-*.report.json")
    assert json.loads(report.read_bytes())["analysis"]["said"] == "Cannot read it"
    assert inbox.is_tidy()


def test_what_may_be_a_document_is_given_to_the_analyzer(inbox: Inbox, tmp_path: Path) -> None:
    word = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    for name, content in {
        "a.doc": word, "b.doc": rb"{\rtf1", "c.docx": b"PK\3\4", "d.odt": b"PK\3\4",
        "e.rtf": rb"{\rtf1", "f.txt": "ação".encode(), "g.txt": b"\xff\xfea\0", "h.pdf": b"\n%PDF",
    }.items():  # fmt: skip
        inbox.drop(f"ana/{name}", content + b" " + name.encode())
    code = "tell('ran', FILE[-5:])\nprint(RESUME.replace('Ada Example', open(FILE, 'rb').read()[-5:].decode()))"
    inbox.drain(**analyzing(tmp_path, code))
    assert len(inbox.names()) == 8
    assert inbox.counts("done") == [8]


def test_a_failed_document_is_analyzed_again_when_it_is_retried(
    inbox: Inbox, tmp_path: Path
) -> None:
    inbox.drop("ana/class/cv.pdf", pdf("Ida"))
    inbox.drain(**analyzing(tmp_path, "sys.exit('Out of order')"))
    assert inbox.counts("failed") == [1]
    inbox.ask(RequestKind.RETRY)
    inbox.drain(**analyzing(tmp_path))

    assert (inbox.names(), inbox.counts("done", "failed")) == (["Ida"], [1, 0])
    [row] = inbox.rows()
    assert row.name == "ana/class/cv.pdf"
    assert inbox.is_tidy()


def test_a_held_document_is_imported_later_without_a_second_run(
    inbox: Inbox, tmp_path: Path
) -> None:
    inbox.limit(0)
    long = {"header": {"name": "Long"}, "sections": {}, "more": "x" * 100_000}
    inbox.drop("ana/class/1.pdf", pdf("Ida"))
    inbox.drain(**analyzing(tmp_path))
    inbox.drop("ana/2.pdf", pdf("Long"))
    inbox.drain(**analyzing(tmp_path, f"tell('ran', '')\nprint({json.dumps(long)!r})"))
    held, _ = reversed(inbox.rows())
    source = import_history.find_source(inbox.store, held)
    assert source is not None
    assert json.loads(source)["header"]["name"] == "Ida"
    assert inbox.counts("held") == [2]

    inbox.limit(None)
    inbox.drain()  # without any analyzer

    assert inbox.names() == ["Ida", "Long"]
    assert inbox.counts("done", "held") == [2, 0]
    assert len(told(tmp_path, "ran")) == 2
    assert inbox.is_tidy()


def test_a_held_document_that_was_replaced_is_analyzed(inbox: Inbox, tmp_path: Path) -> None:
    inbox.limit(0)
    inbox.drop("ana/1.pdf", pdf("Ida"))
    inbox.drain(**analyzing(tmp_path))
    [path] = inbox.filed("_held")
    path.write_bytes(pdf("Eva"))
    inbox.limit(None)
    inbox.drain(**analyzing(tmp_path))
    assert inbox.names() == ["Eva"]


def test_without_an_analyzer_documents_are_ignored(inbox: Inbox) -> None:
    inbox.drop("ana/1.pdf", pdf("Ida"))
    summary = inbox.drain()
    assert (summary.ignored, summary.waiting, inbox.names_below("ana")) == (1, 0, ["1.pdf"])
    assert inbox.rows() == []


def test_a_dry_run_says_what_would_be_analyzed(inbox: Inbox, tmp_path: Path) -> None:
    options = analyzing(tmp_path)
    inbox.drop("ana/1.pdf", pdf("Ida"))
    inbox.drain(**options)
    inbox.limit(2)
    inbox.files.clear()
    for age, (name, content) in enumerate(
        {
            "1.pdf": pdf("Ida"),
            "2.pdf": pdf("Eva"),
            "3.pdf": b"",
            "4.doc": pdf(""),
            "5.pdf": pdf(""),
        }.items()
    ):
        (path := inbox.drop(f"ana/{name}")).write_bytes(content)
        os.utime(path, (age, age))
    inbox.drain(dry_run=True, **options)

    assert [(file.name, file.outcome, file.message) for file in inbox.files] == [
        ("ana/1.pdf", "duplicate", inbox.files[0].message),
        ("ana/2.pdf", "done", "It would be analyzed"),
        ("ana/3.pdf", "failed", "The file is empty"),
        ("ana/4.doc", "failed", "It is not a Word document, despite its name"),
        ("ana/5.pdf", "held", inbox.files[4].message),
    ]
    assert len(told(tmp_path, "ran")) == 1
    assert len(inbox.names_below("ana")) == 5


def test_a_newer_document_replaces_the_resume_and_keeps_its_label(
    inbox: Inbox, tmp_path: Path
) -> None:
    accounts.set_options(inbox.store, "ana", {"on_newer": "replace"})
    header = (
        '{"header": {"name": "Ida", "email": "ida@example.org", "phone": "%s"}, "sections": {}}'
    )
    code = f"tell('ran', '')\nprint({header!r} % open(FILE).read()[-1])"
    importer = inbox.importer(settle_s=0, **analyzing(tmp_path, code))
    for count, name in enumerate(("class/1", "2", "3"), 1):
        inbox.drop(f"ana/{name}.pdf", pdf("2" if name == "2" else "1"))
        turns_until(inbox, importer, lambda: len(inbox.rows()) == count)  # noqa: B023

    assert len(told(tmp_path, "ran")) == 2
    [entry] = stored_resumes.list_page(inbox.store, inbox.ana.id, limit=10).entries
    assert (entry.name, entry.label) == ("Ida", "class")
    [known] = inbox.rows(outcome=FileOutcome.DUPLICATE)
    assert "newer version" in (known.message or "")


# Beside other files


WAITS = """
tell("ran", open(FILE).read())
while not os.path.exists(os.path.join(os.path.dirname(sys.argv[0]), "go")): time.sleep(0.01)
print(RESUME.replace("Ada Example", open(FILE).read().partition("of ")[2]))
"""
"""Goes on when there is a file `go`."""


def test_json_files_are_imported_while_documents_are_analyzed(inbox: Inbox, tmp_path: Path) -> None:
    importer = inbox.importer(settle_s=0, analyzers=2, **analyzing(tmp_path, WAITS))
    for number in range(6):
        inbox.drop(f"ana/{number}.pdf", pdf(str(number)))
    turns_until(inbox, importer, lambda: len(told(tmp_path, "ran")) == 2)
    for number in range(20):
        inbox.drop(f"ana/{number}.json")
    turns_until(inbox, importer, lambda: inbox.counts("done") == [20])
    assert (importer.progress().waiting, len(told(tmp_path, "ran"))) == (6, 2)
    (tmp_path / "go").touch()
    turns_until(inbox, importer, lambda: inbox.counts("done") == [26])
    assert inbox.is_tidy()


def test_accounts_take_turns_and_an_inbox_has_some_documents_under_way(
    inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importer.inbox.MAX_DOCUMENTS", 3)
    inbox.account("bo")
    for number in range(8):
        inbox.drop(f"ana/{number}.pdf", pdf(f"ana {number}"))
    importer = inbox.importer(settle_s=0, **analyzing(tmp_path, WAITS))
    turns_until(inbox, importer, lambda: bool(told(tmp_path, "ran")))
    assert importer.intake.inboxes["ana"].under_way == 3
    inbox.drop("bo/1.pdf", pdf("bo 1"))

    def is_waiting() -> bool:
        bo = importer.intake.inboxes.get("bo")
        return bo is not None and bo.under_way == 1

    turns_until(inbox, importer, is_waiting)
    (tmp_path / "go").touch()
    turns_until(inbox, importer, lambda: inbox.counts("done") == [9])
    assert "%PDF-1.7 of bo 1" in told(tmp_path, "ran")[:3]


def test_an_analyzer_that_cannot_be_started_leaves_the_documents_waiting(
    inbox: Inbox, tmp_path: Path
) -> None:
    options = analyzing(tmp_path)
    program = tmp_path / "analyze"
    program.rename(tmp_path / "away")
    inbox.drop("ana/1.pdf", pdf("Ida"))
    importer = inbox.importer(settle_s=0, **options)
    turns_until(inbox, importer, lambda: not importer.schedule.has_work)
    why = f"The analyzer cannot be started: {program} was not found"
    sentence = f"Cannot pick up ana/1.pdf: {why}. It stays where it is and will be retried"
    assert inbox.notices == [sentence]
    assert importer.job.notices.state == "degraded"
    assert importer.summary().stuck == 1
    (tmp_path / "away").rename(program)
    inbox.advance(5)
    turns_until(inbox, importer, lambda: inbox.counts("done") == [1])
    assert inbox.notices == [sentence]


def test_a_document_that_changes_while_it_is_analyzed_is_analyzed_again(
    inbox: Inbox, tmp_path: Path
) -> None:
    path = inbox.drop("ana/1.pdf", pdf("Ida"))
    code = f"if not os.path.exists(sys.argv[0] + 'ed'):\n open(sys.argv[0] + 'ed', 'w'); open({str(path)!r}, 'a').write(' the second')\n"
    importer = inbox.importer(settle_s=0.01, **analyzing(tmp_path, code + ECHO))
    turns_until(inbox, importer, lambda: bool(inbox.rows()))
    assert inbox.names() == ["Ida the second"]
    assert len(told(tmp_path, "ran")) == 2


def test_a_document_that_changes_each_time_fails(inbox: Inbox, tmp_path: Path) -> None:
    path = inbox.drop("ana/1.pdf", pdf("Ida"))
    importer = inbox.importer(
        settle_s=0.01, **analyzing(tmp_path, f"open({str(path)!r}, 'a').write('.')\n{ECHO}")
    )
    turns_until(inbox, importer, lambda: bool(inbox.rows()))
    [row] = inbox.rows()
    assert row.message == "It was changed each time while it was analyzed"
    assert (inbox.names(), inbox.counts("failed")) == ([], [1])
    assert len(told(tmp_path, "ran")) == 3


def test_a_document_that_is_removed_while_it_waits_is_forgotten(
    inbox: Inbox, tmp_path: Path
) -> None:
    first = inbox.drop("ana/1.pdf", pdf("Ida"))
    second = inbox.drop("ana/2.pdf", pdf("Eva"))
    importer = inbox.importer(settle_s=0, **analyzing(tmp_path, WAITS))
    turns_until(inbox, importer, lambda: bool(told(tmp_path, "ran")))
    first.unlink()
    second.unlink()
    (tmp_path / "go").touch()
    turns_until(inbox, importer, lambda: not importer.schedule.has_work)
    assert inbox.rows() == []
    assert inbox.is_tidy()


def test_an_importer_that_ends_ends_the_analyzer(inbox: Inbox, tmp_path: Path) -> None:
    inbox.drop("ana/1.pdf", pdf("Ida"))
    code = f"tell('pid', os.getpid())\n{WAITS}"
    importer = inbox.importer(settle_s=0, **analyzing(tmp_path, code))
    turns_until(inbox, importer, lambda: bool(told(tmp_path, "ran")))
    importer.close()
    assert not is_running(int(told(tmp_path, "pid")[0]))
    assert inbox.names_below("ana") == ["1.pdf"]
    (tmp_path / "go").touch()
    inbox.drain(**analyzing(tmp_path, code))
    assert inbox.names() == ["Ida"]


@pytest.mark.parametrize("moment", [Moment.READ, Moment.COMMITTED, Moment.MOVED])
@pytest.mark.parametrize("end", ["done", "failed", "held", "duplicate"])
def test_wherever_an_importer_is_killed_a_document_is_imported_once(
    inbox: Inbox, tmp_path: Path, moment: Moment, end: str
) -> None:
    inbox.drop("ana/cv.pdf", pdf("Ida"))
    if end == "duplicate":
        inbox.drain(**analyzing(tmp_path))
        inbox.drop("ana/cv.pdf", pdf("Ida"))
    inbox.limit(0 if end == "held" else None)
    code = "tell('ran', '')\nsys.exit('No')" if end == "failed" else ECHO
    options = analyzing(tmp_path, code)
    die(inbox.importer(settle_s=0, observe=killing_at(moment), **options))
    inbox.drain(**options)

    assert inbox.counts(end) == [1]
    assert end in {row.outcome for row in inbox.rows()}
    assert inbox.names() == (["Ida"] if end in ("done", "duplicate") else [])
    assert len(told(tmp_path, "ran")) == 1
    assert inbox.is_tidy()
