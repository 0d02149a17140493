"""`resumes delete`."""

import click
import pytest

from cli import questions
from tests.cli.conftest import CommandLine, a_resume, store_resumes


def test_a_deleted_resume_is_gone_and_its_place_free(acme: CommandLine) -> None:
    [ada, bo] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))

    deleted = acme("delete", ada, "--account", "acme")

    assert deleted.stderr == f'Resume {ada} of account "acme" is gone.\n'
    assert acme.answers("delete", bo, "--json") == {"deleted": bo}
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 0
    assert "Resume not found" in acme.fails(1, "delete", ada)


def test_on_a_terminal_it_asks_unless_told_not_to(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    [ada, bo] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))
    asked: list[str] = []
    monkeypatch.setattr(questions, "can_ask", lambda: True)

    def answer_no(question: str, **_: object) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(click, "confirm", answer_no)

    assert acme.fails(1, "delete", ada) == "Nothing was deleted"
    assert asked == ['Delete "Ada Resume" for good?']
    assert "Resume not found" in acme.fails(1, "delete", "no-such-id")
    acme.succeeds("delete", bo, "--yes")
    assert len(asked) == 1
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 1
