"""What reaches the terminal's clipboard, in tests."""

import base64
import re

import pytest
from textual.app import App


def copied(app: App[int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by each text that the app sends to the clipboard from now on."""
    monkeypatch.setenv("TMUX", "")
    monkeypatch.delenv("STY", raising=False)
    texts: list[str] = []

    def write(data: str) -> None:
        for encoded in re.findall(r"\x1b\]52;c;([^\a]*)\a", data):
            texts.append(base64.b64decode(encoded).decode())

    monkeypatch.setattr(app._driver, "write", write)
    return texts
