"""Every error code through every surface's table, and through the page that documents them."""

import inspect
import re
from pathlib import Path

import pytest

from cli.exits import EXIT_CODES
from importer.outcomes import TREATMENTS
from resumes import errors
from resumes.errors import ErrorCode, Issue, ResumesError
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


def test_every_table_and_the_page_know_every_code_and_no_other(page: dict[str, list[str]]) -> None:
    for table in (STATUSES, EXIT_CODES, TREATMENTS, NOTICES):
        assert set(table) == set(ErrorCode)
    assert set(page) == {code.value for code in ErrorCode}
    assert set(HINTS) == set(Reason)


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


def test_the_page_says_what_the_tables_say(page: dict[str, list[str]]) -> None:
    for code in ErrorCode:
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
