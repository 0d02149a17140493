"""`resumes doctor`."""

from tests.cli.conftest import CommandLine


def test_all_is_well(acme: CommandLine) -> None:
    result = acme("doctor")

    assert result.exit_code == 0
    assert all(line.startswith("well   ") for line in result.stdout.splitlines())
    assert result.stderr == "All is well.\n"
    assert acme.answers("doctor", "--json")["ok"] is True


def test_something_wrong_is_exit_1_and_has_a_remedy(acme: CommandLine) -> None:
    (acme.home / "inbox" / "nobody").mkdir(parents=True)

    result = acme("doctor")

    assert result.exit_code == 1
    assert "WRONG  inbox" in result.stdout
    assert "resumes accounts create nobody, or rename the folder" in result.stdout
    assert result.stderr == "1 thing to put right.\n"


def test_no_home_yet_is_told_and_nothing_is_made(run: CommandLine) -> None:
    result = run("doctor")

    assert result.exit_code == 1
    assert f"WRONG  home      {run.home} is not there" in result.stdout
    assert not run.home.exists()
