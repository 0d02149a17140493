"""`resumes doctor`."""

import json

from resumes.store import accounts, importers
from resumes.store.importers import Finding, State
from tests.cli.conftest import CommandLine, open_home
from tests.resumes.store.builders import a_file, an_importer


def test_all_is_well(acme: CommandLine) -> None:
    result = acme("doctor")

    assert result.exit_code == 0
    assert all(line.startswith("well   ") for line in result.stdout.splitlines())
    assert result.stderr == "All is well.\n"
    assert acme.answers("doctor", "--json")["ok"] is True


def test_importers_are_shown(acme: CommandLine) -> None:
    finding = Finding("closed", State.DEGRADED, "Cannot write in \x1b: chown it.")
    with open_home(acme.home) as store:
        importers.announce(store, an_importer(state=State.DEGRADED, findings=(finding,)))

    result = acme("doctor")

    assert result.exit_code == 1
    assert "WRONG  importer  watches /srv/inbox (process 4711 on host)" in result.stdout
    assert "                 Cannot write in \\x1b: chown it\n" in result.stdout
    told = json.loads(acme("doctor", "--json").stdout)["findings"][-1]
    assert (told["subject"], told["ok"]) == ("importer", False)


def test_something_wrong_is_exit_1_and_has_a_remedy(acme: CommandLine) -> None:
    (acme.home / "inbox" / "nobody").mkdir(parents=True)

    result = acme("doctor")

    assert result.exit_code == 1
    assert "WRONG  inbox" in result.stdout
    assert f"--home {acme.home} accounts create nobody, or rename the folder" in result.stdout
    assert result.stderr == "1 thing to put right.\n"


def test_files_that_nobody_takes_are_named(acme: CommandLine) -> None:
    (acme.home / "inbox" / "acme").mkdir(parents=True, exist_ok=True)
    (acme.home / "inbox" / "acme" / "cv.pdf").touch()

    result = acme("doctor")

    assert result.exit_code == 0
    assert 'inbox/acme: "cv.pdf" (its ending)' in result.stdout


def test_what_wants_a_look_is_told_and_is_no_failure(acme: CommandLine) -> None:
    with open_home(acme.home) as store:
        a_file(store, accounts.get_account(store, "acme"))

    result = acme("doctor")

    assert result.exit_code == 0
    assert "note   files     1 file failed" in result.stdout
    assert "imports list --outcome failed\n" in result.stdout
    assert result.stderr == "All is well; 1 thing to look at.\n"
    told = acme.answers("doctor", "--json")
    assert told["ok"] is True
    assert [one["ok"] for one in told["findings"] if one["remedy"] is not None] == [True]


def test_no_home_yet_is_told_and_nothing_is_made(run: CommandLine) -> None:
    result = run("doctor")

    assert result.exit_code == 1
    assert f"WRONG  home      {run.home} is not there" in result.stdout
    assert not run.home.exists()
