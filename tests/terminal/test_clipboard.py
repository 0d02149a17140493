"""The ways to the terminal's clipboard."""

import base64

import pytest

from resumes.store.store import Store
from tests.support.terminal.builders import a_document, stored
from tests.support.terminal.driving import copied, leads, presses, running, tells, until
from tui.clipboard import request

PLAIN = f"\x1b]52;c;{base64.b64encode(b'secret').decode()}\x07"
TMUX = {"TMUX": "/tmp/tmux-0/default,1,0"}
SCREEN = {"STY": "1.tty"}


@pytest.mark.parametrize(
    ("environment", "sequence", "where"),
    [
        ({}, PLAIN, "the clipboard (OSC 52)"),
        ({"TMUX": ""}, PLAIN, "the clipboard (OSC 52)"),
        # In both forms that it may let through.
        (TMUX, f"\x1bPtmux;\x1b{PLAIN}\x1b\\{PLAIN}", "the clipboard through tmux"),
        (SCREEN, f"\x1bP{PLAIN}\x1b\\", "the clipboard through screen"),
    ],
)
def test_the_environment_says_what_stands_between(
    environment: dict[str, str], sequence: str, where: str
) -> None:
    sent, told = request("secret", environment)

    assert sent == sequence
    assert told.startswith(where)


@pytest.mark.parametrize("environment", [{}, TMUX, SCREEN])
def test_no_text_can_end_the_request_early(environment: dict[str, str]) -> None:
    assert "\x07;\x1b" not in request("\x07;\x1b", environment)[0]


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
