"""A file as it is shown in a part of the screen."""

import dataclasses

import pytest
from textual.app import App, ComposeResult

from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome, FileRow
from tests.tui.driving import lines, shows, until
from tests.tui.screens.imports.builders import a_file, an_id
from tui.notices import Failure
from tui.screens.imports.faults import Fault
from tui.screens.imports.reading import FileRead
from tui.screens.imports.source_text import lay_out
from tui.screens.imports.view import FileView

pytestmark = pytest.mark.anyio


class ViewApp(App[int]):
    """Nothing but the view."""

    def __init__(self) -> None:
        super().__init__()
        self.view = FileView(can_focus_text=True)

    def compose(self) -> ComposeResult:
        yield self.view


def a_read(file: FileRow, source: bytes | None = b"{\n  x\n") -> FileRead:
    text = None if source is None else lay_out(source, Fault(byte_offset=4))
    return FileRead(file, None, True, [], text)


async def test_the_verdict_stands_beside_the_source(store: Store) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 30)):
        app.view.show(a_read(a_file(store)))
        await shows(app, "✗ failed: not readable as JSON", "2 ▶   x", "▶ line 2, column 3")


async def test_a_done_file_has_no_source(store: Store) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 30)):
        app.view.show(a_read(a_file(store)))
        app.view.show(a_read(a_file(store, an_id("2"), FileOutcome.DONE), None))
        await shows(app, "✓ done")
        assert "Source" not in "".join(lines(app))
        assert not app.view.focus_other()


async def test_the_same_file_read_again_stays_where_the_reader_is(store: Store) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)):
        read = a_read(a_file(store), b"\n".join(b"x%d" % at for at in range(200)))
        app.view.show(read)
        await shows(app, "x1")
        app.view.scroll_text(3)
        await until(lambda: "x18" in "".join(lines(app)))
        before = lines(app)[-3:]

        app.view.show(dataclasses.replace(read, is_watched=False))
        await until(lambda: app.view.read is not read)

        assert lines(app)[-3:] == before


async def test_the_keys_go_from_the_text_to_the_source_and_back(store: Store) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 30)):
        app.view.show(a_read(a_file(store)))
        app.view.focus_text()
        await until(lambda: app.focused is not None)
        text = app.focused
        assert app.view.focus_other()
        await until(lambda: app.focused is not text)
        assert app.view.focus_other()
        await until(lambda: app.focused is text)


async def test_a_failure_stands_where_the_file_would(store: Store) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 30)):
        app.view.show(a_read(a_file(store)))
        app.view.show_failure(Failure("File not found", "r reads again."))
        await shows(app, "! File not found. r reads again.")
        assert app.view.read is None
        app.view.show_nothing()
        await until(lambda: "not found" not in "".join(lines(app)))
