"""`resumes imports list` and `show`: the ledger."""

import pytest

from cli import imports
from resumes.store.items import Items, Problem
from resumes.store.ledger import FileOutcome
from tests.cli.conftest import CommandLine
from tests.cli.ledger import ledger_id, record_file


def listed(run: CommandLine, *words: str) -> list[str]:
    """The first digits of the ids of the files that are listed."""
    return [one["id"][0] for one in run.answers("imports", "list", *words, "--json")["files"]]


def test_files_are_listed_newest_first(acme: CommandLine) -> None:
    record_file(acme, "c1")
    record_file(acme, "c2")

    lines = [line.split() for line in acme.succeeds("imports", "list").splitlines()[1:]]

    assert lines == [
        [claim, "failed", "invalid_json", "acme/x\\x1b.json"] for claim in ("c2", "c1")
    ]
    assert len(acme.answers("imports", "list", "--limit", "1", "--json")["files"]) == 1


def test_one_account_s_files_alone(acme: CommandLine) -> None:
    acme.succeeds("accounts", "create", "beta")
    record_file(acme, "c1")

    assert listed(acme, "--account", "beta") == []
    assert acme("imports", "list", "--account", "beta").stderr == "No such files.\n"
    assert "Account not found" in acme.fails(1, "imports", "list", "--account", "gamma")


def test_files_of_one_outcome_or_reason_alone(acme: CommandLine) -> None:
    record_file(acme, ledger_id("1"))
    record_file(acme, ledger_id("2"), reason="too_large")
    record_file(acme, ledger_id("3"), FileOutcome.HELD, reason="quota_reached")
    record_file(acme, ledger_id("4"), FileOutcome.DONE, reason=None)

    assert listed(acme, "--outcome", "failed") == ["2", "1"]
    assert listed(acme, "--outcome", "held") == ["3"]
    assert listed(acme, "--outcome", "done") == ["4"]
    assert listed(acme, "--reason", "too_large") == ["2"]
    assert listed(acme, "--reason", "too_large", "--outcome", "held") == []
    assert '"no" is no reason: use one of' in acme.fails(2, "imports", "list", "--reason", "no")


def test_every_outcome_can_be_asked_for() -> None:
    assert set(imports.OUTCOMES) == {outcome.value for outcome in FileOutcome}


def test_the_list_goes_on_with_the_last_id(acme: CommandLine) -> None:
    for digit in "12345":
        record_file(acme, ledger_id(digit))

    first = acme.answers("imports", "list", "--limit", "2", "--json")

    assert [one["id"][0] for one in first["files"]] == ["5", "4"]
    assert first["before"] == ledger_id("4")
    second = acme("imports", "list", "--limit", "2", "--before", first["before"])
    assert [line[0] for line in second.stdout.splitlines()[1:]] == ["3", "2"]
    assert second.stderr == f"older ones  --before {ledger_id('2')}\n"
    last = acme.answers("imports", "list", "--limit", "2", "--before", ledger_id("2"), "--json")
    assert ([one["id"][0] for one in last["files"]], last["before"]) == (["1"], None)
    assert "24 hexadecimal digits" in acme.fails(2, "imports", "list", "--before", "x")


def test_what_failed_comes_first_if_asked_for(acme: CommandLine) -> None:
    record_file(acme, ledger_id("1"))
    record_file(acme, ledger_id("2"), FileOutcome.HELD, reason="quota_reached")
    record_file(acme, ledger_id("3"), FileOutcome.DONE, reason=None)
    record_file(acme, ledger_id("4"))

    assert listed(acme, "--failed-first") == ["4", "1", "2", "3"]
    first = acme("imports", "list", "--failed-first", "--limit", "2")
    assert first.stderr == f"older ones  --before failed:{ledger_id('1')}\n"
    words = ("imports", "list", "--failed-first", "--before", f"failed:{ledger_id('1')}", "--json")
    rest = acme.answers(*words)
    assert ([one["id"][0] for one in rest["files"]], rest["before"]) == (["2", "3"], None)
    assert "Invalid place" in acme.fails(2, "imports", "list", "--failed-first", "--before", "x")


def test_show_says_why(acme: CommandLine) -> None:
    record_file(acme, "c1")

    shown = acme.succeeds("imports", "show", "c1")

    assert "message   Invalid JSON at byte 1: EOF\n" in shown
    assert "folder    /srv/inbox\n" in shown
    assert "byte      1\n" in shown
    assert "asked" not in shown
    told = acme.answers("imports", "show", "c1", "--json")
    assert (told["byteOffset"], told["root"], told["items"]) == (1, "/srv/inbox", None)
    assert told["request"] is None
    assert '"nope"' in acme.fails(1, "imports", "show", "nope")


def test_show_says_what_became_of_the_resumes_in_a_file_of_several(acme: CommandLine) -> None:
    problem = Problem(3, "line\x1b 3", "failed", "invalid_json", "Invalid JSON: EOF")
    record_file(acme, "c1", items=Items(1_003, 1_000, 2, 0, 1, (problem,)))

    shown = acme.succeeds("imports", "show", "c1")

    assert "resumes   1,003: 1,000 done, 2 duplicate, 1 failed\n" in shown
    assert shown.endswith(
        "\nitem  place       reason        message\n"
        "   3  line\\x1b 3  invalid_json  Invalid JSON: EOF\n"
    )
    told = acme.answers("imports", "show", "c1", "--json")["items"]
    assert (told["total"], told["problems"][0]["place"]) == (1_003, "line\x1b 3")


def test_show_says_when_there_may_be_more_problems(acme: CommandLine) -> None:
    problems = tuple(Problem(at, f"line {at}", "failed") for at in range(60))
    record_file(acme, "c1", items=Items(60, 0, 0, 0, 60, problems))

    shown = acme("imports", "show", "c1")

    assert "line 49" in shown.stdout
    assert "line 50" not in shown.stdout
    assert shown.stderr.startswith("The ledger keeps the first 50;")


def test_the_source_is_printed_harmless(acme: CommandLine) -> None:
    record_file(acme, "c1", source=b'{\n "a": "\x1b[31m\xff\n')

    shown = acme("imports", "show", "c1", "--source")

    assert (shown.stdout, shown.stderr) == ('{\n "a": "\\x1b[31m\\xff\n', "")
    told = acme.answers("imports", "show", "c1", "--source", "--json")
    assert told["source"] == '{\n "a": "\x1b[31m\\xff\n'


def test_a_long_source_is_said_to_be_cut(acme: CommandLine) -> None:
    record_file(acme, "c1", source=b"x" * 70_000)

    shown = acme("imports", "show", "c1", "--source")

    assert shown.stdout == "x" * 65_536 + "\n"
    assert shown.stderr == "The ledger keeps the first 64 KiB.\n"


def test_no_source_is_kept_of_what_is_done(acme: CommandLine) -> None:
    record_file(acme, "c1", FileOutcome.DONE, reason=None)

    assert "c1: it is done" in acme.fails(1, "imports", "show", "c1", "--source")


def test_nothing_yet_is_said_on_standard_error(acme: CommandLine) -> None:
    result = acme("imports", "list")

    assert (result.stdout, result.exit_code) == ("", 0)
    assert result.stderr == "No files were imported from a watched folder yet.\n"


@pytest.mark.parametrize("name", ["list", "show", "retry", "release"])
def test_each_command_is_in_the_group(name: str) -> None:
    assert name in imports.imports.commands
