"""Ends that nobody asked for with a key; in a real terminal in test_terminal."""

import signal

import pytest
from textual.app import App

from tui.ending import crash_report, ended_by_signals


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_before_the_app_runs_a_signal_ends_with_its_code(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.ending.PATIENCE_S", 3_600.0)
    before = signal.getsignal(number)
    with ended_by_signals(App()), pytest.raises(SystemExit) as ended:
        signal.raise_signal(number)

    assert ended.value.code == 128 + number
    assert signal.getsignal(number) == before


def test_a_crash_is_told_without_values() -> None:
    secret = "".join(["enh", "_live"])
    try:
        raise RuntimeError(f"\x1b[2J {len(secret)}")
    except RuntimeError:
        told = crash_report().plain

    assert "RuntimeError" in told
    assert "\x1b" not in told
    assert "enh_live" not in told.replace('"enh"', "")
