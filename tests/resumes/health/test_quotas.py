"""Accounts without room."""

from resumes.health.findings import Finding, State
from resumes.health.installation import Installation
from resumes.health.quotas import MANY, iter_quota_findings
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanInfo

PLANS = (
    PlanInfo("free", 5, False, 0),
    PlanInfo("middle", 100, False, 0),
    PlanInfo("business", 1_000, True, 0),
)


def an_account(name: str, holds: int, at_most: int | None) -> AccountInfo:
    return AccountInfo("id", name, "free", "2026-01-31T09:00:00.000Z", holds, at_most, False)


def found(installation: Installation, *known: AccountInfo) -> list[Finding]:
    return list(iter_quota_findings(installation, known, PLANS))


def test_accounts_with_room_are_well(installation: Installation) -> None:
    [finding] = found(installation, an_account("ana", 4, 5), an_account("zoe", 9, None))

    assert finding.state is State.WELL


def test_a_full_account_is_led_to_the_smallest_plan_with_room(installation: Installation) -> None:
    [full] = found(installation, an_account("ana", 5, 5), an_account("zoe", 4, 5))
    [over] = found(installation, an_account("ana", 100, 5))

    assert full.state is State.NOTICE
    assert full.text.startswith("ana holds 5 of the 5 resumes of its plan free")
    assert full.command == "resumes accounts set-plan ana middle"
    assert over.command == "resumes accounts set-plan ana business"


def test_where_no_plan_has_room_the_plans_are_shown(installation: Installation) -> None:
    [finding] = found(installation, an_account("ana", 1_000, 5))

    assert finding.command == "resumes plans list"
    assert "make its plan larger" in (finding.remedy or "")


def test_many_full_accounts_are_counted(installation: Installation) -> None:
    findings = found(installation, *(an_account(f"a{number}", 5, 5) for number in range(MANY + 2)))

    assert len(findings) == MANY + 1
    assert findings[-1].text == "2 further accounts can take no more resumes"
