"""How a page's process knows what it is."""

import pytest

from tui.web.child import environment_of, is_behind_a_page


def test_a_process_started_for_a_page_knows_it() -> None:
    environment = environment_of(120, 40, {"HOME": "/home/ada"})

    assert is_behind_a_page(environment)
    assert environment["HOME"] == "/home/ada"
    assert (environment["COLUMNS"], environment["ROWS"]) == ("120", "40")


@pytest.mark.parametrize(
    "environment",
    [{}, {"TEXTUAL_DRIVER": ""}, {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}],
)
def test_others_do_not_pass_for_one(environment: dict[str, str]) -> None:
    assert not is_behind_a_page(environment)
