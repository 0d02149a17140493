"""What a finding says in full."""

from resumes.health.findings import Finding, notice
from tests.tui.builders import HOSTILE
from tui.screens.health.remedy import NOTHING_TO_DO, finding_line, remedy_line


def test_a_finding_begins_with_its_mark() -> None:
    assert finding_line(Finding("home", "/srv/home")).plain == "✓ home  /srv/home"
    assert finding_line(notice("files", "3 failed", "See why")).plain == "! files  3 failed"


def test_what_to_do_is_said_or_that_there_is_nothing() -> None:
    assert remedy_line(Finding("disk", "full", "Make room")).plain == "→ Make room"
    assert remedy_line(Finding("home", "/srv/home")).plain == NOTHING_TO_DO


def test_hostile_names_are_text() -> None:
    line = finding_line(Finding("inbox", HOSTILE, "Rename it")).plain

    assert "[@click=app.quit]x[/]" in line
    assert "\x1b" not in line
