"""What is told of an account."""

from resumes.settings import Settings
from resumes.store import accounts, keys, plans
from resumes.store.engine import Store
from resumes.store.plans import PlanChange, Requests
from tests.tui.builders import stored_many
from tui.screens.accounts.details import paragraphs, read_details


def told(store: Store, settings: Settings | None = None) -> dict[str, str]:
    """The facts about ana, by their labels."""
    found = paragraphs(read_details(store, "ana"), settings or Settings())
    return {one.mark.strip(): one.content.plain for one in found if one.mark}


def test_an_account_is_told_with_its_plan_keys_and_files(store: Store) -> None:
    stored_many(store, 3)
    keys.create_key(store, "ana")
    keys.revoke_key(store, keys.create_key(store, "ana").id)
    rates = {Requests.PER_HOUR: 7, Requests.PER_DAY: 0}
    plans.set_plan_limits(store, PlanChange("business", 1_000, requests=rates))

    facts = told(store, Settings(rate_per_minute=123))

    account = accounts.get_account(store, "ana")
    assert facts["Resumes"] == "3 of 1,000"
    assert facts["Full"] == "0 %, room for 997 more"
    assert facts["Newest"] == facts["Created"]
    assert facts["Id"] == account.id
    assert (facts["Per minute"], facts["Per hour"]) == ("123 (default)", "7")
    assert facts["Per day"] == "unlimited"
    assert facts["Keys"] == "1 active of 2"
    assert (facts["Last used"], facts["Files held"], facts["Failed"]) == ("—", "0", "0")


def test_rates_that_the_settings_leave_open_are_told_as_unlimited(store: Store) -> None:
    assert told(store, Settings(rate_per_minute=0))["Per minute"] == "unlimited (default)"


def test_an_account_that_is_over_is_told_so(store: Store) -> None:
    stored_many(store, 6)
    accounts.set_plan(store, "ana", "free")

    assert told(store)["Full"] == "120 %, over: keeps all, takes no more"


def test_without_a_limit_nothing_is_full(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("business", None))

    facts = told(store)

    assert facts["Resumes"] == "0 of unlimited"
    assert "Full" not in facts
    assert (facts["Newest"], facts["Keys"]) == ("—", "—")


def test_an_account_that_is_being_deleted_is_told_still(store: Store) -> None:
    stored_many(store, 501)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda _: False)

    assert told(store)["State"].startswith("being deleted")
