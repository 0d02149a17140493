"""What the pages have a reader type: it works as it stands there, and prints what they say."""

import contextlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import pytest

from cli.main import resumes as command_line
from resumes import analyzer
from resumes.rendering.branding import load_branding
from resumes.settings import load_settings
from tests.support import engines, postgres
from tests.support.pages import Step, all_pages, blocks, steps
from tests.support.reading import World, make_world, play

pytestmark = pytest.mark.docs

REPOSITORY: Final = Path(__file__).parents[2]

ROOT: Final = "needs root on a machine with systemd; the units are tried by test_deployment.py"
MAKES: Final[Mapping[str, str]] = {
    "install": "makes an environment, such as the one that these tests run in",
    "demo": "serves until Ctrl-C; test_tutorial.py runs it with ARGS=--once",
    "test": "runs the tests, of which this is one",
    "slow": "runs the tests, of which this is one",
    "fix": "rewrites the checkout",
    "chaos": "runs tests/chaos, which are tests themselves",
    "fuzz": "runs tests/fuzz, which are tests themselves",
    "mutants": "runs tests anew for every mutant",
    "sbom": "fetches its tools",
    "audit": "fetches its tools, and asks a database of advisories",
}
"""What is left to `make`, on every page, each with its reason."""

NOT_RUN: Final[Mapping[str, Mapping[str, str]]] = {
    "README.md": {
        "git clone": "the address is that of the reader's copy",
        "cd ": "the test is in the checkout already",
    },
    "CONTRIBUTING.md": {"UPDATE_SNAPSHOTS": "rewrites the checkout"},
    "docs/guides/one-machine.md": {"# ": ROOT, "podman": "wants a container engine"},
    "docs/guides/one-machine-with-backups.md": {"# ": ROOT},
    "docs/guides/three-machines.md": {
        "createuser": "asks for a password on the leader of a cluster",
        "createdb": "wants the user of the line before",
    },
}
"""What is not run, by how it begins, each with its reason."""


@dataclass(frozen=True)
class Scene:
    """What a page takes for granted: commands before, and the store's address if it names one."""

    before: tuple[str, ...] = ()
    home: str = ""
    addresses: tuple[str, ...] = ()


ANA: Final = (
    "resumes accounts create ana --plan business",
    "resumes import sample_data/nurse-double-column-en.json sample_data/kucharz-single-column-pl.json",
)
SCENES: Final[Mapping[str, Scene]] = {
    "README.md": Scene(),
    "docs/accounts.md": Scene(before=ANA),
    "docs/api.md": Scene(
        before=(
            "resumes accounts create ana --plan business",
            "resumes serve",
            "KEY=$(resumes keys create ana)",
            "cp sample_data/nurse-double-column-en.json ada.json",
        )
    ),
    "docs/backups.md": Scene(before=ANA, home="/srv/resumes"),
    "docs/erasing.md": Scene(before=ANA),
    "docs/exports.md": Scene(before=ANA),
    "docs/finding.md": Scene(before=("resumes accounts create ana --plan business",)),
    "docs/moving.md": Scene(
        before=ANA, home="/srv/resumes", addresses=("postgresql://resumes@db.internal/resumes",)
    ),
    "docs/pdf.md": Scene(before=ANA),
    "docs/troubleshooting.md": Scene(before=ANA),
    "docs/guides/one-machine-with-backups.md": Scene(
        before=(
            *ANA,
            "mkdir /var/lib/resumes-backups",
            "resumes db backup /var/lib/resumes-backups",
        ),
        home="/var/lib/resumes",
    ),
    "docs/guides/three-machines.md": Scene(
        before=(*ANA, "RESUMES_DATABASE=postgresql://resumes@10.0.0.1/resumes"),
        home="/var/lib/resumes",
        addresses=("postgresql://resumes@10.0.0.1/resumes",),
    ),
}


def is_run(step: Step) -> bool:
    """Whether no reason is given why the command is not run."""
    line = f"# {step.command}" if step.is_for_root else step.command
    made = re.match(r"make ([a-z][a-z-]*)", line)
    return (made is None or made[1] not in MAKES) and not any(
        line.startswith(begin) for begin in NOT_RUN.get(step.page, {})
    )


def names() -> list[str]:
    return [str(page.relative_to(REPOSITORY)) for page in all_pages(REPOSITORY)]


ALL: Final = {name: steps(REPOSITORY, name) for name in names()}
RUN: Final = {name: [one for one in found if is_run(one)] for name, found in ALL.items()}
ELSEWHERE: Final = {"docs/tutorial.md"}
"""Whose commands have a test of their own."""


def test_every_page_with_commands_has_its_scene() -> None:
    assert {name for name, found in RUN.items() if found} - ELSEWHERE == set(SCENES)


@pytest.fixture
def world(tmp_path: Path) -> Callable[..., World]:
    return lambda **more: make_world(tmp_path, REPOSITORY, **more)


@pytest.fixture
def database(_engines: engines.Engines, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes the address of an empty database, on a server that is started when it is asked for."""
    with contextlib.ExitStack() as made:
        newest = f"postgresql-{max(postgres.VERSIONS)}"
        yield lambda: made.enter_context(_engines.get(newest).a_place(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_what_a_page_has_typed_works(
    name: str, world: Callable[..., World], database: Callable[[], str]
) -> None:
    scene = SCENES[name]
    given = world(home=scene.home, replaced={address: database() for address in scene.addresses})
    before = [Step(name, 0, "$ ", command, "…") for command in scene.before]

    play(given, [*before, *RUN[name]])


# What stands within a line


def spans() -> Iterator[tuple[str, str]]:
    """Each command of ours within a line of a page, with the page's name."""
    for name in names():
        text = re.sub(r"^```.*?^```", "", (REPOSITORY / name).read_text("utf-8"), flags=re.M | re.S)
        for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
            yield name, span


def test_every_command_within_a_line_is_one_and_has_these_options() -> None:
    found = [(name, span) for name, span in spans() if span.startswith("resumes ")]
    assert len(found) > 100
    assert [f"{name}: {span}" for name, span in found if find_unknown(span)] == []


def find_unknown(span: str) -> str | None:
    """The first word that should be a command or an option of ours and is none."""
    command: click.Command = command_line
    options = known_options(command)
    words = iter(re.sub(r"[\[\]]", "", span.partition(" < ")[0]).split()[1:])
    for word in words:
        if word.startswith("--"):
            if word.partition("=")[0] not in options:
                return word
            if takes_a_value(command, word):
                next(words, None)
        elif isinstance(command, click.Group) and word not in ("…", "COMMAND"):
            inner = command.get_command(click.Context(command), word)
            if inner is None:
                return word
            command = inner
            options |= known_options(command)
    return None


def takes_a_value(command: click.Command, flag: str) -> bool:
    """Whether the word after the flag is what it is set to."""
    for one in command.get_params(click.Context(command)):
        if isinstance(one, click.Option) and flag in one.opts:
            return not one.is_flag and not one.count
    return False


def known_options(command: click.Command) -> set[str]:
    """The flags that the command takes, and those that all do."""
    context = click.Context(command)
    flags = {
        flag for one in command.get_params(context) for flag in (*one.opts, *one.secondary_opts)
    }
    return flags | {"--help", "--json"}


def test_every_target_of_make_that_a_page_names_is_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    named = {target for _, span in spans() for target in re.findall(r"^make ([a-z][a-z-]*)", span)}
    for one in (one for found in ALL.values() for one in found):
        named |= {*re.findall(r"\bmake ([a-z][a-z-]*)", one.command)}
    assert named
    assert named <= {*re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE)}


# What is to be written into files


def test_every_settings_file_that_a_page_shows_can_be_used(tmp_path: Path) -> None:
    shown = [
        "\n".join(lines)
        for name in names()
        if name != "docs/branding.md"  # which shows another file
        for _, lines in blocks((REPOSITORY / name).read_text("utf-8"), "toml")
    ]
    assert shown
    for text in shown:
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        assert load_settings(home=tmp_path).model_fields_set >= set(tomllib.loads(text))


def test_the_house_style_that_its_page_shows_can_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "branding/acme"
    folder.mkdir(parents=True)
    page = (REPOSITORY / "docs/branding.md").read_text("utf-8")
    ((_, lines),) = blocks(page, "toml")
    (folder / "branding.toml").write_text("\n".join(lines), encoding="utf-8")
    brand, problems = load_branding(tmp_path, "acme")
    assert problems == ()
    assert brand is not None
    assert brand["footer"] in page


def test_the_resume_that_the_format_page_shows_is_one() -> None:
    text = (REPOSITORY / "docs" / "format.md").read_text(encoding="utf-8")
    ((_, lines),) = blocks(text, "json")

    assert analyzer.parse("\n".join(lines).encode()).warnings == ()
