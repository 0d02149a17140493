"""`resumes list`: as the API lists them."""

import pytest

from cli import listing
from tests.cli.conftest import CommandLine, a_resume, store_resumes


def test_list_is_a_table_with_the_cursor_beside_it(acme: CommandLine) -> None:
    ids = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo", title="Fitter"), a_resume("Cy"))

    listed = acme("list", "--limit", "2")

    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [
        [ids[0], "Ada"],
        [ids[1], "Fitter"],
    ]
    assert listed.stderr == f"next cursor  {ids[1]}\n"
    assert acme.succeeds("list", "--cursor", ids[1]).splitlines()[1].split()[:2] == [ids[2], "Cy"]


def test_json_is_the_page_of_the_api(acme: CommandLine) -> None:
    [resume_id] = store_resumes(acme.home, a_resume("Ada"))

    page = acme.answers("list", "--json")

    [entry] = page["resumes"]
    assert entry["createdAt"] == entry["updatedAt"]
    assert {**entry, "createdAt": "", "updatedAt": ""} == {
        "id": resume_id, "title": "Ada Resume", "filename": "AdaResume.pdf",
        "createdAt": "", "updatedAt": "",
    }  # fmt: skip
    assert page["pagination"] == {"cursor": None, "limit": 20}


def test_hostile_titles_are_escaped_in_tables_and_in_json(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume(title="\x1b[2J\u202e\u009b31m"))

    assert "\\x1b[2J\\u202e\\x9b31m" in acme.succeeds("list")
    printed = acme.succeeds("list", "--json")
    assert "\\u001b[2J\\u202e\\u009b31m" in printed
    assert acme.answers("list", "--json")["resumes"][0]["title"] == "\x1b[2J\u202e\u009b31m"


def test_nothing_to_list_is_said_on_standard_error(acme: CommandLine) -> None:
    listed = acme("list")

    assert (listed.exit_code, listed.stdout) == (0, "")
    assert listed.stderr == 'No resumes yet in account "acme".\n'
    assert "No more resumes" in acme("list", "--cursor", "f" * 24).stderr


def test_a_filter_lists_what_has_its_words(acme: CommandLine) -> None:
    people = [a_resume(name) for name in ("Ada Lovelace", "Bo Émile", "Cy Adair")]
    ids = store_resumes(acme.home, *people)

    first = acme("list", "--filter", "AD a", "--limit", "1")
    page = acme.answers("list", "--filter", "ad a", "--cursor", ids[0], "--json")

    assert first.stdout.splitlines()[1].split()[0] == ids[0]
    assert first.stderr == f"next cursor  {ids[0]}\n"
    assert [one["id"] for one in page["resumes"]] == [ids[2]]
    assert (page["pagination"], page["unindexed"]) == ({"cursor": None, "limit": 20}, 0)
    assert ids[1] in acme.succeeds("list", "--filter", "EMILE")


def test_a_filter_that_nothing_passes_is_named(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("Ada"))

    listed = acme("list", "--filter", "x\x1b[2J")

    assert (listed.exit_code, listed.stdout) == (0, "")
    assert listed.stderr == 'No resumes in account "acme" with "x\\x1b[2J".\n'
    assert "Nothing to search for" in acme.fails(2, "list", "--filter", " ")


def test_resumes_that_are_not_searched_in_time_are_counted(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))
    monkeypatch.setattr(listing, "PATIENCE_S", 0)

    listed = acme("list", "--filter", "ada")

    assert "2 resumes could not be searched yet" in listed.stderr
    assert acme.answers("list", "--filter", "ada", "--json")["unindexed"] == 2


def test_a_malformed_cursor_is_named(acme: CommandLine) -> None:
    assert 'Invalid cursor "x\\x1b"' in acme.fails(2, "list", "--cursor", "x\x1b")


def test_without_an_account_the_only_one_is_meant(acme: CommandLine) -> None:
    acme.succeeds("accounts", "create", "beta")

    message = acme.fails(2, "list")

    assert message == "Several accounts exist: choose one with --account. acme, beta"
    assert acme.succeeds("list", "--account", "beta") == ""
    assert 'Account not found: "gamma"' in acme.fails(1, "list", "--account", "gamma")


def test_without_any_account_the_way_to_one_is_told(run: CommandLine) -> None:
    run.succeeds("plans", "set", "free", "--max-resumes", "5")

    assert "`resumes accounts create NAME` makes one" in run.fails(1, "list")
