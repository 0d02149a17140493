"""The lines above the list."""

import dataclasses

import pytest
from textual.app import App, ComposeResult

from resumes.store.importers import Finding, Importer, SeenImporter, State
from resumes.store.ledger import FileOutcome
from resumes.store.tallies import FileTally
from resumes.text import is_harmless
from tests.resumes.store.builders import an_importer
from tests.tui.builders import HOSTILE
from tests.tui.driving import lines, segments, until
from tui.screens.imports.backlog import Outlook
from tui.screens.imports.watchers import WatcherLines, backlog_line, importer_lines, tally_line
from tui.text import safe

START = "resumes up"


def seen(importer: Importer, age_s: float = 4.2) -> SeenImporter:
    return SeenImporter(importer, "2027-01-15T08:00:00.000Z", age_s)


def told(*importers: SeenImporter) -> list[str]:
    return [line.plain for line in importer_lines(importers, START)]


def test_files_are_counted_by_outcome_failures_first() -> None:
    tallies = [
        FileTally(FileOutcome.DONE, None, 1_204),
        FileTally(FileOutcome.FAILED, "invalid_json", 1),
        FileTally(FileOutcome.FAILED, "too_large", 2),
    ]
    assert tally_line(tallies).plain == "✗ 3 failed   ‖ 0 held   = 0 duplicate   ✓ 1,204 done"


def test_a_live_importer_says_what_it_watches() -> None:
    assert told(seen(an_importer(waiting=1))) == [
        "● watching /srv/inbox · heard of 4 s ago · 1 file waiting"
    ]
    assert told(seen(an_importer(waiting=None)))[0].endswith("nothing waits")


@pytest.mark.parametrize(("state", "sign"), [(State.POLLING, "●"), (State.DEGRADED, "!")])
def test_what_people_should_know_stands_below_it(state: State, sign: str) -> None:
    finding = Finding("root", state, "The folder is on a share.")
    line, about = told(seen(an_importer(state=state, findings=(finding,))))
    assert line.startswith(f"{sign} watching")
    assert about == f"  {state}: The folder is on a share."


def test_without_an_importer_it_is_said_how_to_start_one() -> None:
    assert told() == ["○ No importer is running: `resumes up` starts one."]
    assert told(seen(an_importer(), age_s=180)) == [
        "○ /srv/inbox: nothing was heard of its importer for 3 minutes",
        "○ No importer is running: `resumes up` starts one.",
    ]


def test_a_silent_importer_whose_folder_another_one_watches_is_passed_over() -> None:
    assert len(told(seen(an_importer()), seen(an_importer(), age_s=180))) == 1


def test_of_many_importers_the_first_are_told_one_by_one() -> None:
    many = [seen(dataclasses.replace(an_importer(), root=f"/srv/{at}")) for at in range(5)]
    assert len(told(*many)) == 4
    assert told(*many)[-1] == "and 2 more importers"


@pytest.mark.parametrize(
    ("outlook", "text"),
    [
        (Outlook(12_000, 12_000, None), "░" * 20 + " 12,000 waiting"),
        (Outlook(50, 200, 5.0), "█" * 15 + "░" * 5 + " 50 waiting · 5.0 files/s · about 10 s left"),
    ],
)
def test_the_backlog_is_a_bar_that_fills(outlook: Outlook, text: str) -> None:
    assert backlog_line(outlook).plain == text


@pytest.mark.anyio
async def test_the_lines_take_the_room_that_they_need_and_are_harmless() -> None:
    class LinesApp(App[int]):
        def compose(self) -> ComposeResult:
            yield WatcherLines()

    app = LinesApp()
    async with app.run_test(size=(60, 8)):
        widget = app.query_one(WatcherLines)
        hostile = seen(dataclasses.replace(an_importer(), root=HOSTILE + "x" * 80))
        widget.show([*importer_lines([hostile], START), safe("second"), safe("third")])
        await until(lambda: lines(app)[1:3] == [" second", " third"])
        assert widget.size.height == 3
        assert lines(app)[0].endswith("…")
        for segment in segments(app):
            assert is_harmless(segment.text), segment
            assert segment.style is None or "@click" not in segment.style.meta, segment
        widget.show([safe("alone")])
        await until(lambda: widget.size.height == 1)
