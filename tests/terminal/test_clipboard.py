"""The ways to the terminal's clipboard."""

import base64

import pytest

from resumes.store.store import Store
from tests.support.terminal.builders import a_document, stored
from tests.support.terminal.driving import copied, leads, presses, running, tells, until
from tui.clipboard import Way, request, way
from tui.web.driver import environment_of

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
@pytest.mark.parametrize("text", ["ls\n", "a\x1b[201~b", "a\u202eb"])
async def test_what_acts_when_it_is_pasted_is_not_sent(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    stored(store, a_document(name=text))
    async with running(store, "1 of 1") as pilot:
        texts = copied(pilot.app, monkeypatch)
        await leads(pilot, "y", "─ Copy ─", "name")
        await presses(pilot, "j", "enter")
        await tells(pilot.app, "Not copied: the name contains control characters.")
        assert texts == []


@pytest.mark.anyio
async def test_what_was_copied_cannot_be_pasted_elsewhere_in_the_program(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(name="Ada"))
    async with running(store, "1 of 1") as pilot:
        texts = copied(pilot.app, monkeypatch)
        await leads(pilot, "y", "─ Copy ─", "name")
        await presses(pilot, "j", "enter")
        await until(lambda: texts == ["Ada"])
        assert pilot.app.clipboard == ""
