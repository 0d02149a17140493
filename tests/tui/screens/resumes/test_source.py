"""The file that a resume came from: a real importer put it away."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.store import accounts, listing
from resumes.store.engine import Store
from resumes.store.listing import StoredResume
from tests.tui.builders import HOSTILE, a_document, stored
from tests.tui.screens.imports.builders import AnImporter
from tui.screens.resumes.history import history_paragraphs
from tui.screens.resumes.source import MOST_BYTES, read_start, source_paragraphs
from tui.widgets.text_pane import Paragraph

pytestmark = pytest.mark.anyio

FILE = b'{"header": {"name": "Ada"},\n "sections": {}, "odd": true}'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def importer(store: Store, root: Path) -> Iterator[AnImporter]:
    importer = AnImporter(store, root)
    yield importer
    importer.close()


def text(paragraphs: list[Paragraph]) -> str:
    return "\n".join(f"{one.mark}{one.content.plain}" for one in paragraphs)


def newest(store: Store) -> StoredResume:
    account = accounts.get_account(store, "ana")
    return listing.get_resume(
        store, account.id, listing.list_page(store, account.id).entries[-1].id
    )


async def test_the_file_is_shown_as_it_was_written(store: Store, importer: AnImporter) -> None:
    stored(store, a_document(title="By hand"))
    importer.drop("ana/cv.json", FILE)
    await importer.round()

    told = text(source_paragraphs(store, accounts.get_account(store, "ana"), newest(store)))

    assert "ana/cv.json, 57 bytes" in told
    assert '{"header": {"name": "Ada"},\n "sections": {}, "odd": true}' in told


async def test_history_tells_how_it_came_and_what_was_odd(
    store: Store, importer: AnImporter
) -> None:
    importer.drop("ana/cv.json", FILE)
    await importer.round()

    told = text(history_paragraphs(store, accounts.get_account(store, "ana"), newest(store)))

    assert "The importer took the file ana/cv.json" in told
    assert "Stored in ana" in told
    assert "! odd is not a known field" in told


async def test_a_file_that_was_moved_away_is_told(
    store: Store, importer: AnImporter, root: Path
) -> None:
    importer.drop("ana/cv.json", FILE)
    await importer.round()
    for file in root.glob("_done/*/*/*"):
        file.unlink()

    told = text(source_paragraphs(store, accounts.get_account(store, "ana"), newest(store)))

    assert f"put away below {root}, and is not there now" in told


def test_without_a_file_it_says_how_it_may_have_come(store: Store) -> None:
    stored(store, a_document())
    account = accounts.get_account(store, "ana")

    assert "created over the API" in text(source_paragraphs(store, account, newest(store)))
    assert "Created in ana" in text(history_paragraphs(store, account, newest(store)))


def test_only_ordinary_files_are_read_and_only_their_beginning(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (MOST_BYTES + 1))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(large)

    assert read_start(large) == ("x" * MOST_BYTES, False)
    assert read_start(tmp_path / "pipe") == ("", True)
    assert read_start(tmp_path / "link") == ("", True)
    assert read_start(tmp_path / "nothing") == ("", True)


async def test_what_it_holds_is_drawn_as_text(store: Store, importer: AnImporter) -> None:
    importer.drop("ana/cv.json", a_hostile_file())
    await importer.round()

    told = text(source_paragraphs(store, accounts.get_account(store, "ana"), newest(store)))

    assert "a[/b]c" in told
    assert "\x1b" not in told
    assert "\x9b" not in told


def a_hostile_file() -> bytes:
    # As they are, not escaped, but for those that JSON does not allow.
    harmless = HOSTILE.replace("\x1b", "\\u001b").replace("\x07", "\\u0007")
    return f'{{"header": {{"name": "{harmless}"}}, "sections": {{}}}}'.encode()
