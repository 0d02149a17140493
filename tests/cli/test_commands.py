"""Commands take --json anywhere, and groups know them without importing them."""

import sys
from pathlib import Path

import click
import pytest

from cli.commands import Group
from cli.main import CHAPTERS, resumes
from cli.session import Session
from tests.cli.commands import iter_commands
from tests.cli.conftest import CommandLine, a_resume, store_resumes

LISTINGS = [
    ("accounts", "list"),
    ("accounts", "show", "acme"),
    ("keys", "list"),
    ("plans", "list"),
    ("list",),
    ("imports", "list"),
    ("doctor",),
    ("db", "upgrade"),
]


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_json_may_stand_before_between_or_after(acme: CommandLine, words: tuple[str, ...]) -> None:
    (acme.home / "inbox").mkdir(exist_ok=True)
    store_resumes(acme.home, a_resume())

    after = acme.answers(*words, "--json")

    assert acme.answers("--json", *words) == after
    if len(words) > 1:
        assert acme.answers(words[0], "--json", *words[1:]) == after


@pytest.mark.parametrize("flag", ["--home", "--database"])
def test_where_the_store_is_may_be_said_after_the_command_too(
    flag: str, acme: CommandLine, tmp_path: Path
) -> None:
    other = CommandLine(tmp_path / "other")
    other.succeeds("accounts", "create", "beta")
    value = str(other.home) if flag == "--home" else f"sqlite:///{other.home}/resumes.db"

    for words in (("accounts", "list", flag, value), ("accounts", flag, value, "list")):
        assert [one["name"] for one in acme.answers(*words, "--json")["accounts"]] == ["beta"]


def test_a_flag_of_a_command_s_own_stays_its_own(run: CommandLine) -> None:
    demo = resumes.get_command(click.Context(resumes), "demo")

    assert demo is not None
    assert sum("--home" in param.opts for param in demo.params) == 1
    assert "--home DIR" in run.succeeds("demo", "--help")
    assert "--home" not in run.succeeds("list", "--help")


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for part in CHAPTERS.values() for name, place in part.items()],
)
def test_a_summary_is_what_the_command_says_of_itself(name: str, place: object) -> None:
    command = resumes.get_command(click.Context(resumes), name)

    assert command is not None
    assert command.name == name
    said = " ".join((command.help or "").split())
    summary = getattr(place, "summary", "").removesuffix(".")
    assert said.startswith(summary), said


def test_help_leaves_the_commands_unimported(run: CommandLine) -> None:
    sys.modules.pop("cli.doctor", None)

    run.succeeds("--help")

    assert "cli.doctor" not in sys.modules


def test_every_command_and_option_says_what_it_is_for() -> None:
    for words, command in iter_commands(resumes):
        assert command.help, words
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, (words, param.name)


def test_json_is_switched_on_and_never_off() -> None:
    group = Group("g")

    @group.command("c")
    @click.pass_obj
    def command(session: Session) -> None:
        assert session.as_json

    for words in (["--json", "c"], ["c", "--json"], ["--json", "c", "--json"]):
        group.main(words, standalone_mode=False, obj=Session())
