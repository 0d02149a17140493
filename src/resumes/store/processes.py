"""Processes of this program, as people know them: by the command that they typed.

Those that another one of them has started (workers, the API and the importer of `resumes up`) would
only be started again when they are ended, so the one that was typed stands for them. Where the
system has no table of processes, numbers are all there is.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PROGRAM: Final = "resumes"
MODULE: Final = ("-m", "cli")
PROC: Final = Path("/proc")


def name_processes(pids: Iterable[int], *, proc: Path = PROC) -> str:
    """`2329 (resumes up), 6380 (resumes tui)`: whom to ask to end; `unknown` for no ids."""
    typed = sorted({_find_typed(pid, proc) for pid in pids})
    return ", ".join(_name(pid, proc) for pid in typed) or "unknown"


def _find_typed(pid: int, proc: Path) -> int:
    """Return the first one of this program from which the process descends; mostly itself."""
    found = pid
    while (parent := _find_parent(found, proc)) and _find_command(parent, proc):
        found = parent
    return found


def _name(pid: int, proc: Path) -> str:
    command = _find_command(pid, proc)
    return str(pid) if command is None else f"{pid} ({command})"


def _find_parent(pid: int, proc: Path) -> int | None:
    try:
        status = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # After the name, which may hold anything but ends with the last parenthesis: state, parent.
    return int(status.rpartition(")")[2].split()[1])


def _find_command(pid: int, proc: Path) -> str | None:
    """`resumes up`; None for a process that is gone, or of another program.

    Options and what is given to commands are left out: a password may stand there.
    """
    try:
        line = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    words = _after_program([os.fsdecode(word) for word in line.split(b"\0")])
    if words is None:
        return None
    return f"{PROGRAM} {_first_command(words)}".rstrip()


def _after_program(words: list[str]) -> list[str] | None:
    """Return the words after those that call this program; None for another one."""
    name = Path(words[0]).name
    if name == PROGRAM:
        return words[1:]
    if not name.startswith("python"):
        return None
    at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
    if Path(words[at]).name == PROGRAM or (words[at - 1], words[at]) == MODULE:
        return words[at + 1 :]
    return None


def _first_command(words: list[str]) -> str:
    is_value = False
    for word in words:
        if not is_value and not word.startswith("-"):
            return word
        is_value = word in ("--home", "--database")
    return ""
