"""What a check found, as programs are told it."""

from cli.findings import Finding, as_json


def test_what_has_a_remedy_is_not_well() -> None:
    assert as_json(Finding("home", "/srv/home")) == {
        "subject": "home",
        "ok": True,
        "text": "/srv/home",
        "remedy": None,
    }
    assert as_json(Finding("disk", "full", "Make room"))["ok"] is False
