"""What the docs promise is there, and what is there the docs name."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import click
import pytest

from cli.errors import EXIT_CODES
from cli.main import resumes as command_line
from importer import hook, inbox, outcomes, reader, unpack
from importer.options import Options
from importer.outcomes import REASONS
from resumes import analyzer, analyzer_guard, external_analyzer, filesystems, spreadsheet
from resumes.analyzer import findings, kinds, schema, strict_json
from resumes.analyzer.schema import HEADER, LAYOUTS, SECTION_TYPES
from resumes.errors import ErrorCode, ResumesError
from resumes.import_reasons import Reason, find_hint
from resumes.rendering import book, branding, renderer
from resumes.rendering.child import MAX_MEMORY_BYTES
from resumes.rendering.page import CHARS_PER_TEXT, MAX_CHARS
from resumes.search import query, words
from resumes.settings import Settings
from resumes.store import idempotency, labels, row_bounds, search
from resumes.store.import_ledger import SOURCE_BYTES, FileOutcome
from resumes.store.importers import ImporterState
from resumes.store.postgresql.writer import PROOF_TIMEOUT_S, SHARDED_THREADS, SHARED_ACCOUNTS
from resumes.store.store import WRITE_DEADLINE_S
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from resumes.watched_names import OFFICE_LOCK, SYSTEM_FOLDERS, TEMPORARY
from server import (
    connections,
    deadlines,
    health,
    metrics,
    receiver,
    rendering_route,
    routes,
    upload_route,
)
from server.openapi import document_bytes
from server.request import STATUSES
from tests.chaos import campaign
from tests.chaos.campaign import FAILED
from tests.support import pages
from tui import themes
from tui.deletions import GRACE_S
from tui.keys import MODES
from tui.screens.accounts import AccountsScreen
from tui.screens.base import ListScreen
from tui.screens.resumes import MAX_MARKED
from tui.store_calls import REMEDIES
from tui.widgets import window

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


def read(repository: Path, name: str) -> str:
    return (repository / name).read_text(encoding="utf-8")


def test_the_pages_name_every_command_and_setting_and_no_other(repository: Path) -> None:
    named = re.findall(r"`(resumes(?: [a-z-]+)+)`", read(repository, "docs/commands.md"))
    assert set(named) == set(commands(command_line))
    page = read(repository, "docs/settings.md")
    settings = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert settings == set(Settings.model_fields) - {"home"}
    variables = set(re.findall(r"\| `RESUMES_([A-Z_]+)` \|", page))
    assert variables == {name.upper() for name in Settings.model_fields}


def test_the_settings_page_gives_the_defaults_that_are_in_force(repository: Path) -> None:
    page = read(repository, "docs/settings.md")
    rows = re.findall(r"^\| `([a-z_]+)` \| \S+ \| ([^|]+) \|", page, re.MULTILINE)
    assert len(rows) == len(Settings.model_fields) - 1  # without the home
    for name, told in rows:
        default = getattr(Settings(), name)
        if value := re.fullmatch("`(\\S+)`", told):
            assert getattr(Settings(**{name: value[1]}), name) == default, name
        else:  # in words: what follows from nothing being set
            assert default in (None, frozenset(), {}, ()), name


def test_every_link_in_the_docs_leads_somewhere(repository: Path) -> None:
    for page in pages.all_pages(repository):
        for target, chapter in pages.links(page):
            assert target.exists(), f"{page.name}: {target}"
            assert not chapter or chapter in pages.anchors(target), f"{page.name}: #{chapter}"


def test_the_readme_leads_to_the_index_which_names_every_page(repository: Path) -> None:
    index = (repository / "docs" / "README.md").resolve()
    named = {target for target, _ in pages.links(index)}
    assert set(pages.all_pages(repository)) - named == {index}
    assert index in {target for target, _ in pages.links((repository / "README.md").resolve())}


def test_the_map_of_the_source_names_what_is_there_and_every_package(repository: Path) -> None:
    text = read(repository, "ARCHITECTURE.md")
    named = set()
    for before, names, after in re.findall(r"`src/([^`{]*)(?:{([^}]*)}([^`]*))?`", text):
        named |= {f"{before}{name}{after}" for name in names.split(",")}
    source = repository / "src"
    packages = {str(path.parent.relative_to(source)) for path in source.rglob("__init__.py")}
    assert packages <= named | {"resumes"}
    assert [path for path in named if not (source / path).exists()] == []


def test_every_part_of_the_ground_has_its_layer(repository: Path) -> None:
    settings = tomllib.loads(read(repository, "pyproject.toml"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = [layer for one in contracts for layer in one.get("layers", ())]
    named = {name.strip() for layer in layers for name in layer.split("|")}
    parts = [path for path in (repository / "src/resumes").iterdir() if path.name[0] != "_"]
    assert {f"resumes.{path.stem}" for path in parts if path.suffix in ("", ".py")} <= named


def test_every_bad_sample_is_refused_with_the_message_that_its_page_gives(repository: Path) -> None:
    page = read(repository, "sample_data/README.md")
    rows = re.findall(r"^\| `(\S+\.json)` \| [^|]* \| `([^|`]*)`[^|]*\|$", page, re.MULTILINE)
    samples = {path.name: path for path in (repository / "sample_data" / "bad").iterdir()}
    assert {name for name, _ in rows} == set(samples)
    for name, message in rows:
        with pytest.raises(ResumesError) as refused:
            analyzer.parse(samples[name].read_bytes())
        assert refused.value.message.startswith(message.rstrip("…")), name


def test_every_good_sample_is_described_and_accepted_and_one_has_all_26_section_types(
    repository: Path,
) -> None:
    complete, page = [], read(repository, "sample_data/README.md")
    for path in (repository / "sample_data").glob("*.json"):
        assert path.name in page
        parsed = analyzer.parse(path.read_bytes())
        assert bool(parsed.warnings) == path.name.startswith("warnings-"), path.name
        document = json.loads(parsed.document)
        if len(document["sections"]) == 26:
            complete.append(path.name)
            groups = [("header", {*HEADER.fields}, [document["header"]])]
            for name, section in document["sections"].items():
                fields = {*SECTION_TYPES[name].own_fields, *SECTION_TYPES[name].fields}
                groups.append((name, fields, [section, *section["items"]]))
            for name, fields, parts in groups:
                for field in sorted(fields.difference(*parts)):
                    pytest.fail(f"sample_data/{path.name} lacks {name}.{field}")
    assert complete


def sources(repository: Path) -> Iterator[tuple[Path, str]]:
    """Every Python file and style sheet of the project with its text, but this one."""
    for folder in ("src", "tests"):
        for suffix in ("py", "tcss"):
            for path in (repository / folder).rglob(f"*.{suffix}"):
                if path != Path(__file__):
                    yield path, path.read_text(encoding="utf-8")


def test_every_pitfall_that_is_cited_has_its_row(repository: Path) -> None:
    page = read(repository, "docs/pitfalls.md")
    rows = set(re.findall(r"^\| ([A-Z][0-9]+) \|", page, re.MULTILINE))
    cited = set()
    for _, text in sources(repository):
        for codes in re.findall(r"pitfalls\s+([A-Z][0-9]+(?:,\s+[A-Z][0-9]+)*)", text):
            cited.update(re.findall(r"[A-Z][0-9]+", codes))
        cited.update(code.upper() for code in re.findall(r"def test_([sir][0-9]+)_", text))
    assert cited == rows


def test_what_holds_a_pitfall_is_there(repository: Path) -> None:
    page = read(repository, "docs/pitfalls.md")
    for name in re.findall(r"`([a-z_/]+\.py)`", page):
        assert any(
            list((repository / folder).glob(f"**/{name.removeprefix('tests/')}"))
            for folder in ("src", "tests")
        ), name


def test_every_page_that_a_source_cites_is_there_with_its_chapter(repository: Path) -> None:
    for path, text in sources(repository):
        for name in re.findall(r"\bdocs/[a-z/0-9-]+\.md", text):
            assert (repository / name).exists(), f"{path.name}: {name}"
        for name, chapter in re.findall(r"\((docs/[a-z]+\.md),\s+([^;)(]+)", text):
            title = rf"^#+ {re.escape(' '.join(chapter.split()))}\b"
            found = re.search(title, read(repository, name), re.MULTILINE)
            assert found, f"{path.name}: {name}, {chapter}"


def test_resumes_are_created_in_one_place(repository: Path) -> None:
    creates = re.compile(r"insert(_into)?\(resumes\b|INTO resumes\b")
    found = [path.name for path, text in sources(repository) if "/src/" in str(path)
             and "/migrations/" not in str(path) and creates.search(text)]  # fmt: skip
    assert found == ["creation.py"]


def test_the_format_page_has_every_field_of_the_format_and_no_other(repository: Path) -> None:
    page = read(repository, "docs/format.md")
    schemas = json.loads(document_bytes())["components"]["schemas"]
    for name, reference in schemas["Resume"]["properties"]["sections"]["properties"].items():
        section = schemas[reference["$ref"].rpartition("/")[2]]
        heading, fields = re.findall(rf"^\| `{name}` \| ([^|]+) \| (.+) \|$", page, re.MULTILINE)[0]
        assert f'"{heading}"' in section["description"]
        told = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", fields))
        known = list(section["properties"]["items"]["items"]["properties"])
        assert told == known, f"docs/format.md: {name}: {sorted({*told} ^ {*known})}"
        for field in section["properties"]:
            assert f"`{field}`" in page, f"docs/format.md lacks {name}.{field}"
    for name in ("Resume", "Header", "Style", "DateRange"):
        for field in schemas[name]["properties"]:
            assert f"`{field}`" in page, f"docs/format.md lacks {field} of {name}"
    layouts = schemas["Style"]["properties"]["layout"]["description"]
    assert re.findall(r"`(\w+)` \(([\w ]+)\)", layouts) == [*LAYOUTS.items()]


def test_the_importing_page_names_every_name_that_is_passed_over(repository: Path) -> None:
    page = read(repository, "docs/importing.md")
    hidden = re.split(r"hidden or\s+temporary:", page)[1].split("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", hidden)) == {".x", OFFICE_LOCK, *TEMPORARY}
    table = page.split("### Recycle bins and snapshots")[1].split("\n\n")[2]
    assert set(re.findall(r"`([^`]+)`", table)) == set(SYSTEM_FOLDERS)


# The codes of errors, on every surface


def test_every_table_and_the_page_say_the_same_of_every_code(repository: Path) -> None:
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", read(repository, "docs/errors.md"), re.MULTILINE)
    rows = {code: [cell.strip() for cell in cells.split("|")] for code, cells in lines}
    for table in (STATUSES, EXIT_CODES, REASONS, REMEDIES, rows):
        assert set(table) == set(ErrorCode)
    assert all(find_hint(reason) for reason in Reason)
    for code in ErrorCode:
        _, status, exit_code, file = rows[code.value]
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
                assert file.partition(";")[0] == f"`_failed/{reason}`"


# The words of the product


def test_every_word_is_said_in_one_line_and_used_where_it_leads(repository: Path) -> None:
    text = read(repository, "docs/glossary.md")
    row = r"^\| ([^|]+) \| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert len(rows) == text.count("\n| ") - 2
    words = [word for word, *_ in rows]
    assert words == sorted(set(words), key=str.lower)
    for word, means, target in rows:
        path, _, chapter = target.partition("#")
        assert len(means) <= LONGEST_MEANING, word
        # As it stands there: `rotating`, `requestId`.
        stem = re.escape(word.removesuffix("e")).replace(r"\ ", r"\s*")
        found = pages.chapter(repository / "docs" / path, chapter)
        assert re.search(rf"\b{stem}", found, re.IGNORECASE), word
    states = {state.value for state in ImporterState if state is not ImporterState.OK}
    assert {*(outcome.value for outcome in FileOutcome), *states} <= {*words}
    assert {"warning", "retry", "release", "rotate", "revoke"} <= {*words}


# The pictures of the terminal UI, of the command line, and of PDFs


Draw = Callable[..., None]


@pytest.fixture
def draw(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Draw:
    """Runs a program that draws pictures, on a home of the test: `draw("draw_layouts")`."""
    folder = repository / "docs/pictures"
    monkeypatch.syspath_prepend(folder)

    def run(name: str, **changed: object) -> None:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        vars(module).update(changed)
        module.draw(tmp_path)

    return run


def test_every_screen_and_surface_has_its_picture_which_loads_nothing(repository: Path) -> None:
    folder = repository / "docs" / "pictures"
    readme, terminal = read(repository, "README.md"), read(repository, "docs/terminal.md")
    for name in SCREENS:
        assert f"pictures/{name}.svg" in terminal
        assert f"| `{name}` |" in terminal
    for name in (*SCREENS, "filter", COMMAND_LINE):
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


def test_all_layouts_are_on_one_picture_and_on_the_page_beside_it(
    draw: Draw, tmp_path: Path, repository: Path
) -> None:
    draw("draw_layouts")

    assert {path.name for path in tmp_path.iterdir()} == {"layouts.png", "pdf.png"}
    page = read(repository, "docs/pdf.md")
    assert "](pictures/layouts.png)" in page
    table = page.partition("## Layouts")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", table, re.MULTILINE) == [*LAYOUTS.items()]


@pytest.mark.campaign
def test_the_pictures_are_those_of_this_checkout(
    draw: Draw, tmp_path: Path, repository: Path
) -> None:
    draw("draw")
    draw("draw_layouts")

    for path in tmp_path.glob("*.*g"):
        committed = repository / "docs/pictures" / path.name
        assert path.read_bytes() == committed.read_bytes(), "run `make pictures`"


# The figures that the pages give are those in force


SETTINGS: Final = Settings()
IMPORTER: Final = Options()
TIMEOUT: Final = f"{SETTINGS.client_timeout_s:g} s (`client_timeout_s`)"


def as_word(number: float) -> str:
    return {0.75: "three quarters", 2: "two", 5: "five", 10: "ten"}[number]


def size(size_bytes: int) -> str:
    """A size as the pages have it."""
    mib = size_bytes / 1024**2
    return f"{mib:g} MiB" if mib >= 1 else f"{mib * 1024:g} KiB"


SENTENCES: Final = {
    "api.md": [
        f"is valid for {idempotency.KEPT.total_seconds() / 3_600:g} hours after the create",
        f"if the first request does not finish within {routes.KEY_DEADLINE_S:g} seconds",
        f"`limit` sets the page size, from 1 to {MAX_LIMIT} ({DEFAULT_LIMIT} by default)",
        f"the request waited for {as_word(rendering_route.WAIT_SHARE)} of `pdf_timeout_s`",
        f"may make {SETTINGS.rate_per_minute} requests a minute, "
        f"{SETTINGS.rate_per_hour:,} an hour and {SETTINGS.rate_per_day:,} a day",
        f"| request line | {size(receiver.TARGET_BYTES + 16)} |",
        f"| request headers | {size(receiver.HEAD_BYTES)}, {receiver.MAX_FIELDS} fields |",
        f"| resume | {size(SETTINGS.max_body_bytes)} (`max_body_bytes`) |",
        f"| uploaded file | {size(upload_route.MAX_BYTES)} |",
        f"{upload_route.MAX_UPLOADS} uploads are not finished in this API process",
        f"| TLS handshake | {TIMEOUT} |",
        f"the first byte of a later request | {TIMEOUT} |",
        f"| pause before the next part of the body | {TIMEOUT} |",
        f"| whole body | {SETTINGS.client_timeout_s:g} s, plus one second for each "
        f"{size(deadlines.BODY_BYTES_PER_S)} received |",
        f"less than {size(deadlines.READ_BYTES_PER_S)} a second | {TIMEOUT} |",
        f"| idle connection | {deadlines.KEEP_ALIVE_S} s |",
        f"| open connections | {SETTINGS.max_connections:,} per worker (`max_connections`), or fewer if",
        f"| bodies in memory | {size(connections.BODY_MEMORY_BYTES)} per worker |",
        f"If {connections.REFUSED_AT_ONCE} connections beyond the limit are already open, the service closes",
        f"waits {deadlines.STOP_S:g} to {deadlines.STOP_S + 1:g} s for the rest of each incomplete request",
    ],
    "security.md": [f"the first {SOURCE_BYTES // 1024} KiB of each failed, held or duplicate file"],
    "importing.md": [
        f"`max_body_bytes` ({size(SETTINGS.max_body_bytes)}) |",
        f"| size of a document | `max_file_bytes` ({size(SETTINGS.max_file_bytes)}) |",
        f"picked up and wait for the analyzer | {inbox.MAX_DOCUMENTS} |",
        f"| resumes in a bundle | {IMPORTER.limits.max_parts:,} |",
        f"| members in a zip | {IMPORTER.limits.max_members:,} |",
        f"for `--settle` seconds ({IMPORTER.settle_s:g} by default)",
        f"for {reader.MAX_SETTLE_TIMES} \N{MULTIPLICATION SIGN} `--settle` seconds or for one minute",
        f"would leave less than {size(filesystems.DISK_FLOOR_BYTES)} free",
        f"names at most {unpack.MAX_SKIPPED} skipped members",
        f"up to {outcomes.MAX_LISTED_ITEMS:,} resumes with their outcomes, or fewer if the list would "
        f"exceed {size(outcomes.MAX_LISTED_CHARS)}",
        f"If {IMPORTER.tuning.helper_from:,} or more files are waiting",
        f"up to {hook.MAX_ACCOUNTS:,} accounts with files in the batch",
        f"lists up to {hook.MAX_FILES:,} files",
        f"(up to {size(hook.KEPT_BYTES)} of each stream, and up to {hook.MAX_LOGGED_LINES} lines",
    ],
    "finding.md": [
        f"first {words.MAX_GROUP_CHARS:,} characters of each part ({words.MAX_NAME_CHARS:,} of",
        f"at most {words.MAX_TOKENS:,} different words",
        f"at most {query.MAX_TERMS} words and phrases, and at most {query.MAX_QUERY_CHARS} characters",
        f"next to each other at most {query.MAX_REPEATS} times",
        f"up to {labels.MAX_LABEL_CHARS} printable characters",
    ],
    "format.md": [
        f"| a string | {kinds.MAX_TEXT_CHARS:,} characters |",
        f"| items in a section | {schema.MAX_ITEMS} |",
        f"| entries in any other list | {kinds.MAX_LIST_ENTRIES} |",
        f"including unknown fields | {findings.MAX_WARNINGS:,} |",
        f"more than {strict_json.MAX_DEPTH} levels of nesting, more than {strict_json.MAX_VALUES:,} "
        f"values, or more than {strict_json.MAX_FIELDS:,} fields",
        f"reports up to {findings.MAX_REPORTED} problems",
        f"reports up to {findings.MAX_REPORTED} warnings",
    ],
    "pdf.md": [
        f"| text of a resume | {MAX_CHARS:,} characters; each text field counts as "
        f"{CHARS_PER_TEXT} characters more",
        f"| time to generate one PDF | {renderer.TIMEOUT_S:g} seconds; over HTTP",
        f"| memory of the renderer | {size(MAX_MEMORY_BYTES)} |",
    ],
    "exports.md": [
        f"up to {book.MAX_RESUMES} resumes",
        f"truncated after {spreadsheet.MAX_CELL_CHARS:,} characters",
    ],
    "branding.md": [
        f"at most {size(branding.MAX_LOGO_BYTES)}",
        f"at most {branding.MAX_PIXELS:,} pixels wide and high",
        f"at most {branding.MAX_ELEMENTS:,} elements",
        f"at most {branding.MAX_LINES} lines of contact details",
        f"at most {branding.MAX_TEXT_CHARS} characters long",
    ],
    "guides/analyzer.md": [
        f"(niceness {analyzer_guard.NICENESS})",
        f"may use {external_analyzer.MEMORY_MIB // 1024} GiB of memory",
        f"at most {external_analyzer.MAX_SAID_CHARS} characters",
    ],
    "operations.md": [
        f"the store cannot be read within {health.PROBE_S:g} seconds",
        f"does not reach the disk within {health.PROBE_S:g} seconds",
        f"less than {size(filesystems.DISK_FLOOR_BYTES)} is free on the store's disk",
        f"wait up to {WRITE_DEADLINE_S:g} seconds while the service tries to reconnect",
        f"may take up to {PROOF_TIMEOUT_S:g} more seconds",
        f"the frozen connection has locked (at most {SHARED_ACCOUNTS}).",
        f"After {search.TIMEOUT_S * 1000:g} ms",
        f"cached for {metrics.CACHE_S:g} seconds, or for {metrics.CACHE_TIMES} times as long",
    ],
    "backups.md": [f"less than {row_bounds.MAX_CLOCK_ERROR_US // row_bounds.YEAR_US} years ahead"],
    "guides/proxies.md": [f"[up to {PROOF_TIMEOUT_S:g} s more]"],
    "sharding.md": [f"each process opens up to {SHARDED_THREADS} connections for writes"],
    "terminal.md": [
        f"({themes.ROOM_CELLS} columns or more)",
        f"keeps at most {window.MAX_ROWS:,} rows",
        f"match the filter, up to {MAX_MARKED:,}",
        f"Visible rows are refreshed every {as_word(ListScreen.REFRESH_S)} seconds; accounts and "
        f"findings are refreshed every {as_word(AccountsScreen.REFRESH_S)} seconds",
        f"For {as_word(GRACE_S)} seconds after you delete a resume",
    ],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_page_gives_the_figures_that_are_in_force(repository: Path, name: str) -> None:
    text = " ".join((repository / "docs" / name).read_text(encoding="utf-8").split())
    assert [sentence for sentence in SENTENCES[name] if sentence not in text] == []


# The messages that head the chapters about problems


FILLED_IN: Final = ("PDF", "retry", "restore", "removed or renamed", "older than this program")
"""What the source has a name for, where a message has one of several words."""


def test_every_message_on_the_page_is_in_the_source(repository: Path) -> None:
    page = (repository / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    heads = re.findall(r"^### (?:`` (.+) ``|`([^`]+)`)$", page, re.MULTILINE)
    assert len(heads) > 40
    texts = [(repository / "Makefile").read_text(encoding="utf-8")]
    for path in (repository / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    said = "\n".join(texts)

    for title in map("".join, heads):
        parts = re.split("…|" + "|".join(FILLED_IN), title)
        missing = [part.strip() for part in parts if part.strip() not in said]
        assert not missing, f"docs/troubleshooting.md, {title}: {missing}"


# The page of the faults that were injected


NONE: Final = re.compile(
    r"lost|duplicated|partially stored|inconsistent|repeated|skipped( by the polling client)?|violations"
    r"|out of order|other errors|refused but stored|not imported|partially imported|over the limit"
    r"|failed|errors|wrong decisions|unanswered|still open|connections left open"
    r"|entries from other accounts"
    r"|unexpected sequences|control characters|accepted( after the changes)?|accepted but unanswered"
    r"|read errors|undetected changes|files changed|of them unexpected|sockets opened"
    r"|stores that failed to open"
)
"""What a row counts of which there may be none."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "contributors" / "faults.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_has_a_row_for_each_case_of_each_test(page: str, repository: Path) -> None:
    collect = [sys.executable, "-m", "pytest", "tests/chaos", "-m", "chaos", "--collect-only", "-q"]
    line = [*collect, "--seed", "7"]
    done = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=True)
    tests = re.findall(r"^tests/chaos/(test_\w+\.py::.+)$", done.stdout, re.MULTILINE)
    numbers = {row.function: row.number for row in campaign.iter_rows()}

    in_order = sorted(tests, key=lambda test: (numbers[test.partition("[")[0]], test))
    assert [row.test for row in campaign.parse_rows(page)] == in_order


def test_every_row_was_run_and_none_has_failed_or_lost_or_duplicated_anything(page: str) -> None:
    rows = campaign.parse_rows(page)
    assert [row.test for row in rows if not row.figures or row.figures == FAILED] == []
    assert [row.test for row in rows if not row.seed] == []
    # `0 lost`, `recovery 2 s`
    counts = [figure.split(" ", 1) for row in rows for figure in row.figures.split(", ")]
    known = [number for number, *name in counts if name and NONE.fullmatch(name[0])]
    assert len(known) > len(rows)
    assert set(known) == {"0"}
