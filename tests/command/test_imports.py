"""`resumes imports`: the ledger, where its files lie, and what is asked for them."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from resumes.store import import_history, import_requests, importers
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import FileOutcome, Items, Problem
from tests.command.conftest import (
    CommandLine,
    a_resume,
    finish,
    ledger_id,
    record_file,
    start,
    store_resumes,
)
from tests.support.analyzers import an_analyzer
from tests.support.inbox.builders import bound_by_permissions
from tests.support.inbox.packing import zipped
from tests.support.store.builders import an_importer
from tests.support.stores import open_home
from tests.support.waiting import wait_until

PENDING = re.compile(r"^pending +retry, since", re.MULTILINE)


def listed(run: CommandLine, *words: str) -> list[str]:
    """The first digits of the ids of the files that are listed."""
    return [one["id"][0] for one in run.answers("imports", "list", *words, "--json")["files"]]


@pytest.fixture
def filled(acme: CommandLine) -> CommandLine:
    """`acme` with two files that failed, one that is held and one that is done."""
    record_file(acme, ledger_id("1"))
    record_file(acme, ledger_id("2"), reason="too_large")
    record_file(acme, ledger_id("3"), FileOutcome.HELD, reason="quota_reached")
    record_file(acme, ledger_id("4"), FileOutcome.DONE, reason=None)
    return acme


def test_files_are_listed_newest_first(filled: CommandLine) -> None:
    lines = [line.split() for line in filled.succeeds("imports", "list").splitlines()[1:]]
    assert lines[-1] == [ledger_id("1"), "failed", "invalid_json", "acme/x\\x1b.json"]
    assert [line[0][0] for line in lines] == ["4", "3", "2", "1"]

    assert listed(filled, "--outcome", "failed") == ["2", "1"]
    assert listed(filled, "--reason", "too_large") == ["2"]
    assert listed(filled, "--reason", "too_large", "--outcome", "held") == []
    filled.succeeds("accounts", "create", "beta")
    assert filled("imports", "list", "--account", "beta").stderr == "No matching files.\n"
    assert "Account not found" in filled.fails(1, "imports", "list", "--account", "gamma")
    assert "'no' is not one of 'invalid_json'" in filled.fails(
        2, "imports", "list", "--reason", "no"
    )


@pytest.mark.parametrize(
    ("flags", "order", "position"),
    [([], ["4", "3", "2", "1"], "{}"), (["--failed-first"], ["2", "1", "3", "4"], "failed:{}")],
)
def test_the_list_goes_on_with_the_last_id(
    filled: CommandLine, flags: list[str], order: list[str], position: str
) -> None:
    first = filled("imports", "list", "--limit", "2", *flags)

    assert [line[0] for line in first.stdout.splitlines()[1:]] == order[:2]
    before = position.format(ledger_id(order[1]))
    assert first.stderr == f"More: add --before {before}\n"
    words = ("imports", "list", *flags, "--before")
    rest = filled.answers(*words, before, "--json")
    assert ([one["id"][0] for one in rest["files"]], rest["before"]) == (order[2:], None)
    assert listed(filled, *flags) == order
    wrong = "Invalid position" if flags else "24 hexadecimal digits"
    assert wrong in filled.fails(2, *words, "x")


def test_show_says_why(acme: CommandLine) -> None:
    record_file(acme, "c1")

    shown = acme.succeeds("imports", "show", "c1")

    assert "message      Invalid JSON at byte 1: EOF\n" in shown
    assert "folder       /srv/inbox (not on this machine)\n" in shown
    assert "byte offset  1\n" in shown
    assert "pending" not in shown
    told = acme.answers("imports", "show", "c1", "--json")
    assert (told["byteOffset"], told["root"], told["items"]) == (1, "/srv/inbox", None)
    assert told["request"] is None
    assert '"nope"' in acme.fails(1, "imports", "show", "nope")


def test_show_says_what_became_of_the_resumes_in_a_file_of_several(acme: CommandLine) -> None:
    problem = Problem(3, "line\x1b 3", "failed", "invalid_json", "Invalid JSON: EOF")
    items = Items(1_003, 1_000, 2, 0, 1, (problem,))
    record_file(acme, "c1", items=items, source=b'{\n "a": "\x1b[31m\xff\n')

    shown = acme.succeeds("imports", "show", "c1")

    assert "resumes      1,003: 1,000 done, 2 duplicate, 1 failed\n" in shown
    assert shown.endswith(
        "\nitem  place       reason        message\n"
        "   3  line\\x1b 3  invalid_json  Invalid JSON: EOF\n"
    )
    told = acme.answers("imports", "show", "c1", "--json")["items"]
    assert (told["total"], told["problems"][0]["place"]) == (1_003, "line\x1b 3")
    shown = acme.succeeds("imports", "show", "c1", "--source")
    assert shown == '{\n "a": "\\x1b[31m\\xff\n'
    source = acme.answers("imports", "show", "c1", "--source", "--json")["source"]
    assert source == '{\n "a": "\x1b[31m\\xff\n'


def test_files_with_warnings_are_marked_and_the_warnings_shown(acme: CommandLine) -> None:
    inbox = acme.home / "inbox" / "acme"
    warned = a_resume(hobby="x", pet="y")
    contents = {
        "1.json": a_resume("Bo"),
        "2.json": warned,
        "3.json": warned + b" ",  # a duplicate, about which nothing is to be said
        "4.zip": zipped({
            "a.json": a_resume("Cy", hobby="x"),
            "b.json": a_resume("Di", hobby="x"),
            "c.txt": b"",
        }),
    }  # fmt: skip
    for at, (name, content) in enumerate(contents.items()):
        (inbox / name).write_bytes(content)
        os.utime(inbox / name, (at, at))
    acme.succeeds("watch", "--once", "--settle", "0")

    files = {
        Path(one["name"]).name: one for one in acme.answers("imports", "list", "--json")["files"]
    }

    assert {name: one["warnings"] for name, one in files.items()} == {
        "1.json": 0, "2.json": 2, "3.json": 0, "4.zip": 2,
    }  # fmt: skip
    assert files["2.json"]["items"] is None
    listed = acme.succeeds("imports", "list")
    assert re.findall(r"(done|duplicate) +(-|\d warnings?) +acme/(\d)", listed) == [
        ("done", "2 warnings", "4"),
        ("duplicate", "-", "3"),
        ("done", "2 warnings", "2"),
        ("done", "-", "1"),
    ]
    shown = acme.succeeds("imports", "show", files["4.zip"]["id"])
    assert re.search(r"^warnings +2$", shown, re.MULTILINE)
    assert re.search(r"^skipped +1 member$", shown, re.MULTILINE)
    assert re.search(r"^warning +member b.json: hobby +", shown, re.MULTILINE)
    assert re.search(r"^skipped +c.txt +not .json", shown, re.MULTILINE)
    told = acme.answers("imports", "show", files["2.json"]["id"], "--json")
    assert [one["path"] for one in told["warnings"]] == ["hobby", "pet"]
    assert told["resumeId"]


def import_one(run: CommandLine, content: bytes, name: str = "x y.json") -> FileRow:
    """The row of a file that was dropped and imported."""
    inbox = run.home / "inbox" / "acme"
    (inbox / name).write_bytes(content)
    run("watch", "--once", "--settle", "0")
    with open_home(run.home) as store:
        [row, *_] = import_history.list_files(store)
    return row


@pytest.mark.parametrize(
    ("content", "most", "below"),
    [
        (a_resume(unknown=1), "9", "_done/"),
        (a_resume(unknown=1), "0", "_held/acme/"),
        (b"{" + bytes(range(97, 123)) * 4_000, "9", "_failed/invalid_json/"),
    ],
    ids=["done", "held", "failed"],
)
def test_a_file_is_found_where_it_was_put(
    acme: CommandLine, content: bytes, most: str, below: str
) -> None:
    acme.succeeds("plans", "set", "free", "--max-resumes", most)
    row = import_one(acme, content)

    told = acme.answers("imports", "show", row.claim_id, "--json")

    path = Path(told["filedAs"])
    assert path.read_bytes() == content
    place = str(path.relative_to(acme.home / "inbox"))
    assert place.startswith(below)
    shown = acme.succeeds("imports", "show", row.claim_id)
    assert re.search(rf"^path +{re.escape(place)}$", shown, re.MULTILINE)
    if below == "_done/":
        assert re.search(rf"^resume +{told['resumeId']}$", shown, re.MULTILINE)
        assert "Ada Lovelace" in acme.succeeds("show", told["resumeId"])
        assert re.search(r"^warning +unknown ", shown, re.MULTILINE)
        again = import_one(acme, content)
        assert told["resumeId"] in acme.succeeds("imports", "show", again.claim_id)

    if below.startswith("_failed/"):
        told = acme.answers("imports", "show", row.claim_id, "--source", "--json")
        assert told["source"] == content[: 64 * 1024].decode()  # as much as the ledger has

    path.unlink()

    shown = acme.succeeds("imports", "show", row.claim_id)
    assert re.search(r"^path +file is missing$", shown, re.MULTILINE)
    assert acme.answers("imports", "show", row.claim_id, "--json")["filedAs"] is None


def test_a_resume_leads_to_its_file_and_to_one_that_was_dismissed(acme: CommandLine) -> None:
    lines = b"\n".join([a_resume("Ada"), b"{", a_resume("Bo")])
    row = import_one(acme, lines)
    [ada, _] = [one["id"] for one in acme.answers("list", "--json")["resumes"]]

    assert acme.answers("imports", "show", ada, "--json")["id"] == row.claim_id
    filed = acme.answers("imports", "show", row.claim_id, "--json")["filedAs"]
    acme.succeeds("accounts", "create", "other")
    said = acme.fails(1, "imports", "show", row.claim_id, "--account", "other")
    assert "File not found" in said
    assert "dismissed" not in said
    dismissed = acme("imports", "dismiss", row.claim_id)

    assert dismissed.stderr == "Dismissed 1 file: off the list, not deleted.\n"
    mine = ("--account", "acme")
    for words in (
        ("show", ada, *mine),
        ("show", row.claim_id, *mine),
        ("retry", row.claim_id),
        ("dismiss", row.claim_id),
        ("release", row.claim_id),
    ):
        said = acme.fails(1, "imports", *words)
        assert f"The file was dismissed. It is still at {filed}" in said
    for wrong in ("", row.claim_id[-8:], row.claim_id[1:]):
        assert "File not found" in acme.fails(1, "imports", "show", wrong, *mine)
    assert f"Its file was dismissed. It is still at {filed}." in acme.succeeds("show", ada, *mine)
    Path(filed).unlink()
    where = "was dismissed. It is no longer where it was put"
    assert f"The file {where}" in acme.fails(1, "imports", "show", ada, *mine)
    assert f"Its file {where}." in acme.succeeds("show", ada, *mine)


def test_a_resume_names_its_file_also_after_a_move_of_the_home(acme: CommandLine) -> None:
    row = import_one(acme, a_resume("Ada"))
    [ada] = [one["id"] for one in acme.answers("list", "--json")["resumes"]]
    filed = Path(acme.answers("imports", "show", ada, "--json")["filedAs"])
    assert (
        acme.succeeds("show", ada).splitlines()[2]
        == f"Imported from {row.name}, which is now {filed}."
    )

    moved = CommandLine(acme.home.rename(acme.home.with_name("moved")))

    now = moved.home / filed.relative_to(acme.home)
    assert f"{row.name}, which is now {now}." in moved.succeeds("show", ada)
    assert f"folder     {moved.home / 'inbox'}\n" in moved.succeeds("imports", "show", ada)
    now.unlink()
    gone = f"which is no longer in {acme.home / 'inbox'} (not on this machine)."
    assert gone in moved.succeeds("show", ada)
    assert f"folder     {acme.home / 'inbox'} (not on this machine)\n" in moved.succeeds(
        "imports", "show", ada
    )


def test_a_resume_that_came_from_no_file_says_so(acme: CommandLine) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    assert "did not come from a file that is listed" in acme.fails(1, "imports", "show", ada)
    assert "file" not in acme.succeeds("show", ada).lower()


def test_show_says_all_that_is_wrong_and_what_to_do(acme: CommandLine) -> None:
    row = import_one(acme, b'{"header": {"name": 7, "title": 8}, "sections": {}}')

    shown = acme.succeeds("imports", "show", row.claim_id)

    retry = shlex.join(["resumes", "--home", str(acme.home), "imports", "retry", row.claim_id])
    assert re.search(
        rf"^to do +Fix the listed fields .*`{re.escape(retry)}`\.$", shown, re.MULTILINE
    )
    for field in ("name", "title"):
        line = rf"^error +header\.{field} +Invalid field header\.{field}: must be a string$"
        assert re.search(line, shown, re.MULTILINE)
    [report] = re.findall(r"^report +(.*)$", shown, re.MULTILINE)
    told = acme.answers("imports", "show", row.claim_id, "--json")
    assert told["issues"] == json.loads(Path(report).read_bytes())["issues"]
    assert len(told["issues"]) == 2
    assert retry in told["hint"]


def test_what_was_rightly_rejected_can_be_dismissed(filled: CommandLine) -> None:
    refused = filled.fails(1, "imports", "dismiss", ledger_id("1"), ledger_id("4"))
    assert (
        f"Cannot dismiss {ledger_id('4')}: only failed and held files can be dismissed" in refused
    )
    assert listed(filled, "--outcome", "failed") == ["2", "1"]

    said = filled("imports", "dismiss", ledger_id("1")).stderr

    assert said == "Dismissed 1 file: off the list, not deleted.\n"
    assert listed(filled, "--outcome", "failed") == ["2"]
    assert filled.answers("imports", "dismiss", "--reason", "too_large", "--json") == {
        "dismissed": 1
    }
    assert filled("imports", "dismiss", "--all").stderr == "Nothing to dismiss.\n"
    assert listed(filled, "--outcome", "held") == ["3"]
    # As one that somebody deleted has to be.
    assert (
        filled("imports", "dismiss", ledger_id("3")).stderr
        == "Dismissed 1 file: off the list, not deleted.\n"
    )
    assert listed(filled, "--outcome", "held") == []


def watch(run: CommandLine, root: str = "/srv/inbox") -> None:
    """An importer says that it watches the folder."""
    with open_home(run.home) as store:
        importers.register(store, an_importer(root=root))


def asked(run: CommandLine) -> list[tuple[str, str]]:
    """The first digits of the files that are asked for, and the actions."""
    with open_home(run.home) as store:
        return [(one.claim_id[0], one.action) for one in import_requests.list_requests(store)]


def test_files_are_asked_for_by_id(filled: CommandLine) -> None:
    watch(filled)

    result = filled("imports", "retry", ledger_id("1"), ledger_id("3"), ledger_id("1"))

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Queued 2 files for retry; they will be processed within a second.\n"
    assert asked(filled) == [("1", "retry"), ("3", "release")]
    assert PENDING.search(filled.succeeds("imports", "show", ledger_id("1")))
    for words, message in (
        ((), "Give one or more file IDs"),
        (("c1", "--all"), "cannot be combined"),
        (("--all", "--wait", "1"), "--wait requires file IDs"),
    ):
        assert message in filled.fails(2, "imports", "retry", *words)
        assert message in filled.fails(2, "imports", "release", *words)


def test_without_an_importer_it_is_said_how_to_come_by_one(filled: CommandLine) -> None:
    result = filled("imports", "release", ledger_id("3"))

    start = shlex.join(["--home", str(filled.home), "up"])
    assert result.exit_code == 0
    # The folder is not this home's: a command that imports it is not for us to name.
    assert result.stderr.startswith(
        "Queued 1 file for release, but no importer is running for it: restart the importer for "
        "/srv/inbox, or run "
    )
    assert result.stderr.endswith(
        f" {start}` if that folder has been moved to {filled.home}/inbox.\n"
    )
    assert asked(filled) == [("3", "release")]
    # Nor does that folder concern a request for another.
    watch(filled, "/srv/other")
    record_file(filled, ledger_id("6"), root="/srv/other")
    result = filled("imports", "retry", ledger_id("6"))
    assert result.stderr == "Queued 1 file for retry; it will be processed within a second.\n"


def test_many_are_chosen_by_account_and_reason(filled: CommandLine) -> None:
    filled.succeeds("accounts", "create", "beta")
    record_file(filled, ledger_id("5"), account="beta")

    def count(*words: str) -> int:
        return int(filled.answers("imports", *words, "--json")["asked"])

    assert count("retry", "--reason", "too_large") == 1
    assert asked(filled) == [("2", "retry")]
    assert count("retry", "--account", "beta") == 1
    assert count("retry", "--account", "beta", "--reason", "too_large") == 0
    assert count("retry", "--all") == 3
    assert filled("imports", "release", "--account", "beta").stderr == "Nothing to release.\n"
    assert count("release", "--all") == 1
    assert sorted(asked(filled)) == [
        ("1", "retry"),
        ("2", "retry"),
        ("3", "release"),
        ("5", "retry"),
    ]
    assert "Account not found" in filled.fails(1, "imports", "retry", "--account", "gamma")


def test_a_file_in_the_wrong_state_is_refused_with_what_fits(filled: CommandLine) -> None:
    done = filled.fails(1, "imports", "retry", ledger_id("1"), ledger_id("4"))
    assert done == (
        f"Cannot retry {ledger_id('4')}: it is already imported. "
        "Only failed or held files can be retried"
    )
    failed = filled.fails(1, "imports", "release", ledger_id("1"))
    retry = shlex.join(["resumes", "--home", str(filled.home), "imports", "retry", ledger_id("1")])
    assert failed.endswith(f"it failed. Retry it with `{retry}`")
    assert '"nope"' in filled.fails(1, "imports", "retry", ledger_id("1"), "nope")
    assert asked(filled) == []


def test_of_a_file_that_two_accounts_have_it_is_said_whose_is_meant(filled: CommandLine) -> None:
    export = filled.home / "acme.ndjson"
    filled("accounts", "export", "acme", str(export))
    filled("accounts", "import", str(export), "--name", "copy")

    for words in (("retry",), ("show",), ("retry", "--wait", "0")):
        told = filled.fails(1, "imports", *words, ledger_id("1"))
        assert told == (
            f"{ledger_id('1')} exists in several accounts, acme, copy: add --account NAME"
        )
    assert asked(filled) == []
    filled("imports", "retry", ledger_id("1"), "--account", "copy")
    shown = ("imports", "show", ledger_id("1"), "--account")
    assert PENDING.search(filled.succeeds(*shown, "copy"))
    assert not PENDING.search(filled.succeeds(*shown, "acme"))
    assert "not found" in filled.fails(1, "imports", "retry", "f" * 24, "--account", "acme")

    for flags in ((), ("--failed-first",)):  # no page leaves out a file that two have
        seen: list[tuple[str, str]] = []
        before: tuple[str, ...] = ()
        while True:
            page = filled.answers("imports", "list", "--limit", "1", *flags, *before, "--json")
            seen += [(one["id"][0], one["account"]) for one in page["files"]]
            if page["before"] is None:
                break
            before = ("--before", page["before"])
        assert sorted(seen) == [(digit, name) for digit in "1234" for name in ("acme", "copy")]


@pytest.mark.slow
def test_what_becomes_of_the_files_is_waited_for(acme: CommandLine) -> None:
    row = import_one(acme, b"{")
    words = ("--home", str(acme.home), "imports", "retry", row.claim_id, "--wait", "60")

    waiting = start(*words)
    wait_until(lambda: asked(acme))
    acme("watch", "--once", "--settle", "0")
    code, stdout, stderr = finish(waiting)
    assert (code, "failed" in stdout) == (1, True), stderr

    filed = acme.answers("imports", "show", row.claim_id, "--json")["filedAs"]
    waiting = start(*words, "--json")
    wait_until(lambda: asked(acme))
    # The end of an earlier request is not that of this one.
    record_file(acme, row.claim_id, root=str(row.root))
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(2)
    Path(filed).write_bytes(a_resume())
    acme("watch", "--once", "--settle", "0")
    code, stdout, stderr = finish(waiting)
    assert code == 0, stderr
    told = json.loads(stdout)
    assert (told["action"], told["asked"], told["files"][0]["outcome"]) == ("retry", 1, "done")


def test_a_file_is_shown_though_its_folder_may_not_be_entered_or_has_too_long_a_name(
    acme: CommandLine, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    record_file(acme, "c1", root=str(closed / "inbox"))
    record_file(acme, "c2", root="/srv/" + "x" * 300)
    closed.chmod(0)

    with bound_by_permissions():
        shown = [acme("imports", "show", claim_id) for claim_id in ("c1", "c2")]
        source = acme("imports", "show", "c1", "--source")

    closed.chmod(0o700)
    assert [one.exit_code for one in shown] == [0, 0]
    assert all("message      Invalid JSON at byte 1: EOF\n" in one.stdout for one in shown)
    assert source.stdout == "{\n"


# Documents that the user's own analyzer reads


ANALYZER = """
text = open(FILE).read()
sys.stderr.write("read " + text.partition("of ")[2])
if "nobody" in text: sys.exit(1)
name, address = text.partition("of ")[2].split()[:2]
print(json.dumps({"header": {"name": name + " Plughsson", "email": address}, "sections": {}}))
"""


@pytest.fixture
def analyzing(acme: CommandLine, tmp_path: Path) -> CommandLine:
    """`acme` with an analyzer, which takes name and address from a document."""
    folder = tmp_path / "analyzer"
    folder.mkdir()
    command = json.dumps(an_analyzer(folder, ANALYZER))
    (acme.home / "config.toml").write_text(f"analyzer = {command}\nsettle_s = 0\n")
    return acme


def drop(run: CommandLine, **documents: str) -> None:
    """Drop PDFs, and import what is there."""
    folder = run.home / "inbox" / "acme"
    for name, text in documents.items():
        (folder / f"{name}.pdf").write_text(f"%PDF-1.7 of {text}")
    run("watch", "--once")


def ids(run: CommandLine) -> dict[str, str]:
    """The ids of the files by their names."""
    files = run.answers("imports", "list", "--json")["files"]
    return {Path(file["name"]).stem: file["id"] for file in files}


def test_a_file_shows_how_it_was_analyzed_and_what_was_written(analyzing: CommandLine) -> None:
    drop(analyzing, ida="Ida ida@example.org", none="nobody nobody@example.org")
    known = ids(analyzing)

    shown = analyzing.succeeds("imports", "show", known["ida"])
    assert re.search(r"^analyzed +in [0-9.]+ s$", shown, re.MULTILINE)
    assert re.search(r"^analyzer said +read Ida ida@example.org$", shown, re.MULTILINE)
    told = analyzing.answers("imports", "show", known["ida"], "--json")
    assert told["analysis"]["said"] == "read Ida ida@example.org"
    assert told["analysis"]["tookS"] > 0
    assert told["resumeId"]
    source = analyzing.succeeds("imports", "show", known["ida"], "--source")
    assert json.loads(source)["header"]["name"] == "Ida Plughsson"

    failed = analyzing.answers("imports", "show", known["none"], "--json")
    assert (failed["outcome"], failed["reason"]) == ("failed", "analyzer")
    assert failed["message"].endswith("failed with exit code 1: read nobody nobody@example.org")
    assert "imports retry" in failed["hint"]


def test_doctor_says_how_many_documents_wait_and_how_long_they_take(analyzing: CommandLine) -> None:
    drop(analyzing, ida="Ida ida@example.org")
    (analyzing.home / "inbox/acme/next.pdf").write_text("%PDF")
    told = analyzing("doctor").stdout
    assert re.search(
        r"documents +1 document waiting for the analyzer; of the newest 1 document, half took at "
        r"most [0-9.]+ s, and all at most [0-9.]+ s",
        " ".join(told.split()),
    )
    assert "will not be imported" not in told

    (analyzing.home / "config.toml").write_text("")
    told = " ".join(analyzing("doctor").stdout.split())
    assert "1 file in" in told
    assert 'will not be imported: "next.pdf" (no analyzer is set)' in told
    assert "documents" not in told


def test_documents_of_replaced_and_deleted_resumes_are_forgotten_too(
    analyzing: CommandLine,
) -> None:
    analyzing.succeeds("list", "--filter", "ida")  # the resumes are in the index
    analyzing.succeeds("accounts", "set", "acme", "--on-newer", "replace")
    for text in ("first", "second"):
        drop(analyzing, **{text: f"Ida ida@example.org {text}"})
    drop(analyzing, forgotten="Jo jo@example.org")  # not a name that `forget` gave
    drop(analyzing, gone="Eva eva@example.org, not ida@example.org")
    (ida, _, gone) = analyzing.answers("list", "--json")["resumes"]
    assert ida["title"].startswith("Ida")
    analyzing.succeeds("delete", gone["id"], "--yes")

    told = analyzing("forget", "ida@example.org", "--yes")

    # Nothing tells whose the deleted resume was, so its document is named.
    assert re.findall(r"/(\w+)-\w+\.pdf may name the person", told.stderr) == ["gone"]
    left = sorted(path.name.partition("-")[0] for path in (analyzing.home / "inbox").rglob("*.pdf"))
    assert left == ["forgotten", "gone"]


def test_a_document_with_long_output_that_was_refused_is_named(
    acme: CommandLine, tmp_path: Path
) -> None:
    output = {"sections": {"no": {"items": ["x" * 70_000]}}, "header": {"email": "ida@example.org"}}
    command = json.dumps(an_analyzer(tmp_path, f"print({json.dumps(output)!r})"))
    (acme.home / "config.toml").write_text(f"analyzer = {command}\nsettle_s = 0\n")
    drop(acme, long="Ida ida@example.org")
    told = acme("forget", "ida@example.org", "--yes")
    assert re.findall(r"/(\w+)-\w+\.pdf may name the person", told.stderr) == ["long"]


def test_a_forgotten_person_leaves_no_documents(analyzing: CommandLine) -> None:
    analyzing.succeeds("plans", "set", "small", "--max-resumes", "2")
    analyzing.succeeds("accounts", "set-plan", "acme", "small")
    drop(analyzing, a="Ida ida@example.org", b="Eva eva@example.org")
    drop(analyzing, c="Ida ida@example.org", d="Ida ida@example.org again")
    drop(analyzing, e="nobody ida@example.org", f="nobody eva@example.org")
    inbox = analyzing.home / "inbox"
    assert len([*inbox.rglob("*.pdf")]) == 6

    told = analyzing("forget", "ida@example.org", "--yes")

    # Of what the analyzer could not read, only its text tells.
    [left] = re.findall(r"^(\S+) may name the person", told.stderr, re.MULTILINE)
    assert "/_failed/analyzer/e-" in left
    Path(left).unlink()
    assert analyzing("forget", "ida@example.org", "--yes").exit_code == 0
    contents = {path.name: path.read_bytes() for path in inbox.rglob("*") if path.is_file()}
    documents = [name for name in contents if name.endswith(".pdf")]
    assert sorted(name[0] for name in documents) == ["b", "f"]
    assert not [name for name, content in contents.items() if b"ida" in content.lower()]
    drop(analyzing, g="Ida ida@example.org")
    assert len([*(inbox / "_failed/forgotten").glob("forgotten-*.pdf")]) == 1
