"""What the docs promise is there, and what is there the docs name."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.main import resumes as command_line
from resumes import analyzer
from resumes.analyzer.sections import SECTION_TYPES
from resumes.errors import ResumesError
from resumes.settings import Settings


def commands(command: click.Command, name: str = "resumes") -> Iterator[str]:
    """Every command below a group, as it is typed."""
    if not isinstance(command, click.Group):
        yield name
        return
    context = click.Context(command)
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        assert found is not None
        yield from commands(found, f"{name} {child}")


COMMANDS = list(commands(command_line))


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_names_every_command(command: str, readme: str) -> None:
    assert f"`{command}`" in readme


def test_the_readme_names_no_command_that_is_not_there(readme: str) -> None:
    table = readme.split("## Commands")[1].split("## Settings")[0]
    named = re.findall(r"`(resumes(?: [a-z-]+)+)`", table)
    assert set(named) == set(COMMANDS)


@pytest.mark.parametrize("setting", list(Settings.model_fields))
def test_the_readme_names_every_setting(setting: str, readme: str) -> None:
    assert f"`RESUMES_{setting.upper()}`" in readme
    assert setting == "home" or f"| `{setting}` |" in readme


def test_the_readme_gives_the_defaults_that_are_in_force(readme: str) -> None:
    for name in ("port", "workers", "max_body_bytes", "settle_s", "scan_s"):
        default = re.search(rf"^\| `{name}` \| \S+ \| `(\S+)` \|", readme, re.MULTILINE)
        assert default is not None
        assert float(default[1]) == float(Settings.model_fields[name].default)


def test_every_link_in_the_docs_leads_somewhere(repository: Path) -> None:
    for page in [*repository.glob("*.md"), *repository.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_sample_is_described(repository: Path) -> None:
    page = (repository / "sample_data" / "README.md").read_text(encoding="utf-8")
    for sample in (repository / "sample_data").rglob("*.json"):
        assert sample.name in page


def test_every_bad_sample_is_refused_with_the_message_that_its_page_gives(repository: Path) -> None:
    page = (repository / "sample_data" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+\.json)` \| [^|]* \| `([^|`]*)`[^|]*\|$", page, re.MULTILINE)
    samples = {path.name: path for path in (repository / "sample_data" / "bad").iterdir()}
    assert {name for name, _ in rows} == set(samples)
    for name, message in rows:
        with pytest.raises(ResumesError) as refused:
            analyzer.parse(samples[name].read_bytes())
        assert refused.value.message.startswith(message.rstrip("…")), name


def test_every_good_sample_is_accepted_and_one_has_all_26_section_types(repository: Path) -> None:
    complete = []
    for path in (repository / "sample_data").glob("*.json"):
        parsed = analyzer.parse(path.read_bytes())
        assert bool(parsed.warnings) == path.name.startswith("warnings-"), path.name
        if json.loads(parsed.document)["sections"].keys() == SECTION_TYPES.keys():
            complete.append(path.name)
    assert complete
