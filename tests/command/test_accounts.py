"""`resumes accounts`, `plans` and `keys`: shown once, alone on standard output, or worthless (pitfalls S16)."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from resumes.errors import InvalidKey, StoreUnavailable
from resumes.store import accounts, api_keys
from resumes.store.write_queue import BUSY
from tests.command.conftest import CommandLine, a_resume, finish, start, store_resumes
from tests.support.store.builders import execute
from tests.support.stores import open_home


def test_an_account_starts_on_the_free_plan(run: CommandLine) -> None:
    created = run("accounts", "create", "acme")

    assert created.exit_code == 0
    assert created.stdout == ""
    assert 'Created account "acme" (plan: free).' in created.stderr
    shown = run.answers("accounts", "show", "acme", "--json")
    assert {**shown, "id": "", "createdAt": ""} == {
        "id": "", "name": "acme", "plan": "free", "createdAt": "", "resumes": 0, "formerNames": [],
        "onNewer": "keep", "firstMonth": None,
        "maxResumes": 5, "freePlaces": 5, "apiListing": False, "lastResumeAt": None, "keys": 0,
        "activeKeys": 0, "lastKeyUseAt": None, "filesHeld": 0, "filesFailed": 0,
        "keepDays": None, "dueResumes": 0,
    }  # fmt: skip


def a_person(**fields: Any) -> bytes:
    """A resume of a person who is known by name and address."""
    return a_resume(header={"name": "Ada", "email": "ada@example.com"}, **fields)


def test_an_account_replaces_older_versions_once_told_to(acme: CommandLine) -> None:
    store_resumes(acme.home, a_person(title="Before"))
    with open_home(acme.home) as store:  # as a store that no service has indexed
        execute(store, "UPDATE resumes SET person = NULL")

    told = acme("accounts", "set", "acme", "--on-newer", "replace")
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr == 'Account "acme" replaces the older resumes of a person.\n'
    assert re.search("on newer +replace\n", acme.succeeds("accounts", "show", "acme"))
    assert acme.answers("accounts", "show", "acme", "--json")["onNewer"] == "replace"

    for title in ("First", "Second"):
        store_resumes(acme.home, a_person(title=title))
    (stored,) = acme.answers("list", "--json")["resumes"]
    assert stored["title"] == "Second"

    told = acme.answers("accounts", "set", "acme", "--on-newer", "keep", "--json")
    assert told["onNewer"] == "keep"


def test_a_taken_name_a_bad_name_and_a_missing_plan_are_told(acme: CommandLine) -> None:
    assert acme.fails(1, "accounts", "create", "acme") == 'Account "acme" already exists'
    assert "Invalid account name 'Acme Inc'" in acme.fails(2, "accounts", "create", "Acme Inc")
    message = acme.fails(1, "accounts", "create", "b", "--plan", "gold")
    assert message == 'Plan not found: "gold". Plans: free, pro, business'
    assert 'Account not found: "b"' in acme.fails(1, "accounts", "show", "b")


def test_a_smaller_plan_keeps_what_is_there_and_says_so(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("A"), a_resume("B"))
    acme.succeeds("plans", "set", "tiny", "--max-resumes", "1")

    changed = acme("accounts", "set-plan", "acme", "tiny")

    assert 'Moved account "acme" to plan tiny.' in changed.stderr
    assert (
        "It keeps its 2 resumes, but cannot add more until it has fewer than 1." in changed.stderr
    )
    acme.succeeds("plans", "set", "none", "--max-resumes", "0")
    changed = acme("accounts", "set-plan", "acme", "none")
    assert changed.stderr.endswith("It keeps its 2 resumes, but cannot add more.\n")
    assert acme.answers("accounts", "set-plan", "acme", "pro", "--json")["plan"] == "pro"


def test_a_plan_that_takes_listing_away_says_so(acme: CommandLine) -> None:
    acme.succeeds("accounts", "set-plan", "acme", "business")

    changed = acme("accounts", "set-plan", "acme", "pro")

    assert changed.stderr == (
        'Moved account "acme" to plan pro.\n'
        "It loses API listing: its keys can no longer list and read resumes.\n"
    )
    changed = acme("accounts", "set-plan", "acme", "business")
    assert changed.stderr == 'Moved account "acme" to plan business.\n'


def test_what_was_not_asked_about_is_not_deleted(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confirm_late(question: str) -> None:
        acme.succeeds("accounts", "delete", "acme", "--yes")
        acme.succeeds("accounts", "create", "acme")
        store_resumes(acme.home, a_resume())

    monkeypatch.setattr("cli.commands.accounts.confirm", confirm_late)

    assert "Account not found" in acme.fails(1, "accounts", "delete", "acme", "--with-resumes")
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 1


def test_delete_with_resumes_needs_that_word(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())

    message = acme.fails(1, "accounts", "delete", "acme", "--yes")

    assert message == 'Account "acme" has 1 resume: add --with-resumes to delete them too'
    gone = acme.answers("--json", "accounts", "delete", "acme", "--with-resumes", "--yes")
    assert gone == {"deleted": "acme", "resumes": 1}
    assert acme.answers("accounts", "list", "--json") == {"accounts": []}


def test_set_makes_and_changes_a_plan(acme: CommandLine) -> None:
    made = acme.answers("plans", "set", "gold", "--max-resumes", "unlimited", "--json")
    assert made == {
        "name": "gold",
        "maxResumes": None,
        "apiListing": False,
        "keepDays": None,
        "accounts": 0,
        "dueResumes": 0,
    }

    changed = acme("plans", "set", "gold", "--max-resumes", "7", "--api-listing")

    assert changed.stderr == 'Plan "gold": 7 resumes, with API listing.\n'
    assert acme.answers("plans", "set", "gold", "--max-resumes", "8", "--json")["apiListing"]


def test_a_maximum_is_a_number_or_unlimited(acme: CommandLine) -> None:
    message = acme.fails(2, "plans", "set", "gold", "--max-resumes", "many")

    assert '"many" is neither a number of resumes nor unlimited' in message
    assert "Invalid plan name" in acme.fails(2, "plans", "set", "Gold!", "--max-resumes", "1")
    assert "Missing option '--max-resumes'" in acme.fails(2, "plans", "set", "gold")


def test_set_says_who_is_over_and_what_becomes_of_them_and_a_dry_run_changes_nothing(
    acme: CommandLine,
) -> None:
    store_resumes(acme.home, a_resume("A"), a_resume("B"))
    acme.succeeds("accounts", "set-plan", "acme", "business")
    words = ("plans", "set", "business", "--max-resumes", "1", "--no-api-listing", "--dry-run")

    acme_alone = {"count": 1, "fullest": [{"account": "acme", "resumes": 2}]}
    assert acme.answers(*words, "--json") == {
        "over": acme_alone, "unlisted": acme_alone, "due": {"count": 0, "fullest": []},
    }  # fmt: skip
    becomes = (
        "1 account is over the limit of 1: acme (2). It keeps its resumes but cannot add more.\n"
        "1 account loses API listing: acme (2).\n"
    )
    assert acme(*words).stderr == f"Dry run: nothing was changed.\n{becomes}"
    assert "Invalid plan name" in acme.fails(
        2, "plans", "set", "A!", "--max-resumes=1", "--dry-run"
    )
    kept = acme.answers("plans", "list", "--json")["plans"][2]
    assert (kept["maxResumes"], kept["apiListing"]) == (1_000, True)
    said = acme(*words[:-1]).stderr
    assert said == f'Plan "business": 1 resume, no API listing.\n{becomes}'
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 2


def test_an_account_is_renamed(acme: CommandLine) -> None:
    before = acme.answers("accounts", "show", "acme", "--json")

    renamed = acme("accounts", "rename", "acme", "apex")

    inbox = acme.home / "inbox"
    assert renamed.stderr == (
        f'Renamed account "acme" to "apex".\nDrop its files into {inbox}/apex, or into acme beside it\n'
    )
    assert (inbox / "apex").is_dir()
    after = acme.answers("accounts", "show", "apex", "--json")
    assert after == before | {"name": "apex", "formerNames": ["acme"]}
    assert "former names   acme" in acme.succeeds("accounts", "show", "apex")
    assert 'It was renamed to "apex"' in acme.fails(1, "list", "--account", "acme")
    said = acme.fails(1, "accounts", "create", "acme")
    assert said.startswith('"acme" is a former name of the account "apex"')
    acme.succeeds("accounts", "create", "acme", "--force")
    assert acme.answers("accounts", "show", "apex", "--json")["formerNames"] == []
    acme.succeeds("accounts", "rename", "acme", "ace")
    acme.succeeds("accounts", "rename", "apex", "acme", "--force")
    assert acme.answers("accounts", "list", "--json")["accounts"][0]["formerNames"] == []


def test_options_of_an_account_are_set(acme: CommandLine) -> None:
    for chosen, first_month, said in (
        ("1", 1, "1 (January is 1)"), ("0", 0, "0 (January is 0)"), ("default", None, "default"),
    ):  # fmt: skip
        answer = acme("accounts", "set", "acme", "--first-month", chosen)
        assert answer.stderr == f'Account "acme": first month {said}.\n'
        assert acme.answers("accounts", "show", "acme", "--json")["firstMonth"] == first_month
        assert f"first month    {said}" in acme.succeeds("accounts", "show", "acme")
    assert (
        acme.answers("accounts", "set", "acme", "--first-month", "1", "--json")["firstMonth"] == 1
    )
    acme.fails(2, "accounts", "set", "acme", "--first-month", "2")
    nothing = acme.fails(2, "accounts", "set", "acme")
    assert "Nothing to set: pass --on-newer or --first-month" in nothing
    assert "Account not found" in acme.fails(1, "accounts", "set", "x", "--first-month", "1")


def test_create_prints_the_key_alone(acme: CommandLine) -> None:
    created = acme("keys", "create", "acme", "--name", "importer")

    secret = created.stdout.removesuffix("\n")
    assert api_keys.FORM.fullmatch(secret)
    assert secret not in created.stderr
    assert 'Plan "free" has no API listing: requests can create and delete' in created.stderr
    acme.succeeds("accounts", "set-plan", "acme", "business")
    assert "listing" not in acme("keys", "create", "acme", "--name", "second").stderr
    key, _ = acme.answers("keys", "list", "--json")["keys"]
    assert key["id"] in created.stderr
    assert (key["name"], key["state"], key["masked"]) == (
        "importer",
        "active",
        api_keys.mask(secret),
    )
    assert key["shownAt"] is not None
    assert (key["createdAt"] <= key["shownAt"], key["lastUsedAt"]) == (True, None)
    with open_home(acme.home) as store:
        holder = api_keys.authenticate(store, secret)
        asyncio.run(api_keys.mark_used_async(store, holder))
    assert holder.key_id == key["id"]
    key, _ = acme.answers("keys", "list", "--json")["keys"]
    assert key["lastUsedAt"][:16].replace("T", " ") in acme.succeeds("keys", "list")


@pytest.mark.parametrize("target", ["pipe", pytest.param("/dev/full", marks=pytest.mark.slow)])
def test_a_key_that_cannot_be_shown_is_revoked(
    acme: CommandLine, closed_pipe: int, target: str
) -> None:
    with Path("/dev/full").open("w", encoding="ascii") as full:
        process = start(
            "--home", str(acme.home), "keys", "create", "acme",
            stdout=closed_pipe if target == "pipe" else full,
        )  # fmt: skip
        code, _, stderr = finish(process)

    assert code == 1
    assert stderr.startswith("Error: The new key could not be shown (")
    assert stderr.count("\n") == 1
    [key] = acme.answers("keys", "list", "--json")["keys"]
    assert (key["state"], key["shownAt"]) == ("revoked", None)


def test_a_key_that_was_shown_and_not_recorded_as_such_is_not_said_to_be_undone(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mark_shown(*_: object) -> None:
        raise StoreUnavailable(BUSY)

    monkeypatch.setattr(api_keys, "mark_shown", mark_shown)

    created = acme("keys", "create", "acme")

    [key] = acme.answers("keys", "list", "--json")["keys"]
    assert (created.exit_code, key["state"]) == (1, "active")
    assert api_keys.FORM.fullmatch(created.stdout.strip())
    assert f"The new key {key['id']} was shown and works, but" in created.stderr


def test_expiry_is_a_span_or_a_date(acme: CommandLine) -> None:
    created = acme("keys", "create", "acme", "--expires", "2999-01-31")

    assert "(expires 2999-01-31 00:00 UTC)" in created.stderr
    assert "expires 2999-01-31 00:00" in acme.succeeds("keys", "list", "acme")
    old = acme.answers("keys", "create", "acme", "--json")
    for span in ("soon", "12", "-1d", "1.5h", "d", "9999999d", "1w", "\u0661d"):
        said = acme.fails(2, "keys", "create", "acme", f"--expires={span}")
        assert "is not a valid expiry: use 30d" in said
        said = acme.fails(2, "keys", "rotate", old["id"], f"--grace={span}")
        assert "use 7d, 12h" in said
    assert "use 30d" in acme.fails(2, "keys", "create", "acme", "--expires=31.1.2027")
    assert "must be in the future" in acme.fails(
        2, "keys", "create", "acme", "--expires", "2001-01-31"
    )
    assert "Invalid grace period" in acme.fails(2, "keys", "rotate", old["id"], "--grace", "8d")


def test_a_key_is_revoked_by_its_id_or_its_text_and_it_is_said_whose_it_was(
    acme: CommandLine,
) -> None:
    by_id, by_text = (acme.answers("keys", "create", "acme", "--json") for _ in range(2))
    for made, given in ((by_id, by_id["id"]), (by_text, "-")):
        revoked = acme("keys", "revoke", given, "--yes", stdin=f"{made['key']}\n")
        assert revoked.stderr == f'Revoked key {made["id"]} of account "acme".\n'
        with open_home(acme.home) as store, pytest.raises(InvalidKey):
            api_keys.authenticate(store, made["key"])
    said = acme.fails(1, "keys", "revoke", "-", "--yes", stdin=by_text["key"])
    assert "The store has no such key" in said
    assert by_text["key"] not in said
    assert 'No key has the ID "key_x"' in acme.fails(1, "keys", "revoke", "key_x", "--yes")
    secret = acme.succeeds("keys", "create", "acme").strip()
    assert 'No key has the ID "enh_live_' in (
        said := acme.fails(1, "keys", "revoke", secret, "--yes")
    )
    assert secret not in said


def test_a_read_only_key_is_shown_as_such(acme: CommandLine) -> None:
    created = acme("keys", "create", "acme", "--read-only")

    assert "Created read-only key key_" in created.stderr
    assert 'Plan "free" has no API listing: requests get 403 for lists' in created.stderr
    (key,) = acme.answers("keys", "list", "--json")["keys"]
    acme.succeeds("keys", "rotate", key["id"])
    acme.succeeds("keys", "create", "acme")
    listed = acme.answers("keys", "list", "--json")["keys"]
    assert [key["readOnly"] for key in listed] == [True, True, False]
    lines = acme.succeeds("keys", "list").splitlines()
    assert ["read-only" in line for line in lines] == [False, True, True, False]


def test_rotate_prints_the_new_key_and_gives_the_old_one_its_grace(acme: CommandLine) -> None:
    old = acme.answers("keys", "create", "acme", "--name", "ats", "--json")

    rotated = acme("keys", "rotate", old["id"], "--grace", "2h")

    assert api_keys.FORM.fullmatch(rotated.stdout.strip())
    assert f"{old['id']} works until " in rotated.stderr
    first, second = acme.answers("keys", "list", "--json")["keys"]
    assert [first["state"], second["state"]] == ["active", "active"]
    assert first["replacedBy"] == second["id"]
    assert "rotated, ends 20" in acme.succeeds("keys", "list")
    said = f"was already replaced by {second['id']}. Rotate that one, or create another with"
    assert said in acme.fails(1, "keys", "rotate", old["id"])
    rotated = acme("keys", "rotate", second["id"], "--grace", "0")
    assert f"{second['id']} no longer works." in rotated.stderr


@pytest.mark.slow
@pytest.mark.parametrize("grace", ["0", "24h"])
def test_a_rotation_whose_key_cannot_be_shown_leaves_the_old_key_as_it_was(
    acme: CommandLine, closed_pipe: int, grace: str
) -> None:
    old = acme.answers("keys", "create", "acme", "--expires", "2999-01-31", "--json")
    [before] = acme.answers("keys", "list", "--json")["keys"]

    process = start(
        "--home", str(acme.home), "keys", "rotate", old["id"], "--grace", grace, stdout=closed_pipe
    )
    code, _, stderr = finish(process)

    assert (code, "so it was revoked; try again" in stderr) == (1, True)
    [after, unseen] = acme.answers("keys", "list", "--json")["keys"]
    assert (after, unseen["state"]) == (before, "revoked")
    assert acme("keys", "rotate", old["id"], "--grace", grace).exit_code == 0


def test_a_deletion_that_was_cut_off_is_told_and_finished(acme: CommandLine) -> None:
    assert "keys create acme" in acme("keys", "list", "acme").stderr
    acme.succeeds("accounts", "set-plan", "acme", "business")
    count = accounts.SLICE_RESUMES + 1
    store_resumes(acme.home, *(a_resume(f"A{number}") for number in range(count)))
    with open_home(acme.home) as store:
        accounts.delete_account(store, "acme", with_resumes=True, should_continue=lambda _: False)

    listed = acme("accounts", "list")

    assert listed.stdout == ""
    assert 'Account "acme" is being deleted (1 resume left).' in listed.stderr
    assert "accounts delete acme --with-resumes --yes" in listed.stderr
    assert acme.answers("accounts", "list", "--json") == {"accounts": []}
    assert 'Account not found: "acme"' in acme.fails(1, "keys", "list", "acme")  # none to get
    acme.succeeds("accounts", "delete", "acme", "--with-resumes", "--yes")
    assert "being deleted" not in acme("accounts", "list").stderr


def test_an_account_whose_inbox_cannot_be_made_is_there_and_says_so(acme: CommandLine) -> None:
    (acme.home / "inbox" / "acme").rmdir()
    (acme.home / "inbox").rmdir()
    (acme.home / "inbox").touch()

    created = acme("accounts", "create", "beta")

    assert created.exit_code == 0
    assert 'Created account "beta" (plan: free).' in created.stderr
    assert "could not be made: Not a directory." in created.stderr
    created = acme("accounts", "create", "gamma", "--json")
    assert json.loads(created.stdout)["name"] == "gamma"
    assert "could not be made: Not a directory." in created.stderr
