"""What a check found, and as programs are told it."""

from resumes.health.findings import Finding, State, as_json, notice


def test_what_has_a_remedy_is_not_well() -> None:
    assert as_json(Finding("home", "/srv/home")) == {
        "subject": "home",
        "ok": True,
        "text": "/srv/home",
        "remedy": None,
    }
    assert as_json(Finding("disk", "full", "Make room"))["ok"] is False
    assert Finding("home", "/srv/home").state is State.WELL
    assert Finding("disk", "full", "Make room").state is State.WRONG


def test_a_notice_has_a_remedy_and_breaks_nothing() -> None:
    finding = notice("files", "3 files failed", "See why: resumes imports list", "resumes")

    assert finding.state is State.NOTICE
    told = as_json(finding)
    assert (told["ok"], told["remedy"]) == (True, "See why: resumes imports list")
