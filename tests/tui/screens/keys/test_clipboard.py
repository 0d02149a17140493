"""The ways to the clipboard."""

import base64

import pytest
from textual.app import App

from tui.screens.keys import clipboard
from tui.screens.keys.clipboard import Way, request, way
from tui.web.child import environment_of

ENCODED = base64.b64encode(b"secret").decode()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Way.TERMINAL),
        ({"TMUX": ""}, Way.TERMINAL),
        ({"TMUX": "/tmp/tmux-0/default,1,0"}, Way.TMUX),
        ({"STY": "1.tty"}, Way.SCREEN),
        (environment_of(80, 24, {"TMUX": "/tmp/tmux-0/default,1,0"}), Way.BROWSER),
    ],
)
def test_the_environment_says_what_stands_between(
    environment: dict[str, str], expected: Way
) -> None:
    assert way(environment) is expected


def test_terminals_get_the_request_as_it_is() -> None:
    assert request("secret", Way.TERMINAL) == f"\x1b]52;c;{ENCODED}\x07"
    assert request("secret", Way.BROWSER) == request("secret", Way.TERMINAL)


def test_tmux_gets_it_in_both_forms_that_it_may_let_through() -> None:
    plain = request("secret", Way.TERMINAL)

    assert request("secret", Way.TMUX) == f"\x1bPtmux;\x1b{plain}\x1b\\{plain}"


def test_screen_gets_it_wrapped() -> None:
    assert request("secret", Way.SCREEN) == f"\x1bP\x1b]52;c;{ENCODED}\x07\x1b\\"


def test_no_text_can_end_the_request_early() -> None:
    for by in Way:
        assert "\x07;\x1b" not in request("\x07;\x1b", by)


@pytest.mark.anyio
async def test_what_was_copied_cannot_be_pasted_elsewhere_in_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app: App[int] = App()
    written: list[str] = []
    monkeypatch.setenv("TMUX", "")
    monkeypatch.delenv("STY", raising=False)
    async with app.run_test():
        assert app._driver is not None
        monkeypatch.setattr(app._driver, "write", written.append)

        assert clipboard.copy(app, "secret") is Way.TERMINAL

        assert request("secret", Way.TERMINAL) in written
        assert app.clipboard == ""
