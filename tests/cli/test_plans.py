"""`resumes plans`."""

from tests.cli.conftest import CommandLine


def test_plans_are_listed_smallest_first(acme: CommandLine) -> None:
    rows = [line.split() for line in acme.succeeds("plans", "list").splitlines()[1:]]

    assert rows == [
        ["free", "5", "no", "1"],
        ["pro", "50", "no", "0"],
        ["business", "1,000", "yes", "0"],
    ]


def test_set_makes_and_changes_a_plan(acme: CommandLine) -> None:
    made = acme.answers("plans", "set", "gold", "--max-resumes", "unlimited", "--json")
    assert made == {"name": "gold", "maxResumes": None, "apiListing": False, "accounts": 0}

    changed = acme("plans", "set", "gold", "--max-resumes", "7", "--api-listing")

    assert changed.stderr == 'Plan "gold" allows 7 resumes, with listing over the API.\n'
    assert acme.answers("plans", "set", "gold", "--max-resumes", "8", "--json")["apiListing"]


def test_a_maximum_is_a_number_or_unlimited(acme: CommandLine) -> None:
    message = acme.fails(2, "plans", "set", "gold", "--max-resumes", "many")

    assert '"many" is neither a number of resumes nor unlimited' in message
    assert "Invalid plan name" in acme.fails(2, "plans", "set", "Gold!", "--max-resumes", "1")
    assert "Missing option '--max-resumes'" in acme.fails(2, "plans", "set", "gold")
