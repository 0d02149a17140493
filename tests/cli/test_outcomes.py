"""Lines and summaries of outcomes."""

from click import unstyle

from cli.outcomes import issues_as_json, line, summary
from resumes.errors import Issue


def test_a_line_names_the_outcome_the_file_and_the_message() -> None:
    assert (
        unstyle(line("failed", "a\x1b.json", "no\nwords")) == "failed     a\\x1b.json: no\\nwords"
    )
    assert unstyle(line("duplicate", "b.json")) == "duplicate  b.json"


def test_a_summary_leaves_out_what_goes_without_saying() -> None:
    assert summary({"done": 2, "failed": 0, "held": 0, "waiting": 1_000}) == (
        "2 done, 0 failed, 1,000 waiting"
    )


def test_issues_are_as_the_api_gives_them() -> None:
    assert issues_as_json([Issue("a.b", "b is")]) == [{"path": "a.b", "message": "b is"}]
