"""`resumes accounts`."""

import pytest

from resumes.store import accounts
from tests.cli.conftest import CommandLine, a_resume, open_home, store_resumes


def test_an_account_starts_on_the_free_plan(run: CommandLine) -> None:
    created = run("accounts", "create", "acme")

    assert created.exit_code == 0
    assert created.stdout == ""
    assert 'Account "acme" is there, on the plan free.' in created.stderr
    shown = run.answers("accounts", "show", "acme", "--json")
    assert {**shown, "id": "", "createdAt": ""} == {
        "id": "", "name": "acme", "plan": "free", "createdAt": "", "resumes": 0,
        "maxResumes": 5, "freePlaces": 5, "apiListing": False, "lastResumeAt": None, "keys": 0,
        "activeKeys": 0, "lastKeyUseAt": None, "filesHeld": 0, "filesFailed": 0,
    }  # fmt: skip


def test_making_an_account_makes_a_home_that_is_its_owner_s_alone(run: CommandLine) -> None:
    run.succeeds("accounts", "create", "acme")

    assert run.home.stat().st_mode & 0o777 == 0o700


def test_create_prints_the_account_as_json(run: CommandLine) -> None:
    created = run.answers("--json", "accounts", "create", "acme", "--plan", "business")

    assert (created["plan"], created["apiListing"]) == ("business", True)


def test_list_is_a_table(acme: CommandLine) -> None:
    titles, row = acme.succeeds("accounts", "list").splitlines()

    assert titles.split()[:4] == ["account", "plan", "resumes", "of"]
    assert row.split()[:4] == ["acme", "free", "0", "5"]


def test_list_says_on_standard_error_how_to_begin(run: CommandLine) -> None:
    run.succeeds("plans", "set", "free", "--max-resumes", "5")

    listed = run("accounts", "list")

    assert listed.stdout == ""
    assert f"resumes --home {run.home} accounts create NAME" in listed.stderr


def test_a_taken_name_a_bad_name_and_a_missing_plan_are_told(acme: CommandLine) -> None:
    assert acme.fails(1, "accounts", "create", "acme") == 'Account "acme" exists already'
    assert "Invalid account name 'Acme Inc'" in acme.fails(2, "accounts", "create", "Acme Inc")
    message = acme.fails(1, "accounts", "create", "b", "--plan", "gold")
    assert message == 'Plan not found: "gold". Plans: business, free, pro'
    assert 'Account not found: "b"' in acme.fails(1, "accounts", "show", "b")


def test_show_is_for_people(acme: CommandLine) -> None:
    shown = acme.succeeds("accounts", "show", "acme")

    assert "resumes        0 of 5\n" in shown
    assert "keys           0 active of 0\n" in shown
    assert "newest resume  -\n" in shown


def test_a_smaller_plan_keeps_what_is_there_and_says_so(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("A"), a_resume("B"))
    acme.succeeds("plans", "set", "tiny", "--max-resumes", "1")

    changed = acme("accounts", "set-plan", "acme", "tiny")

    assert 'Account "acme" is on the plan tiny.' in changed.stderr
    assert "It keeps its 2 resumes" in changed.stderr
    assert acme.answers("accounts", "set-plan", "acme", "pro", "--json")["plan"] == "pro"


def test_delete_asks_and_where_nobody_can_be_asked_refuses(acme: CommandLine) -> None:
    assert "add --yes" in acme.fails(2, "accounts", "delete", "acme")
    assert acme.answers("accounts", "list", "--json")["accounts"]


def test_delete_with_resumes_needs_that_word(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())

    message = acme.fails(1, "accounts", "delete", "acme", "--yes")

    assert message == 'Account "acme" holds 1 resume: add --with-resumes to delete them too'
    gone = acme.answers("--json", "accounts", "delete", "acme", "--with-resumes", "--yes")
    assert gone == {"deleted": "acme", "resumes": 1}
    assert acme.answers("accounts", "list", "--json") == {"accounts": []}


@pytest.mark.parametrize("words", [("delete", "acme", "--yes")])
def test_delete_says_what_went(acme: CommandLine, words: tuple[str, ...]) -> None:
    assert acme("accounts", *words).stderr == 'Account "acme" is gone, with 0 resumes.\n'


def test_a_deletion_that_was_cut_off_is_told_and_finished(acme: CommandLine) -> None:
    store_resumes(acme.home, *(a_resume(f"A{number}") for number in range(4)))
    with open_home(acme.home) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "SLICE_RESUMES", 3)
        accounts.delete_account(store, "acme", with_resumes=True, goes_on=lambda _: False)

    listed = acme("accounts", "list")

    assert listed.stdout == ""
    assert 'Account "acme" is being deleted, 1 resume left.' in listed.stderr
    assert "accounts delete acme --with-resumes --yes" in listed.stderr
    assert acme.answers("accounts", "list", "--json") == {"accounts": []}
    acme.succeeds("accounts", "delete", "acme", "--with-resumes", "--yes")
    assert "being deleted" not in acme("accounts", "list").stderr
