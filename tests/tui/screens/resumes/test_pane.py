"""One resume in one of its views."""

import pytest
from textual.app import App, ComposeResult

from tests.tui.builders import an_entry
from tests.tui.driving import lines
from tui.notices import Failure
from tui.screens.resumes.pane import ResumePane, view_tabs
from tui.screens.resumes.views import Shown, View
from tui.text import safe
from tui.widgets.text_pane import Paragraph, TextPane

pytestmark = pytest.mark.anyio


class Holder(App[int]):
    """Has a pane and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.pane = ResumePane(can_focus_text=True)

    def compose(self) -> ComposeResult:
        yield self.pane


def shown(text: str, *, view: View = View.TEXT, resume_id: str = "0" * 24) -> Shown:
    paragraphs = [Paragraph(safe(f"{text} {number}")) for number in range(100)]
    return Shown("ana", an_entry(id=resume_id), "{}", view, paragraphs)


async def test_read_again_it_stays_where_the_reader_is() -> None:
    app = Holder()
    async with app.run_test(size=(40, 10)) as pilot:
        app.pane.show(shown("line"))
        app.pane.scroll_pages(3)
        await pilot.pause()
        at = app.pane.query_one(TextPane).scroll_offset.y
        assert at > 0

        app.pane.show(shown("changed"))
        await pilot.pause()
        assert app.pane.query_one(TextPane).scroll_offset.y == at

        app.pane.show(shown("another", resume_id="1" * 24))
        await pilot.pause()
        assert app.pane.query_one(TextPane).scroll_offset.y == 0


async def test_views_turn_round_and_round() -> None:
    app = Holder()
    async with app.run_test(size=(60, 10)):
        for view in (*list(View)[1:], View.TEXT):
            app.pane.turn(1)
            assert app.pane.view is view
        app.pane.turn(-1)
        assert app.pane.view is View.HISTORY


async def test_a_failure_and_nothing_at_all_stand_where_the_resume_would() -> None:
    app = Holder()
    async with app.run_test(size=(60, 10)) as pilot:
        app.pane.show_failure(Failure("Not found", "r reads again."))
        await pilot.pause()
        assert "! Not found. r reads again." in "\n".join(lines(app))
        assert app.pane.shown is None

        app.pane.show_nothing("Gone.")
        await pilot.pause()
        assert "Gone." in "\n".join(lines(app))


def test_every_view_has_its_tab() -> None:
    assert all(view in view_tabs(View.TEXT).plain for view in View)
