"""A state is told by a mark and a word, whatever the colours."""

from resumes.health.findings import Finding, State, notice
from tui.screens.health.signs import SEVERITY, SIGNS, mark_cell, tally

WELL = Finding("home", "/srv/home")
NOTICE = notice("files", "3 files failed", "See why")
WRONG = Finding("disk", "full", "Make room")


def test_every_state_has_a_mark_of_its_own() -> None:
    assert set(SIGNS) == set(State)
    assert len({sign.mark for sign in SIGNS.values()}) == len(State)
    assert [mark_cell(one).plain for one in (WRONG, NOTICE, WELL)] == ["✗", "!", "✓"]


def test_the_worst_comes_first() -> None:
    assert sorted(State, key=SEVERITY.__getitem__) == [State.WRONG, State.NOTICE, State.WELL]


def test_findings_are_counted_by_state() -> None:
    assert tally([WELL, WRONG, WELL, NOTICE]).plain == "✗ 1 wrong · ! 1 to look at · ✓ 2 well"
    assert tally([WELL]).plain == "✓ 1 well"
