"""What the docs promise is there, and what is there the docs name."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.main import resumes as command_line
from importer.scanning import SYSTEM_FOLDERS, TEMPORARY
from resumes import analyzer
from resumes.analyzer.kinds import Group, Kind, Listing
from resumes.analyzer.sections import HEADER, LAYOUTS, SECTION_TYPES, STYLE
from resumes.errors import ResumesError
from resumes.settings import Settings
from tests.system import pages

pytestmark = pytest.mark.docs

LARGEST_PICTURE_BYTES = 100_000


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
    for page in pages.all_pages(repository):
        for target, chapter in pages.links(page):
            assert target.exists(), f"{page.name}: {target}"
            assert not chapter or chapter in pages.anchors(target), f"{page.name}: #{chapter}"


def test_the_index_names_every_page(repository: Path) -> None:
    index = (repository / "docs" / "README.md").resolve()
    named = {target for target, _ in pages.links(index)}
    assert set(pages.all_pages(repository)) - named == {index}


def test_every_page_is_reached_from_the_readme(repository: Path) -> None:
    reached: set[Path] = set()
    waiting = {(repository / "README.md").resolve()}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        found = {target for target, _ in pages.links(page) if target.suffix == ".md"}
        waiting |= found - reached
    assert set(pages.all_pages(repository)) <= reached


@pytest.mark.parametrize("picture", ["resumes.svg", "command-line.svg", "api.png"])
def test_each_surface_has_its_picture_in_the_readme(
    picture: str, readme: str, repository: Path
) -> None:
    assert f"](docs/pictures/{picture})" in readme
    assert (repository / "docs" / "pictures" / picture).stat().st_size < LARGEST_PICTURE_BYTES


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


def sources(repository: Path) -> Iterator[tuple[Path, str]]:
    """Every Python file and style sheet of the project with its text, but this one."""
    for folder in ("src", "tests"):
        for suffix in ("py", "tcss"):
            for path in (repository / folder).rglob(f"*.{suffix}"):
                if path != Path(__file__):
                    yield path, path.read_text(encoding="utf-8")


def test_every_pitfall_that_is_cited_has_its_row(repository: Path) -> None:
    page = (repository / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| ([A-Z][0-9]+) \|", page, re.MULTILINE))
    cited = set()
    for _, text in sources(repository):
        for codes in re.findall(r"pitfalls\s+([A-Z][0-9]+(?:,\s+[A-Z][0-9]+)*)", text):
            cited.update(re.findall(r"[A-Z][0-9]+", codes))
        cited.update(code.upper() for code in re.findall(r"def test_([sir][0-9]+)_", text))
    assert cited == rows


def test_what_holds_a_pitfall_is_there(repository: Path) -> None:
    page = (repository / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([a-z_/]+\.py)`", page):
        assert any(
            list((repository / folder).glob(f"**/{name.removeprefix('tests/')}"))
            for folder in ("src", "tests")
        ), name


def test_no_source_cites_a_page_that_is_not_in_the_repository(repository: Path) -> None:
    for path, text in sources(repository):
        absent = re.findall(r"\b(?:interface|decisions|design|style)\.md|\bresearch/", text)
        assert not absent, path
        for page in re.findall(r"\bdocs/[a-z/0-9-]+\.md", text):
            assert (repository / page).exists(), f"{path.name}: {page}"


def test_every_chapter_that_a_source_cites_is_on_its_page(repository: Path) -> None:
    cited = 0
    for path, text in sources(repository):
        for name, chapter in re.findall(r"\((docs/[a-z]+\.md),\s+([^;)(]+)", text):
            page = (repository / name).read_text(encoding="utf-8")
            chapter = " ".join(chapter.split())
            assert re.search(rf"^#+ {re.escape(chapter)}\b", page, re.MULTILINE), (
                f"{path.name}: {name}, {chapter}"
            )
            cited += 1
    assert cited


@pytest.fixture(scope="module")
def format_page(repository: Path) -> str:
    return (repository / "docs" / "format.md").read_text(encoding="utf-8")


def inner_fields(kind: Kind) -> Iterator[str]:
    """The fields of the objects that a field may hold."""
    if isinstance(kind, Group):
        yield from kind.fields
    elif isinstance(kind, Listing):
        yield from inner_fields(kind.entry)


@pytest.mark.parametrize("name", list(SECTION_TYPES))
def test_the_format_page_has_the_row_of_every_section_type(name: str, format_page: str) -> None:
    section_type = SECTION_TYPES[name]
    row = re.search(rf"^\| `{name}` \| ([^|]+) \| ([^|]+) \|$", format_page, re.MULTILINE)
    assert row is not None
    assert row[1] == section_type.heading
    named = re.sub(r"\([^)]*\)", "", row[2])
    assert re.findall(r"`(\w+)`", named) == list(section_type.fields)
    for field in section_type.own_fields:
        assert f"`{field}`" in format_page
    for kind in section_type.fields.values():
        for inner in inner_fields(kind):
            assert f"`{inner}`" in format_page


def test_the_format_page_names_no_section_type_that_is_not_there(format_page: str) -> None:
    table = format_page.split("| section type |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(SECTION_TYPES)


@pytest.mark.parametrize("field", [*HEADER.fields, *STYLE.fields])
def test_the_format_page_names_every_field_of_header_and_style(
    field: str, format_page: str
) -> None:
    assert f"`{field}`" in format_page


@pytest.mark.parametrize(("value", "template"), list(LAYOUTS.items()))
def test_the_format_page_names_every_layout(value: str, template: str, format_page: str) -> None:
    assert f"`{value}` ({template})" in format_page


def test_the_importing_page_names_every_name_that_is_passed_over(repository: Path) -> None:
    page = (repository / "docs" / "importing.md").read_text(encoding="utf-8")
    hidden = page.split("Hidden and\ntemporary names")[1].split("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", hidden)) == {".x", *TEMPORARY, *SYSTEM_FOLDERS}
