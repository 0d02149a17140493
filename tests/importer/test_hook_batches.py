"""What a run of the command is told."""

import json
import os
import stat
from pathlib import Path

import pytest

from importer import hook_batches
from importer.hook_batches import HookBatch, listed
from importer.telling import FileReport
from resumes.store.ledger import FileOutcome
from tests.importer.hook_reports import a_report


def a_batch(*reports: FileReport) -> HookBatch:
    """A batch of files that came at the same moment."""
    batch = HookBatch()
    for report in reports:
        batch.add(report, 100.0)
    return batch


def test_it_is_due_when_it_was_quiet_or_has_lasted_long_enough() -> None:
    batch = HookBatch()
    batch.add(a_report(), 100.0)
    assert batch.due_at(2, 30) == 102
    batch.add(a_report(), 101.5)
    assert batch.due_at(2, 30) == 103.5
    batch.add(a_report(), 129.0)
    assert batch.due_at(2, 30) == 130


def test_counts_accounts_and_places_are_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RESUMES_HOME", "/srv/resumes")
    batch = a_batch(
        a_report(account="bo"),
        a_report(),
        a_report(outcome=FileOutcome.FAILED),
        a_report(outcome=FileOutcome.HELD),
    )

    environment = batch.environment(Path("/drop"), "/tmp/list")

    assert {name: value for name, value in environment.items() if "_IMPORT_" in name} == {
        "RESUMES_IMPORT_DONE": "2",
        "RESUMES_IMPORT_FAILED": "1",
        "RESUMES_IMPORT_DUPLICATE": "0",
        "RESUMES_IMPORT_HELD": "1",
        "RESUMES_IMPORT_ROOT": "/drop",
        "RESUMES_IMPORT_ACCOUNTS": "ana,bo",
        "RESUMES_IMPORT_BATCH": "/tmp/list",
    }
    assert environment["RESUMES_HOME"] == "/srv/resumes"
    assert environment["PATH"] == os.environ["PATH"]


def test_an_account_that_no_account_can_be_is_not_named() -> None:
    # A journal in `.work` may have been edited to name anything.
    batch = a_batch(a_report(account="$(id)"), a_report(account=""), a_report(account="a,b"))
    assert batch.environment(Path("/"), "")["RESUMES_IMPORT_ACCOUNTS"] == ""


def test_the_list_has_a_line_for_each_file_and_its_owner_alone_may_read_it() -> None:
    failed = a_report(
        "ana/\\x1b\u202e.json",
        outcome=FileOutcome.FAILED,
        reason="invalid_json",
        message='Invalid "JSON"\n',
        filed_as=Path(os.fsdecode(b"/drop/\xff/x.json")),
        resume_id=None,
        warnings=2,
    )
    with listed(a_batch(a_report(), failed)) as path:
        content = Path(path).read_text(encoding="ascii")
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert not Path(path).exists()

    first, second = map(json.loads, content.splitlines())
    assert first == {
        "account": "ana",
        "name": "ana/cv.json",
        "outcome": "done",
        "reason": None,
        "message": None,
        "filed_as": "/drop/_done/2026-01-01/cv-0123abcd.json",
        "resume_id": "2" * 24,
        "warnings": 0,
    }
    assert second["message"] == 'Invalid "JSON"\n'
    assert os.fsencode(second["filed_as"]) == b"/drop/\xff/x.json"


def test_the_list_goes_however_its_use_ends() -> None:
    with pytest.raises(RuntimeError), listed(a_batch(a_report())) as path:
        raise RuntimeError
    assert not Path(path).exists()


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_CHARS"])
def test_a_list_that_would_be_too_long_ends_with_how_many_more_there_were(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = len("ana/cv.json") + len(str(a_report().filed_as))
    monkeypatch.setattr(hook_batches, bound, 3 if bound == "MAX_FILES" else 3 * each)
    batch = a_batch(*[a_report()] * 5)

    lines = [json.loads(line) for line in batch.iter_lines()]

    assert [line.get("name") for line in lines] == ["ana/cv.json"] * 3 + [None]
    assert lines[-1] == {"omitted": 2}
    assert batch.environment(Path("/"), "")["RESUMES_IMPORT_DONE"] == "5"


def test_names_of_accounts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_batches, "MAX_ACCOUNTS", 2)
    batch = a_batch(*(a_report(account=f"a{number}") for number in range(4)))
    assert batch.environment(Path("/"), "")["RESUMES_IMPORT_ACCOUNTS"] == "a0,a1"
