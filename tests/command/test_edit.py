"""`resumes edit`: a resume as text in the user's own editor."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command.conftest import CommandLine, a_resume, on_terminal, store_resumes
from tests.support.store.builders import index_all
from tests.support.stores import open_home

Edit = Callable[..., tuple[int, str]]

UNKNOWN = "mood is not a known field: stored, but not displayed"

OF_ANOTHER = """
import sys
from pathlib import Path
from resumes.analyzer import parse
from resumes.store import accounts, open_store, stored_resumes

_, path, action, resume_id = sys.argv
with open_store(f"sqlite:///{path}") as store:
    owner = accounts.get_account(store, "acme").id
    if action == "delete":
        stored_resumes.delete_resume(store, owner, resume_id)
    else:
        stored_resumes.update_resume(store, owner, resume_id, parse(Path(action).read_bytes()))
"""
"""A program that updates or deletes a resume while it is edited."""


@pytest.fixture
def edit(acme: CommandLine, tmp_path: Path) -> Edit:
    """Runs `resumes edit` at a terminal with an editor that saves one of these texts at each opening."""

    def run(
        *words: str, saves: tuple[bytes, ...] = (), typed: bytes = b"", command: str = ""
    ) -> Any:
        editor, drafts = tmp_path / "vim", tmp_path / "drafts"
        editor.write_text(
            f'#!/bin/sh\nfor path; do :; done\ncp "$path" "$path~"\necho "$@" >> {tmp_path}/called\n'
            f'cp "$path" {tmp_path}/opened\n'
            f'set -- {tmp_path}/save-*\n[ -e "$1" ] && mv "$1" "$path"\n{command}\nexit 0\n'
        )
        editor.chmod(0o755)
        drafts.mkdir(exist_ok=True)
        for number, text in enumerate(saves):
            (tmp_path / f"save-{number}").write_bytes(text)
        code, _, written = on_terminal(
            "--home", str(acme.home), "edit", *words, is_all=True, typed=typed,
            VISUAL=str(editor), TMPDIR=str(drafts),
        )  # fmt: skip
        return code, written.replace("\r\n", "\n")

    return run


def drafts_in(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "drafts").rglob("*.json"))


def exported(acme: CommandLine, resume_id: str) -> bytes:
    return acme.succeeds("export", resume_id).encode()


def test_what_is_saved_is_stored_and_the_id_stays(
    acme: CommandLine, edit: Edit, tmp_path: Path
) -> None:
    body = a_resume("Ada", title="", mood=[1.5, {"x": None}]).replace(b"1.5", b"1.50")
    [ada, bo] = store_resumes(acme.home, body, a_resume("Bo"))

    ended = edit(ada, saves=(a_resume("Zoe", mood="calm"),))

    code, written = ended
    assert code == 0, written
    assert written == f"Updated resume {ada}.\n1 warning:\n  {UNKNOWN}\n"
    opened = (tmp_path / "opened").read_bytes()
    assert b"\n  " in opened
    assert b"1.50" in opened
    assert json.loads(opened) == json.loads(body)
    assert json.loads(exported(acme, ada)) == json.loads(a_resume("Zoe", mood="calm"))
    assert [resume["id"] for resume in acme.answers("list", "--json")["resumes"]] == [ada, bo]
    assert list((tmp_path / "drafts").iterdir()) == []


def test_what_cannot_be_stored_is_edited_again_at_its_first_problem(
    acme: CommandLine, edit: Edit, tmp_path: Path
) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    two = b'{"header": {"name": "Zoe"},\n "title": 5,\n "sections": {"xyzzy": {"column": 0}}}'

    code, written = edit(ada, saves=(b'{"header":\n', two, a_resume("Zoe")), typed=b"y\ny\n")

    assert code == 0, written
    for line in (
        "This cannot be stored (1 problem):", "  Invalid JSON at byte ",
        "This cannot be stored (2 problems):", "  Invalid field title: must be a string\n",
        "xyzzy", "Continue editing? [y/N]: ", f"Updated resume {ada}.",
    ):  # fmt: skip
        assert line in written
    called = (tmp_path / "called").read_text().splitlines()
    assert [re.findall(r"\+\d+", line) for line in called] == [[], ["+2"], ["+2"]]
    assert json.loads(exported(acme, ada))["header"]["name"] == "Zoe"


@pytest.mark.parametrize("typed", [b"n\n", b"\n", b"\x04"])
def test_what_is_given_up_is_kept_in_a_file_that_is_named(
    acme: CommandLine, edit: Edit, tmp_path: Path, typed: bytes
) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))

    code, written = edit(ada, saves=(b"[]",), typed=typed)

    [draft] = drafts_in(tmp_path)
    assert (code, f"Your text is in {draft}\n" in written) == (1, True)
    assert draft.read_bytes() == b"[]"
    assert draft.parent.stat().st_mode & 0o077 == 0
    assert json.loads(exported(acme, ada)) == json.loads(a_resume("Ada"))


def test_a_resume_that_was_changed_or_deleted_meanwhile_is_not_replaced(
    acme: CommandLine, edit: Edit, tmp_path: Path
) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    (bo := tmp_path / "bo").write_bytes(a_resume("Bo"))
    (program := tmp_path / "program.py").write_text(OF_ANOTHER)
    another = f"{sys.executable} {program} {acme.home}/resumes.db"

    code, written = edit(ada, saves=(a_resume("Zoe"),), command=f"{another} {bo} {ada}")

    [draft] = drafts_in(tmp_path)
    assert code == 1
    assert f"Your text is in {draft}\nError: The resume was changed while you edited it" in written
    assert draft.read_bytes() == a_resume("Zoe")
    assert json.loads(exported(acme, ada))["header"]["name"] == "Bo"

    code, written = edit(ada, saves=(a_resume("Zoe"),), command=f"{another} delete {ada}")
    assert (code, "Error: Resume not found" in written, len(drafts_in(tmp_path))) == (1, True, 2)


def test_an_editor_that_fails_loses_nothing(acme: CommandLine, edit: Edit, tmp_path: Path) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    code, written = edit(ada, command="exit 3")
    assert (code, written.endswith("vim failed (exit code 3)\n"), drafts_in(tmp_path)) == (
        2,
        True,
        [],
    )
    code, written = edit(ada, saves=(a_resume("Zoe"),), command="exit 3")
    [draft] = drafts_in(tmp_path)
    assert (code, f"Your text is in {draft}\n" in written) == (2, True)
    assert json.loads(exported(acme, ada)) == json.loads(a_resume("Ada"))


def test_its_answer_as_json(acme: CommandLine, edit: Edit) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    assert json.loads(edit(ada, "--json")[1]) == {"id": ada, "changed": False}
    _, written = edit(ada, "--json", saves=(a_resume("Zoe", mood="calm"),))
    warning = {"path": "mood", "message": UNKNOWN}
    assert json.loads(written) == {"id": ada, "changed": True, "warnings": [warning]}


def test_a_correction_tells_which_resumes_it_replaced(acme: CommandLine, edit: Edit) -> None:
    ada = {"name": "Ada", "email": "ada@example.org"}
    header = ada | {"email": "ad@example.org"}
    [older, typo] = store_resumes(acme.home, a_resume(header=ada), a_resume(header=header))
    with open_home(acme.home) as store:
        index_all(store)
    acme.succeeds("accounts", "set", "acme", "--on-newer", "replace")

    _, written = edit(typo, saves=(a_resume(header=ada),))

    assert written == f"Updated resume {typo}. Replaced {older}.\n"
    [older] = store_resumes(acme.home, a_resume(header=header))
    _, written = edit(older, "--json", saves=(a_resume(header=ada),))
    assert json.loads(written) == {"id": older, "changed": True, "replaced": [typo]}


def test_without_a_terminal_it_says_so(acme: CommandLine) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    assert "Cannot open an editor without a terminal" in acme.fails(2, "edit", ada)
