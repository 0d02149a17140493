"""A shell that a test types into, as somebody does who follows a page."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.waiting import wait_until

LIMIT_S: Final = 60.0
OVER: Final = re.compile(r"\x1e(\d+)\n\Z")
"""What the shell says when a command has ended: its exit code."""


class Shell:
    """One shell for all that is typed. Use it as a context manager.

    Programs that go on until they are ended do so behind it, until it is left.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self._seen = Path(self._scratch.name, "seen")
        self._behind = Path(self._scratch.name, "behind")
        beside_python = str(Path(sys.executable).parent)
        surroundings = {
            **os.environ,
            "PATH": f"{beside_python}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        with self._seen.open("wb") as seen:
            self._shell = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                stdin=subprocess.PIPE,
                stdout=seen,
                stderr=seen,
                cwd=folder,
                env=surroundings,
                start_new_session=True,
            )

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        self._write("kill $(jobs -p) 2>/dev/null; wait; exit\n")
        try:
            self._shell.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.communicate()
        self._scratch.cleanup()

    def types(self, command: str) -> tuple[int, str]:
        """The exit code of the command, and what it printed on both streams."""
        begins = self._seen.stat().st_size
        self._write(f"{{ {command}\n}} </dev/null\nprintf '\\036%s\\n' $?\n")
        wait_until(lambda: OVER.search(self._seen_since(begins)) is not None, within_s=LIMIT_S)
        printed = self._seen_since(begins)
        over = OVER.search(printed)
        assert over is not None
        return int(over[1]), printed[: over.start()]

    def starts(self, command: str, *, until: Callable[[], bool]) -> None:
        """The command goes on behind the shell, and what is waited for has come about."""
        command = command.partition("  #")[0]
        self._write(f"{command} >>{self._behind} 2>&1 </dev/null &\n")
        try:
            wait_until(until, within_s=LIMIT_S)
        except AssertionError as error:
            raise AssertionError(self._behind.read_text(encoding="utf-8")) from error

    def _write(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text.encode())
        self._shell.stdin.flush()

    def _seen_since(self, offset: int) -> str:
        return self._seen.read_bytes()[offset:].decode()
