"""`resumes plans`."""

from tests.cli.conftest import CommandLine, a_resume, store_resumes


def test_plans_are_listed_smallest_first(acme: CommandLine) -> None:
    rows = [line.split() for line in acme.succeeds("plans", "list").splitlines()[1:]]

    assert rows == [
        ["free", "5", "no", "default", "default", "default", "1"],
        ["pro", "50", "no", "default", "default", "default", "0"],
        ["business", "1,000", "yes", "default", "default", "default", "0"],
    ]


def test_set_makes_and_changes_a_plan(acme: CommandLine) -> None:
    made = acme.answers("plans", "set", "gold", "--max-resumes", "unlimited", "--json")
    assert made == {
        "name": "gold",
        "maxResumes": None,
        "apiListing": False,
        "requestsPerMinute": None,
        "requestsPerHour": None,
        "requestsPerDay": None,
        "accounts": 0,
    }

    changed = acme("plans", "set", "gold", "--max-resumes", "7", "--api-listing")

    assert changed.stderr == 'Plan "gold" allows 7 resumes, with listing over the API.\n'
    assert acme.answers("plans", "set", "gold", "--max-resumes", "8", "--json")["apiListing"]


def test_a_maximum_is_a_number_or_unlimited(acme: CommandLine) -> None:
    message = acme.fails(2, "plans", "set", "gold", "--max-resumes", "many")

    assert '"many" is neither a number of resumes nor unlimited' in message
    assert "Invalid plan name" in acme.fails(2, "plans", "set", "Gold!", "--max-resumes", "1")
    assert "Missing option '--max-resumes'" in acme.fails(2, "plans", "set", "gold")


def test_rates_are_set_one_by_one_and_the_rest_stays(acme: CommandLine) -> None:
    acme.succeeds("plans", "set", "pro", "--per-minute", "600", "--per-day", "unlimited")
    changed = acme("plans", "set", "pro", "--per-hour", "1200")

    assert changed.stderr == (
        'Plan "pro" allows 50 resumes, without listing over the API; '
        "requests of a key: 600 a minute, 1,200 an hour, any number a day.\n"
    )
    listed = acme.succeeds("plans", "list").splitlines()[2].split()
    assert listed == ["pro", "50", "no", "600", "1,200", "unlimited", "0"]
    kept = acme.answers("plans", "set", "pro", "--per-minute", "default", "--json")
    assert [kept[f"requestsPer{window}"] for window in ("Minute", "Hour", "Day")] == [None, 1200, 0]


def test_what_is_no_rate_is_refused(acme: CommandLine) -> None:
    for rate in ("0", "many", "-1", "1.5", ""):
        message = acme.fails(2, "plans", "set", "pro", f"--per-minute={rate}")
        assert f'"{rate}" is neither a number above 0, unlimited nor default' in message
    message = acme.fails(2, "plans", "set", "pro", "--per-day", "1000001")
    assert "Invalid number of requests 1000001" in message


def test_set_says_who_is_over_and_what_becomes_of_them(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("A"), a_resume("B"))

    changed = acme("plans", "set", "free", "--max-resumes", "1")

    assert changed.stderr == (
        'Plan "free" allows 1 resume, without listing over the API.\n'
        "More than 1: 1 account: acme (2).\n"
        "They keep what they hold, and take no more until it fits.\n"
    )
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 2


def test_a_dry_run_says_so_and_changes_nothing(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("A"), a_resume("B"))
    acme.succeeds("accounts", "set-plan", "acme", "business")
    words = ("plans", "set", "business", "--max-resumes", "1", "--no-api-listing", "--dry-run")

    acme_alone = {"count": 1, "fullest": [{"account": "acme", "resumes": 2}]}
    assert acme.answers(*words, "--json") == {"over": acme_alone, "unlisted": acme_alone}
    assert acme(*words).stderr == (
        "Nothing was changed.\n"
        "More than 1: 1 account: acme (2).\n"
        "They keep what they hold, and take no more until it fits.\n"
        "No more listing over the API: 1 account: acme (2).\n"
    )
    assert "Invalid plan name" in acme.fails(
        2, "plans", "set", "A!", "--max-resumes=1", "--dry-run"
    )
    kept = acme.answers("plans", "list", "--json")["plans"][2]
    assert (kept["maxResumes"], kept["apiListing"]) == (1_000, True)


def test_of_many_who_are_over_ten_are_named(acme: CommandLine) -> None:
    for number in range(11):
        acme.succeeds("accounts", "create", f"a{number:02}")
        store_resumes(acme.home, a_resume(), account=f"a{number:02}")

    said = acme("plans", "set", "free", "--max-resumes", "0").stderr

    assert "More than 0: 11 accounts: a00 (1), a01 (1)," in said
    assert "a09 (1) and 1 more." in said
