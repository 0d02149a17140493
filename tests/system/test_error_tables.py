"""Every error code through every surface's table, and through the page that documents them."""

import re
from pathlib import Path

import pytest

from cli.exits import EXIT_CODES
from importer.outcomes import TREATMENTS
from resumes.errors import ErrorCode
from resumes.reasons import HINTS, Reason
from resumes.store.ledger import FileOutcome
from server.responses import STATUSES
from tui.notices import NOTICES

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def page(repository: Path) -> dict[str, list[str]]:
    """The rows of docs/errors.md by code."""
    text = (repository / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", text, re.MULTILINE)
    return {code: [cell.strip() for cell in cells.split("|")] for code, cells in rows}


@pytest.mark.parametrize("table", [STATUSES, EXIT_CODES, TREATMENTS, NOTICES])
def test_every_table_knows_every_code_and_no_other(table: dict[ErrorCode, object]) -> None:
    assert set(table) == set(ErrorCode)


def test_every_reason_has_a_hint() -> None:
    assert set(HINTS) == set(Reason)


def test_the_page_documents_every_code_and_no_other(page: dict[str, list[str]]) -> None:
    assert set(page) == {code.value for code in ErrorCode}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_the_page_says_what_the_tables_say(code: ErrorCode, page: dict[str, list[str]]) -> None:
    _, status, exit_code, file = page[code.value]
    assert int(status) == STATUSES[code]
    assert int(exit_code) == EXIT_CODES[code]
    treatment = TREATMENTS[code]
    if treatment.reason is Reason.INTERNAL_ERROR:
        assert file == "does not happen"
    elif treatment.outcome is FileOutcome.FAILED:
        assert file == f"`_failed/{treatment.reason}`"
    elif treatment.outcome is FileOutcome.HELD:
        assert file == "`_held`"
    else:
        assert file.startswith("stays")
