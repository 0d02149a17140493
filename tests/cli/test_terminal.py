"""`resumes tui`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from cli.terminal import tui
from resumes.errors import NotFound
from resumes.settings import Theme
from tests.cli.conftest import CommandLine
from tui import service
from tui.session import Session


def test_without_a_terminal_it_says_so(acme: CommandLine) -> None:
    assert "needs a terminal. Elsewhere use `resumes list`" in acme.fails(2, "tui")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that say that they are a terminal; click's stand-ins for them too."""
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(type(getattr(sys, stream)), "isatty", lambda _: True, raising=False)
    from click import testing

    monkeypatch.setattr(testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)


@pytest.mark.usefixtures("terminal")
def test_what_was_asked_for_is_passed_on_and_its_code_is_ours(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def run(open_session: Callable[[], Session], **options: Any) -> int:
        session = open_session()
        asked.update(options, account=session.account, theme=session.settings.theme)
        return 1

    monkeypatch.setattr(service, "run", run)

    result = acme("tui", "keys", "--account", "acme", "--theme", "light", "--read-only")

    assert result.exit_code == 1
    assert asked == {"screen": "keys", "account": "acme", "read_only": True, "theme": "light"}


@pytest.mark.usefixtures("terminal")
def test_a_resume_that_is_not_there_is_one_line(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(open_session: Callable[[], Session], **_: Any) -> int:
        open_session()
        return 0

    monkeypatch.setattr(service, "run", run)

    assert "Resume not found" in acme.fails(1, "tui", "--open", "x")


@pytest.mark.usefixtures("terminal")
def test_what_it_refuses_is_one_line(acme: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(store: object, **options: Any) -> int:
        raise NotFound("No such screen")

    monkeypatch.setattr(service, "run", run)

    assert acme.fails(1, "tui") == "No such screen"


def test_its_colours_are_those_that_can_be_set() -> None:
    (option,) = [one for one in tui.params if one.name == "theme"]
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == list(Theme)


@pytest.mark.usefixtures("terminal")
def test_read_only_makes_no_store(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(open_session: Callable[[], Session], **_: Any) -> int:
        open_session()
        return 0

    monkeypatch.setattr(service, "run", run)
    path = tmp_path / "none.db"

    assert "Database not found" in acme.fails(
        3, "--database", f"sqlite:///{path}", "tui", "--read-only"
    )
    assert not path.exists()
