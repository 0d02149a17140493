"""How a file of the ledger is shown; the commands' own tests show the rest."""

import dataclasses
from pathlib import Path

import pytest

from cli import dropped_files
from cli.whereabouts import Place
from resumes.store.items import Items, Problem
from resumes.store.ledger import FileOutcome, FileRow
from resumes.store.requests import Action, Request

WHEN = "2026-01-31T09:00:00.000Z"


def a_row(items: Items | None = None) -> FileRow:
    return FileRow(
        account="acme",
        claim_id="c1",
        name="acme/x.json",
        outcome=FileOutcome.HELD,
        reason="quota_reached",
        message=None,
        path=None,
        byte_offset=0,
        size_bytes=1_234,
        claimed_at=WHEN,
        finished_at=WHEN,
        root=None,
        items=items,
        account_id="a",
    )


def test_what_is_not_known_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    dropped_files.put_file(a_row(), None, None, is_near=False)

    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [
        "file", "account", "outcome", "reason", "byte", "size", "claimed", "finished", "id",
    ]  # fmt: skip


def test_what_is_asked_for_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    request = Request("a", "c1", Action.RELEASE, WHEN, None)

    dropped_files.put_file(a_row(), request, None, is_near=False)

    assert "asked     release, since 2026-01-31 09:00 UTC\n" in capsys.readouterr().out
    assert dropped_files.request_as_json(request) == {"action": "release", "requestedAt": WHEN}


def test_an_empty_file_of_several_has_a_count_alone(capsys: pytest.CaptureFixture[str]) -> None:
    dropped_files.put_file(a_row(Items(0, 0, 0, 0, 0)), None, None, is_near=False)

    assert "resumes   0\n" in capsys.readouterr().out


def test_a_problem_without_reason_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    items = Items(1, 0, 0, 1, 0, (Problem(0, "a.json", "held"),))

    dropped_files.put_file(a_row(items), None, None, is_near=False)

    assert capsys.readouterr().out.splitlines()[-1].split() == ["0", "a.json", "-", "-"]


def test_where_the_file_lies_is_shown_and_that_it_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = Place(Path("/srv/inbox"), "_held/acme/x.json")
    dropped = dataclasses.replace(a_row(), root="/srv/inbox")

    dropped_files.put_file(dropped, None, place, is_near=True)
    dropped_files.put_file(a_row(), None, place, is_near=True)
    dropped_files.put_file(a_row(), None, None, is_near=True)

    lines = capsys.readouterr().out.splitlines()
    assert [
        line.removeprefix("lies at").strip() for line in lines if line.startswith("lies at")
    ] == [
        "_held/acme/x.json",
        "/srv/inbox/_held/acme/x.json",
        "not found where it was put",
    ]
