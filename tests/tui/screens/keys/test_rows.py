"""What is said about one key."""

from dataclasses import replace
from datetime import timedelta

import pytest

from resumes.clock import later
from resumes.store.keys import KeyInfo, KeyState
from tui.screens.keys.rows import STATE_CELLS, columns, facts, label, state_cell, state_words

NOW_US = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC
KEY = KeyInfo(
    id="key_0123456789ab",
    account="ana",
    name="website",
    masked="enh_live_abc…",
    created_at="2027-01-01T09:00:00.000Z",
    shown_at="2027-01-01T09:00:30.000Z",
    last_used_at="2027-01-15T07:56:00.000Z",
    expires_at=None,
    revoked_at=None,
    state=KeyState.ACTIVE,
)


@pytest.mark.parametrize(
    ("changed", "cell"),
    [
        ({}, "✓ active"),
        ({"shown_at": None}, "! never shown"),
        ({"expires_at": later(NOW_US, timedelta(days=1))}, "~ until 01-16 08:00"),
        ({"expires_at": later(NOW_US, timedelta(days=400))}, "~ until 2028-02-19"),
        ({"state": KeyState.EXPIRED}, "✗ expired"),
        ({"state": KeyState.REVOKED}, "✗ revoked"),
    ],
)
def test_the_state_has_a_sign_and_fits(changed: dict[str, str], cell: str) -> None:
    shown = state_cell(replace(KEY, **changed), NOW_US)  # type: ignore[arg-type]

    assert shown.plain == cell
    assert shown.cell_length <= STATE_CELLS


def test_in_full_the_state_has_the_year() -> None:
    assert state_words(replace(KEY, expires_at="2027-01-16T08:00:00.000Z")) == (
        "until 2027-01-16 08:00"
    )


def test_a_key_is_called_by_its_name_or_its_id() -> None:
    assert label(KEY) == "website"
    assert label(replace(KEY, name="  ")) == KEY.id


def test_the_list_tells_the_last_use_roughly_and_the_facts_exactly() -> None:
    cells = [column.cell(KEY).plain for column in columns(lambda: NOW_US)]

    assert "4 min ago" in cells
    assert ("Last used", "2027-01-15 07:56 (4 min ago)") in facts(KEY, NOW_US)
    assert ("Last used", "never") in facts(replace(KEY, last_used_at=None), NOW_US)
