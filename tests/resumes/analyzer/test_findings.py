import pytest

from resumes.analyzer.findings import MAX_REPORTED, Findings, dotted, printable
from resumes.errors import Issue


def test_a_path_is_dotted_with_positions_in_brackets() -> None:
    assert dotted(["sections", "skills", "items", 2, "tags", 0]) == (
        "sections.skills.items[2].tags[0]"
    )
    assert dotted(["header"]) == "header"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("experiences", "experiences"),
        ("Müller 日本", "Müller 日本"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eevil", "\\u202eevil"),
        ("می\u200cروم", "می\u200cروم"),
        ("x" * 61, "x" * 60 + "…"),
    ],
)
def test_a_name_is_printed_safely_and_cut(raw: str, shown: str) -> None:
    assert printable(raw) == shown


def test_a_problem_in_a_section_names_the_section_and_the_field() -> None:
    findings = Findings()
    findings.scope = ["sections", "experiences", "items", 2, "dateRange"]
    findings.problem("fromYear", "must be a number")
    assert findings.issues == [
        Issue(
            "sections.experiences.items[2].dateRange.fromYear",
            'Invalid section "experiences": items[2].dateRange.fromYear must be a number',
        )
    ]


def test_a_problem_elsewhere_names_the_field_by_its_path() -> None:
    findings = Findings()
    findings.scope = ["style", "colors"]
    findings.problem(1, "must be a hex colour")
    assert findings.issues == [
        Issue("style.colors[1]", "Invalid field style.colors[1]: must be a hex colour")
    ]


def test_problems_stop_at_50() -> None:
    findings = Findings()
    for number in range(60):
        findings.problem(f"field{number}", "must be a string")
    assert len(findings.issues) == MAX_REPORTED == 50


@pytest.mark.parametrize(("more", "summary"), [(1, "1 more warning"), (7, "7 more warnings")])
def test_warnings_past_50_are_counted(more: int, summary: str) -> None:
    findings = Findings()
    for number in range(50 + more):
        findings.warn(f"field{number}", "is odd")
    warnings = findings.all_warnings()
    assert len(warnings) == 51
    assert warnings[0] == Issue("field0", "field0 is odd")
    assert warnings[-1] == Issue("", summary)


def test_exactly_50_warnings_need_no_count() -> None:
    findings = Findings()
    for number in range(50):
        findings.warn(f"field{number}", "is odd")
    assert [warning.path for warning in findings.all_warnings()] == [
        f"field{number}" for number in range(50)
    ]


def test_a_warning_about_an_entry_names_its_list() -> None:
    findings = Findings()
    findings.scope = ["sections", "skills", "items", 0, "tags"]
    findings.warn(3, "is only white space")
    assert findings.warnings == [
        Issue("sections.skills.items[0].tags[3]", "tags[3] is only white space")
    ]


def test_what_is_missing_is_named_in_the_path_and_in_the_message() -> None:
    findings = Findings()
    findings.missing("header")
    assert findings.issues == [
        Issue("header", "Missing required field: header (must be an object)")
    ]


def test_a_problem_of_the_sections_as_a_whole_is_one_of_a_field() -> None:
    findings = Findings()
    findings.problem("sections", "must be an object")
    assert findings.issues == [Issue("sections", "Invalid field sections: must be an object")]
