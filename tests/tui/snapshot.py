"""What screens looked like when somebody last looked: texts in `snapshots`, and how they differ.

`UPDATE_SNAPSHOTS=1 pytest tests/tui/test_snapshots.py` writes them anew, for a person to read
in the diff.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Final

import pytest
from textual._context import visible_screen_stack
from textual.app import App

from tests.tui.driving import LIMIT_S

FOLDER: Final = Path(__file__).with_name("snapshots")
IS_WRITTEN_ANEW: Final = bool(os.environ.get("UPDATE_SNAPSHOTS"))
STILL_S: Final = 0.3
"""A screen that has not changed for so long, and for which nothing is read, is complete."""

RULE: Final = "═" * 3
LOOK_S: Final = 0.02


class Snapshot:
    """The parts of a file, each a heading and the lines of a screen under it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: dict[str, list[str]] = {}
        self._before = parse_parts(_read(name))

    async def holds(self, part: str, app: App[int], *, is_waiting: bool = False) -> None:
        """The screen is what it was, or soon is. `is_waiting`: it never gets what it reads."""
        before = self._before.get(part)
        if IS_WRITTEN_ANEW:
            await still(app, is_waiting=is_waiting)
            before = seen(app)
        deadline = time.monotonic() + LIMIT_S
        while seen(app) != before or (is_busy(app) and not is_waiting):
            if time.monotonic() > deadline:
                pytest.fail(self._difference(part, before, seen(app)))
            await asyncio.sleep(LOOK_S)
        self.parts[part] = before

    def compare(self, part: str, found: Sequence[str]) -> None:
        """The lines are what they were."""
        before = list(found) if IS_WRITTEN_ANEW else self._before.get(part)
        if before != list(found):
            pytest.fail(self._difference(part, before, found))
        self.parts[part] = before

    def check_whole(self) -> None:
        """There is no part in the file that nobody looked at."""
        if IS_WRITTEN_ANEW:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{self.name}.txt").write_text(_text(self.parts), encoding="utf-8")
        else:
            assert list(self.parts) == list(self._before), "run with UPDATE_SNAPSHOTS=1"

    def _difference(self, part: str, before: Sequence[str] | None, found: Sequence[str]) -> str:
        name = f"snapshots/{self.name}.txt, {part}"
        difference = unified_diff(before or (), found, name, "now", lineterm="", n=3)
        body = "\n".join(difference) or "The same, but something is still being read."
        return f"{body}\nIf this is as it should be: UPDATE_SNAPSHOTS=1 writes it anew."


@contextmanager
def a_snapshot(name: str, *, is_whole: bool = True) -> Iterator[Snapshot]:
    """The file of this name, of which every part must be looked at, in its order, if `is_whole`."""
    snapshot = Snapshot(name)
    yield snapshot
    if is_whole:
        snapshot.check_whole()


def seen(app: App[int]) -> list[str]:
    """The lines of the screen; of a dialog, what shines through around it too."""
    visible_screen_stack.set(app._background_screens)
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


async def still(app: App[int], *, is_waiting: bool = False) -> None:
    """The screen is complete. Fails when it goes on changing."""
    deadline = time.monotonic() + LIMIT_S
    before, since = seen(app), time.monotonic()
    while time.monotonic() - since < STILL_S:
        assert time.monotonic() < deadline, "the screen never stood still"
        await asyncio.sleep(LOOK_S)
        now = seen(app)
        if now != before or (is_busy(app) and not is_waiting):
            before, since = now, time.monotonic()


def is_busy(app: App[int]) -> bool:
    """Whether anything is being read."""
    return any(not worker.is_finished for worker in app.workers)


def parse_parts(text: str) -> dict[str, list[str]]:
    """The lines under each heading."""
    parts: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith(RULE):
            heading = line.strip("═ ")
            parts[heading] = []
        else:
            parts[heading].append(line)
    return parts


def _text(parts: Mapping[str, Sequence[str]]) -> str:
    return "".join(
        f"{RULE} {heading} {RULE}\n" + "".join(f"{line}\n" for line in found)
        for heading, found in parts.items()
    )


def _read(name: str) -> str:
    path = FOLDER / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""
