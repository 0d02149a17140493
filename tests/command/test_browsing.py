"""`resumes tui`."""

from pathlib import Path

import pytest

from tests.command.conftest import CommandLine, a_resume, on_terminal, store_resumes
from tests.support.programs import command
from tests.support.terminal.console import console


def test_without_a_terminal_it_says_so(acme: CommandLine) -> None:
    refused = acme.fails(2, "tui")
    assert f"needs a terminal. Use `resumes --home {acme.home} list`" in refused


@pytest.mark.slow
def test_what_a_terminal_ui_cannot_open_is_one_line(acme: CommandLine, tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    for words, code, line in (
        (["--open", "x"], 1, "Resume not found"),
        (["--account", "nobody"], 1, "Account not found"),
        (["--read-only", "--database", f"sqlite:///{missing}"], 3, "Database not found"),
    ):
        ended, _, written = on_terminal("--home", str(acme.home), "tui", *words, is_all=True)
        assert (ended, line in written) == (code, True), written
        assert "Traceback" not in written
    assert not missing.exists()
    assert "Invalid value for '--theme': 'x' is not one of " in acme.fails(2, "tui", "--theme", "x")


@pytest.mark.slow
def test_the_account_of_the_settings_is_shown_first(acme: CommandLine) -> None:
    acme.succeeds("accounts", "create", "zoe")
    store_resumes(acme.home, a_resume())
    with console(command(acme.home, "tui"), environment={"RESUMES_ACCOUNT": "zoe"}) as screen:
        screen.shows("Resumes › zoe · no resumes")
