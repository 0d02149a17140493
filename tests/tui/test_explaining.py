"""Why a key does nothing."""

from textual.screen import ModalScreen, Screen

from tui.explaining import why_nothing


def test_an_unknown_key_leads_to_the_help() -> None:
    assert (
        why_nothing("Z", Screen(), {}, read_only=True) == "This key does nothing. ? shows all keys."
    )


def test_a_key_of_another_screen_says_where_it_works() -> None:
    assert why_nothing("n", Screen(), {}, read_only=False).endswith("accounts, plans, keys.")


def test_a_dialog_is_the_reason_before_all_others() -> None:
    assert "esc closes it" in why_nothing("q", ModalScreen(), {}, read_only=True)


def test_what_would_change_something_says_that_nothing_can() -> None:
    assert "--read-only" in why_nothing("d", Screen(), {}, read_only=True)
