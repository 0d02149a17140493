"""What the docs promise is there, and what is there the docs name."""

import html
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from xml.etree import ElementTree

import click
import pytest
from rich.cells import cell_len

from cli.errors import EXIT_CODES
from cli.main import resumes as command_line
from importer.outcomes import REASONS
from resumes import analyzer, errors
from resumes.analyzer.schema import LAYOUTS
from resumes.errors import ErrorCode, Issue, ResumesError
from resumes.import_reasons import Reason, find_hint
from resumes.settings import Settings
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import ImporterState
from resumes.watched_names import SYSTEM_FOLDERS, TEMPORARY
from server.openapi import document_bytes
from server.request import STATUSES
from tests.support import pages
from tui.keys import MODES
from tui.store_calls import REMEDIES

pytestmark = pytest.mark.docs

LARGEST_PICTURE_BYTES = 120_000
LARGEST_PAGES_BYTES = 450_000
SHARP_PX = 1_164
"""How wide three pages are when the text on them can be read."""

LONGEST_MEANING = 130
"""Characters of what a word of the glossary means: one line."""

SCREENS = [mode.name for mode in MODES]
COMMAND_LINE = "command-line"


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


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def commands_page(repository: Path) -> str:
    return (repository / "docs" / "commands.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def settings_page(repository: Path) -> str:
    return (repository / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_pages_name_every_command_and_setting_and_no_other(
    commands_page: str, settings_page: str
) -> None:
    named = re.findall(r"`(resumes(?: [a-z-]+)+)`", commands_page)
    assert set(named) == set(commands(command_line))
    settings = set(re.findall(r"^\| `([a-z_]+)` \|", settings_page, re.MULTILINE))
    assert settings == set(Settings.model_fields) - {"home"}
    variables = set(re.findall(r"\| `RESUMES_([A-Z_]+)` \|", settings_page))
    assert variables == {name.upper() for name in Settings.model_fields}


def test_the_settings_page_gives_the_defaults_that_are_in_force(settings_page: str) -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| \S+ \| ([^|]+) \|", settings_page, re.MULTILINE)
    assert len(rows) == len(Settings.model_fields) - 1  # without the home
    for name, told in rows:
        default = getattr(Settings(), name)
        if value := re.fullmatch("`(\\S+)`", told):
            assert getattr(Settings(**{name: value[1]}), name) == default, name
        else:  # in words: what follows from nothing being set
            assert default in (None, frozenset(), {}), name


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
        if len(json.loads(parsed.document)["sections"]) == 26:
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


def test_the_format_page_has_every_field_of_the_format_and_no_other(repository: Path) -> None:
    page = (repository / "docs" / "format.md").read_text(encoding="utf-8")
    schemas = json.loads(document_bytes())["components"]["schemas"]
    for name, reference in schemas["Resume"]["properties"]["sections"]["properties"].items():
        section = schemas[reference["$ref"].rpartition("/")[2]]
        heading, fields = re.findall(rf"^\| `{name}` \| ([^|]+) \| (.+) \|$", page, re.MULTILINE)[0]
        assert f'"{heading}"' in section["description"]
        assert re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", fields)) == list(
            section["properties"]["items"]["items"]["properties"]
        )
        assert all(f"`{field}`" in page for field in section["properties"])
    for name in ("Resume", "Header", "Style", "DateRange"):
        assert all(f"`{field}`" in page for field in schemas[name]["properties"]), name
    layouts = schemas["Style"]["properties"]["layout"]["description"]
    assert re.findall(r"`(\w+)` is ([\w ]+)[,.]", layouts) == [*LAYOUTS.items()]


def test_the_importing_page_names_every_name_that_is_passed_over(repository: Path) -> None:
    page = (repository / "docs" / "importing.md").read_text(encoding="utf-8")
    hidden = re.split(r"hidden and\s+temporary names", page)[1].split("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", hidden)) == {".x", *TEMPORARY}
    table = page.split("### Recycle bins and snapshots")[1].split("\n\n")[2]
    assert set(re.findall(r"`([^`]+)`", table)) == set(SYSTEM_FOLDERS)


# The codes of errors, on every surface


@pytest.fixture(scope="module")
def errors_page(repository: Path) -> dict[str, list[str]]:
    """The rows of docs/errors.md by code."""
    text = (repository / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", text, re.MULTILINE)
    return {code: [cell.strip() for cell in cells.split("|")] for code, cells in rows}


def test_every_table_and_the_page_know_every_code_and_no_other(
    errors_page: dict[str, list[str]],
) -> None:
    for table in (STATUSES, EXIT_CODES, REASONS, REMEDIES):
        assert set(table) == set(ErrorCode)
    assert set(errors_page) == {code.value for code in ErrorCode}
    assert all(find_hint(reason) for reason in Reason)


def test_every_code_has_one_class_in_the_tree_at_the_top_of_the_module() -> None:
    raised = [
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, ResumesError) and "code" in vars(each)
    ]
    assert sorted(each.code for each in raised) == sorted(ErrorCode)
    assert all(each.__name__ in (errors.__doc__ or "") for each in raised)


def test_the_first_issue_is_the_message_and_a_quota_has_its_number() -> None:
    error = errors.InvalidResume([Issue("a", "first"), Issue("b", "second")])
    assert (error.message, len(error.issues)) == ("first", 2)
    for limit, words in ((5, "5 resumes"), (1, "1 resume")):
        assert errors.QuotaReached(max_resumes=limit).message == (
            f"Maximum resume limit reached. Your plan allows {words}"
        )


def test_the_page_says_what_the_tables_say(errors_page: dict[str, list[str]]) -> None:
    for code in ErrorCode:
        _, status, exit_code, file = errors_page[code.value]
        assert int(status) == STATUSES[code]
        assert int(exit_code) == EXIT_CODES[code]
        match REASONS[code]:
            case Reason.INTERNAL_ERROR if code is not ErrorCode.STATEMENT_REFUSED:
                assert file == "n/a"
            case Reason.QUOTA_REACHED:
                assert file == "`_held`"
            case None:
                assert file.startswith("stays")
            case reason:
                assert file == f"`_failed/{reason}`"


# The words of the product


class Word(NamedTuple):
    """A row of the glossary: what a word means, in a line, and where it is used."""

    word: str
    means: str
    target: str


@pytest.fixture(scope="module")
def words(repository: Path) -> list[Word]:
    text = (repository / "docs" / "glossary.md").read_text(encoding="utf-8")
    row = r"^\| ([^|]+) \| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$"
    found = [Word(*each) for each in re.findall(row, text, re.MULTILINE)]
    assert len(found) == text.count("\n| ") - 2
    return found


def test_every_word_is_said_in_one_line_and_used_where_it_leads(
    words: list[Word], repository: Path
) -> None:
    names = [word.word for word in words]
    assert names == sorted(set(names), key=str.lower)
    for word in words:
        path, _, chapter = word.target.partition("#")
        assert len(word.means) <= LONGEST_MEANING, word
        # As it stands there: `rotating`, `requestId`.
        stem = re.escape(word.word.removesuffix("e")).replace(r"\ ", r"\s*")
        text = pages.chapter(repository / "docs" / path, chapter)
        assert re.search(rf"\b{stem}", text, re.IGNORECASE), word


def test_the_words_of_closed_sets_and_of_commands_are_there(
    words: list[Word], commands_page: str
) -> None:
    closed = {
        *(outcome.value for outcome in FileOutcome),
        *(state.value for state in ImporterState if state is not ImporterState.OK),
        *("warning", "retry", "release", "rotate", "revoke"),
    }
    assert closed <= {word.word for word in words}
    for command in ("retry", "release", "rotate", "revoke"):
        assert re.search(rf"`resumes \w+ {command}`", commands_page)


# The pictures of the terminal UI, and of the command line


def load_drawing(name: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A program that draws pictures."""
    spec = importlib.util.spec_from_file_location(name, repository / f"docs/pictures/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(repository / "docs/pictures")
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def drawing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that draws the screens and the command line, on a home of the test."""
    return load_drawing("draw", repository, monkeypatch)


@pytest.fixture
def drawing_layouts(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that draws the PDFs."""
    return load_drawing("draw_layouts", repository, monkeypatch)


def test_every_screen_and_surface_has_its_picture_which_loads_nothing(
    readme: str, repository: Path
) -> None:
    folder = repository / "docs" / "pictures"
    terminal = (repository / "docs" / "terminal.md").read_text(encoding="utf-8")
    for name in SCREENS:
        assert f"pictures/{name}.svg" in terminal
        assert f"| `{name}` |" in terminal
    for name in (*SCREENS, COMMAND_LINE):
        picture = (folder / f"{name}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert "url(http" not in picture
        assert "href" not in picture
    for file in ("resumes.svg", "command-line.svg", "api.png", "pdf.png"):
        assert f"](docs/pictures/{file})" in readme
        largest = LARGEST_PAGES_BYTES if file == "pdf.png" else LARGEST_PICTURE_BYTES
        assert (folder / file).stat().st_size < largest
    header = (folder / "pdf.png").read_bytes()[:24]
    assert int.from_bytes(header[16:20]) >= SHARP_PX


@pytest.mark.parametrize("name", [*SCREENS, COMMAND_LINE])
def test_texts_of_a_picture_are_as_wide_as_in_a_terminal(name: str, repository: Path) -> None:
    picture = (repository / f"docs/pictures/{name}.svg").read_text(encoding="utf-8")
    found = re.findall(r'textLength="([\d.]+)"[^>]*>([^<\n]+)<', picture)
    widths = {round(float(width) / cell_len(html.unescape(text)), 1) for width, text in found}
    assert len(found) > 10
    assert widths == {12.2}
    if name == "resumes":
        assert {"●&#160;importer&#160;running", "✓&#160;healthy"} <= {text for _, text in found}


@pytest.mark.slow
def test_they_are_drawn_from_the_samples(
    drawing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "HOME", tmp_path / "home")

    drawing.draw(tmp_path)

    drawn = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert set(drawn) == {*SCREENS, COMMAND_LINE}
    assert "demo" in drawn["accounts"]
    assert "2026-01-31" in drawn["resumes"]
    assert "2026-01-31" in drawn[COMMAND_LINE]
    assert "2&#160;done" in drawn[COMMAND_LINE]


def test_all_layouts_are_on_one_picture_and_on_the_page_beside_it(
    drawing_layouts: ModuleType, tmp_path: Path, repository: Path
) -> None:
    drawing_layouts.draw(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {"layouts.png", "pdf.png"}
    page = (repository / "docs" / "pdf.md").read_text(encoding="utf-8")
    assert "](pictures/layouts.png)" in page
    table = page.partition("## Layouts")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", table, re.MULTILINE) == [*LAYOUTS.items()]


@pytest.mark.campaign
def test_the_pictures_are_those_of_this_checkout(
    drawing: ModuleType, drawing_layouts: ModuleType, tmp_path: Path, repository: Path
) -> None:
    drawing.draw(tmp_path)
    drawing_layouts.draw(tmp_path)

    for path in tmp_path.glob("*.*g"):
        committed = repository / "docs/pictures" / path.name
        assert path.read_bytes() == committed.read_bytes(), "run `make pictures`"
