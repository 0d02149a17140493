"""The ways to the clipboard."""

import base64

import pytest
from textual.app import App

from tests.tui.clipboards import copied
from tests.tui.driving import until
from tui import clipboard
from tui.clipboard import MOST_BYTES, Way, request, way
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


async def told(app: App[int], text: str) -> str:
    """What the toast says about sending the text."""
    clipboard.send(app.screen, text, what="name", instead="x exports it")
    await until(lambda: app._notifications)
    (toast,) = app._notifications
    return toast.message


@pytest.mark.anyio
async def test_what_is_sent_is_told_with_the_way_but_not_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app: App[int] = App()
    async with app.run_test():
        texts = copied(app, monkeypatch)

        assert await told(app, "Ada") == "Sent the name to the terminal's clipboard (OSC 52)."
        assert texts == ["Ada"]


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["ls\n", "a\x1b[201~b", "a\u202eb", "a\ud800"])
async def test_what_acts_when_it_is_pasted_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    app: App[int] = App()
    async with app.run_test():
        texts = copied(app, monkeypatch)

        assert (
            await told(app, text) == "The name holds characters that act when pasted: not copied."
        )
        assert texts == []


@pytest.mark.anyio
async def test_what_is_too_long_is_not_sent_however_few_characters_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app: App[int] = App()
    async with app.run_test():
        texts = copied(app, monkeypatch)

        said = await told(app, "山" * (MOST_BYTES // 3 + 1))

        assert said == "The name is too long for a terminal's clipboard; x exports it."
        assert texts == []
